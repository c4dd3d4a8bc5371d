#ifndef GB_TESTS_CONTRACT_DLQ_CONTRACT_H
#define GB_TESTS_CONTRACT_DLQ_CONTRACT_H

#include "contract/store_driver.h"
#include "ports/dlq.h"

/* The dead-letter suite of spec 05: acceptance checks 14, 15, 29, cancel, close, limits. One
 * backend runs it with dlq_contract_run.
 * Owns:   the backend owns its store and driver between set_up and tear_down.
 * Thread: the test's.
 * Errors: none; what goes wrong fails the test. */
struct dlq_backend {
    const char *name;
    bool durable;
    size_t full_at; /* set_up_small: that many entries, or calls that wait, are the limit */
    void (*set_up)(struct dlq_backend *b);
    void (*set_up_small)(struct dlq_backend *b);
    void (*reopen)(struct dlq_backend *b);
    void (*tear_down)(struct dlq_backend *b);
    struct store_driver driver;
    struct gb_dlq *store;
    void *ctx;
};
int dlq_contract_run(struct dlq_backend *b);

/* --- calls that wait --- */

/* An entry with this id, route, category and failure time. The caller frees it. */
struct gb_dlq_entry *dlq_entry(const char *id, const char *route, const char *category,
                               int64_t failed_at_ms);
enum gb_code dlq_write(struct dlq_backend *b, const struct gb_dlq_entry *entry);
/* Makes, writes and frees one. */
enum gb_code dlq_store(struct dlq_backend *b, const char *id, const char *route,
                       const char *category, int64_t failed_at_ms);
struct gb_dlq_entry *dlq_get(struct dlq_backend *b, const char *id, enum gb_code *code);
/* Demands exactly these ids in this order (blank-separated). */
void dlq_list_is(struct dlq_backend *b, const struct gb_dlq_filter *filter, const char *want);
size_t dlq_list_count(struct dlq_backend *b, const struct gb_dlq_filter *filter);
uint64_t dlq_delete(struct dlq_backend *b, const char *const *ids, size_t count);
uint64_t dlq_delete_matches(struct dlq_backend *b, const struct gb_dlq_filter *filter);
uint64_t dlq_count(struct dlq_backend *b);

#endif
