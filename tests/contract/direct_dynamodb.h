#ifndef GB_TESTS_CONTRACT_DIRECT_DYNAMODB_H
#define GB_TESTS_CONTRACT_DIRECT_DYNAMODB_H

#include "contract/outbox_dynamodb.h"

/* One or two processes whose records are stored claimed and in no index (docs/decisions/0623), and
 * what the table holds of them. The first one's requests go through the fault proxy as "A".
 * Owns:   both stores and the first one's client, between set-up and tear-down.
 * Thread: the test's.
 * Errors: what goes wrong fails the test. */

#define DIRECT_S1 "SESSION#s1"

struct direct_bench {
    struct dynamodb_rig *rig; /* the test's */
    struct outbox_dynamodb dynamodb[2];
    struct outbox_backend backend[2];
    bool two;
    struct gb_dynamodb_call call;
};
extern struct direct_bench direct_bench;

/* Of cmocka. Small: three records fit the queue. */
int direct_set_up(void **state);
int direct_set_up_small(void **state);
int direct_tear_down(void **state);
void direct_open_second(void);
/* Both wall clocks go on. */
void direct_pass(int64_t ms);
struct outbox_spec direct_spec(const char *envelope_id, const char *key);
void direct_store(struct outbox_backend *b, const char *envelope_id);
/* A claim that leaves the partition empty and `owner` its holder. */
void direct_own(struct outbox_backend *b, const char *owner, uint64_t version);
/* Whether the record's row holds the text. */
bool direct_has(const char *envelope_id, const char *what);
/* Either in all of the usual layout, false, or in none of it. */
bool direct_is(const char *envelope_id);

#endif
