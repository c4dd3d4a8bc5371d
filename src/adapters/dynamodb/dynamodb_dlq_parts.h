#ifndef GB_ADAPTERS_DYNAMODB_DYNAMODB_DLQ_PARTS_H
#define GB_ADAPTERS_DYNAMODB_DYNAMODB_DLQ_PARTS_H

#include "adapters/dynamodb/dynamodb_dlq.h"
#include "adapters/dynamodb/dynamodb_task.h"
#include "base/log.h"

/* The DLQ store's inside: rows (dynamodb_dlq_row.c), calls on one row (dynamodb_dlq.c), calls on
 * many (dynamodb_dlq_walk.c).
 * Owns:   see struct gb_ddlq.
 * Thread: loop thread only.
 * Errors: rows: GB_INVALID_OUTBOX_RECORD names table and row; GB_UNAVAILABLE (out of memory). */

enum { GB_DDLQ_ID_SIZE = 65 };

struct gb_ddlq {
    struct gb_dlq port;
    struct gb_dynamodb_desk desk;
    int64_t retention_s, max_pages; /* max_pages < 0: no bound */
    struct gb_str resume;           /* where an unfinished removal by scan goes on */
    struct gb_log_limit row_log, scan_log;
};
static inline struct gb_ddlq *gb_ddlq_of(struct gb_dlq *d)
{
    return GB_CONTAINER_OF(d, struct gb_ddlq, port);
}

/* --- rows --- */

void gb_ddlq_write_key(struct gb_dynamodb_call *call, const char *id);
void gb_ddlq_write_item(struct gb_dynamodb_call *call, const struct gb_dlq_entry *e,
                        int64_t retention_s, struct gb_str *scratch);

struct gb_ddlq_key {
    int64_t failed_at_ms;
    char id[GB_DDLQ_ID_SIZE];
};
struct gb_err gb_ddlq_key_read(const struct gb_dynamodb_source *from, struct gb_bytes item,
                               struct gb_str *scratch, struct gb_ddlq_key *out);
/* Oldest first by (failed_at, id). */
int gb_ddlq_key_compare(const struct gb_ddlq_key *a, const struct gb_ddlq_key *b);
struct gb_err gb_ddlq_entry_read(const struct gb_dynamodb_source *from, struct gb_bytes item,
                                 struct gb_str *scratch, struct gb_dlq_entry **out);

/* --- calls on many rows --- */

void gb_ddlq_list(struct gb_dlq *d, struct gb_dlq_list *q, gb_done_fn *done, void *arg);
void gb_ddlq_remove(struct gb_dlq *d, struct gb_dlq_delete *q, gb_done_fn *done, void *arg);
void gb_ddlq_count(struct gb_dlq *d, struct gb_dlq_count *q, gb_done_fn *done, void *arg);

#endif
