#ifndef GB_ADAPTERS_DYNAMODB_DYNAMODB_PROVISION_H
#define GB_ADAPTERS_DYNAMODB_DYNAMODB_PROVISION_H

#include "adapters/dynamodb/dynamodb_client.h"
#include "adapters/dynamodb/dynamodb_tables.h"

/* Checks or creates the tables of the stores, one after the other (spec 05 §9.1, §9.3).
 * Owns:   borrows client, reactor and wants until `done`; the rest is the run's own, freed before
 *         `done`.
 * Thread: loop thread only.
 * Errors: op.result is the first error that was not made a warning; the tables behind it are still
 *         looked at. GB_INVALID_CONFIG: another shape, or a lease table whose items expire; what
 *         DescribeTable and CreateTable refuse; GB_TIMEOUT: a new table is not ACTIVE in time;
 *         GB_CANCELLED. Texts begin with the table's name. */

enum gb_dynamodb_provision_mode {
    GB_DYNAMODB_PREFLIGHT = 0, /* a missing table is reported and no error */
    GB_DYNAMODB_PLAN,          /* the same, but looks at shapes only */
    GB_DYNAMODB_CREATE,        /* idempotent: also finishes what an earlier run began */
};
enum gb_dynamodb_news {
    GB_DYNAMODB_NEWS_MISSING = 0,
    GB_DYNAMODB_NEWS_FITS,
    GB_DYNAMODB_NEWS_CREATED,
    GB_DYNAMODB_NEWS_TTL_ENABLED,
    GB_DYNAMODB_NEWS_WARNING, /* with the error that was made one */
    GB_DYNAMODB_NEWS_ERROR,   /* with the error */
};
struct gb_dynamodb_want {
    enum gb_dynamodb_role role;
    const char *table;
    bool ttl;      /* items expire by their attribute `ttl` */
    bool advisory; /* preflight: errors are warnings */
};
struct gb_dynamodb_provision {
    struct gb_op op; /* a deadline covers all tables; none: bounded by the client's attempts */
    struct gb_reactor *reactor;
    struct gb_dynamodb_client *client;
    enum gb_dynamodb_provision_mode mode;
    const struct gb_dynamodb_want *wants;
    size_t want_count;
    void (*report)(void *arg, const struct gb_dynamodb_want *want, enum gb_dynamodb_news news,
                   const struct gb_err *err); /* err: GB_OK unless the news has one */
    void *report_arg;
};
void gb_dynamodb_provision(struct gb_dynamodb_provision *p, gb_done_fn *done, void *arg);

#endif
