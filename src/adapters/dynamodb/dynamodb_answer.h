#ifndef GB_ADAPTERS_DYNAMODB_DYNAMODB_ANSWER_H
#define GB_ADAPTERS_DYNAMODB_DYNAMODB_ANSWER_H

#include "adapters/dynamodb/dynamodb_error.h"
#include "adapters/dynamodb/dynamodb_item.h"

/* Answers of DynamoDB, read without allocation.
 * Owns:   nothing; views point into the answer.
 * Thread: any. Pure.
 * Errors: GB_UNAVAILABLE: no JSON of the expected form (what was asked may have been done). */

enum gb_dynamodb_action {
    GB_DYNAMODB_GET_ITEM = 0,
    GB_DYNAMODB_PUT_ITEM,
    GB_DYNAMODB_UPDATE_ITEM,
    GB_DYNAMODB_DELETE_ITEM,
    GB_DYNAMODB_QUERY,
    GB_DYNAMODB_SCAN,
    GB_DYNAMODB_TRANSACT_WRITE_ITEMS,
    GB_DYNAMODB_DESCRIBE_TABLE,
    GB_DYNAMODB_CREATE_TABLE,
    GB_DYNAMODB_DESCRIBE_TIME_TO_LIVE,
    GB_DYNAMODB_UPDATE_TIME_TO_LIVE,
    GB_DYNAMODB_ACTIONS,
    /* only inside a transaction */
    GB_DYNAMODB_CONDITION_CHECK = GB_DYNAMODB_ACTIONS,
};
const char *gb_dynamodb_action_name(enum gb_dynamodb_action action); /* "GetItem" */
bool gb_dynamodb_is_write(enum gb_dynamodb_action action);

enum { GB_DYNAMODB_TRANSACTION_MAX = 100 };

/* Empty views for what the answer does not have. An answer of the service that refuses is here,
 * too: `item` beside CONDITION_FAILED, `reasons` beside CANCELLED. */
struct gb_dynamodb_answer {
    struct gb_bytes item;       /* GetItem: empty = no such item */
    struct gb_bytes attributes; /* Put, Update, Delete: what ReturnValues asked for */
    struct gb_bytes items;      /* Query, Scan: for struct gb_dynamodb_items */
    uint64_t count, scanned;
    struct gb_bytes last_key; /* Query, Scan: more pages follow */
    struct gb_bytes reasons;  /* for gb_dynamodb_reasons_read */
    struct gb_bytes table;    /* DescribeTable, CreateTable: for gb_dynamodb_table_read */
    struct gb_bytes ttl_status, ttl_attribute; /* DescribeTimeToLive: "ENABLED", "ttl" */
    struct gb_bytes capacity;                  /* an object, or an array of them */
};
/* `out` is all empty on failure. */
struct gb_err gb_dynamodb_answer_read(enum gb_dynamodb_action action, struct gb_bytes json,
                                      struct gb_dynamodb_answer *out);
/* Of an error's body, whatever that is: only item and reasons. */
void gb_dynamodb_answer_read_error(struct gb_bytes body, struct gb_dynamodb_answer *out);

/* One reason for each action of a cancelled transaction, in their order. */
struct gb_dynamodb_reason {
    enum gb_dynamodb_error error;
    struct gb_bytes item; /* with GB_DYNAMODB_RETURN_ON_FAILURE; else empty */
};
/* The first `max` of them; answers how many there are. Malformed ones are GB_DYNAMODB_UNKNOWN. */
size_t gb_dynamodb_reasons_read(struct gb_bytes reasons, struct gb_dynamodb_reason *out,
                                size_t max);
/* The error of a cancelled transaction: a failed condition before anything else, then the first
 * action that was to blame; GB_DYNAMODB_UNKNOWN without reasons. `*index` is the action's place. */
enum gb_dynamodb_error gb_dynamodb_reasons_verdict(struct gb_bytes reasons, size_t *index);

/* Consumed capacity, one visit for a table (`index` empty) and one for each of its indexes. Figures
 * are thousandths; what the answer does not split counts as what the action is. */
struct gb_dynamodb_capacity {
    struct gb_bytes table, index;
    uint64_t read_units, write_units;
};
typedef void gb_dynamodb_capacity_fn(void *arg, const struct gb_dynamodb_capacity *capacity);
void gb_dynamodb_capacity_read(enum gb_dynamodb_action action, struct gb_bytes capacity,
                               gb_dynamodb_capacity_fn *visit, void *arg);

#endif
