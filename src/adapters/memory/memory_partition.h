#ifndef GB_ADAPTERS_MEMORY_PARTITION_H
#define GB_ADAPTERS_MEMORY_PARTITION_H

#include "base/list.h"
#include "base/map.h"
#include "domain/outbox_record.h"

/* The order inside one partition of the memory outbox (spec 05 §2.3, §2.4): which rows a claim may
 * take, oldest first, without looking at the others.
 *
 * A row is *ready* when pending, or claimed below the mark (its claimer was fenced off), and *busy*
 * when claimed at the mark. The heap READY holds the ready rows without key and, of each key, the
 * oldest row if that one is ready: exactly the rows that may start a claim. PENDING holds all
 * pending rows (depth, oldest, expiry).
 * Owns:   its heaps, keys and name; rows belong to the outbox.
 * Thread: loop thread only.
 * Errors: adding: GB_UNAVAILABLE (out of memory), nothing changed. Every other change can't fail:
 *         the heaps have room for all rows. */

enum gb_memory_heap_kind { GB_MEMORY_READY, GB_MEMORY_PENDING, GB_MEMORY_HEAPS };

struct gb_memory_row;
struct gb_memory_key {
    struct gb_list rows;             /* every row of the key that has not ended, oldest first */
    struct gb_memory_row *candidate; /* the one in READY; NULL: none */
};
struct gb_memory_heap {
    struct gb_memory_row **rows; /* rows[0] is unused */
    uint32_t count;
};
struct gb_memory_partition {
    struct gb_map keys; /* ordering key -> struct gb_memory_key */
    struct gb_memory_heap heap[GB_MEMORY_HEAPS];
    uint32_t capacity; /* of both heaps */
    uint32_t rows;     /* pending and claimed */
    struct gb_list busy;
    uint64_t mark; /* highest token version accepted (spec 05 §2.5) */
    uint64_t seq;  /* last one given out */
};

struct gb_memory_row {
    struct gb_memory_partition *partition;
    struct gb_memory_key *key;    /* NULL: keyless */
    struct gb_list_node key_node; /* in key->rows */
    /* In the partition's busy list, or the outbox's list of ended rows. */
    struct gb_list_node state_node;
    uint32_t position[GB_MEMORY_HEAPS]; /* 0 = not in this heap */
    enum gb_outbox_status status;
    struct gb_memory_row *next;     /* in the list of one call */
    struct gb_outbox_record record; /* views into `text`; the envelope is a reference of its own */
    char *claimed_by;
    char *text;
    int64_t ended_at_ms;
    struct gb_bytes identity; /* follows the struct */
};

void gb_memory_partition_init(struct gb_memory_partition *p);
void gb_memory_partition_deinit(struct gb_memory_partition *p);
struct gb_err gb_memory_partition_add(struct gb_memory_partition *p, struct gb_memory_row *row);
/* Takes the row out: it has ended, or its persist is undone. */
void gb_memory_partition_remove(struct gb_memory_partition *p, struct gb_memory_row *row);
/* Raises the mark; every busy row becomes ready. A lower version does nothing. */
void gb_memory_partition_raise(struct gb_memory_partition *p, uint64_t version);
/* The oldest row a claim may take next; NULL: none. */
struct gb_memory_row *gb_memory_partition_next(const struct gb_memory_partition *p);
/* Makes that row busy. The next row of its key may then follow in the same claim, until
 * gb_memory_partition_taken has been called for each taken row. */
void gb_memory_partition_take(struct gb_memory_partition *p, struct gb_memory_row *row);
void gb_memory_partition_taken(struct gb_memory_partition *p, struct gb_memory_row *row);
/* Claimed to pending. */
void gb_memory_partition_release(struct gb_memory_partition *p, struct gb_memory_row *row);
/* created_at of the oldest pending row; 0 = none. */
int64_t gb_memory_partition_oldest_ms(const struct gb_memory_partition *p);

#endif
