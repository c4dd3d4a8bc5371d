#ifndef GB_ADAPTERS_DYNAMODB_DYNAMODB_CALL_H
#define GB_ADAPTERS_DYNAMODB_DYNAMODB_CALL_H

#include "adapters/dynamodb/dynamodb_answer.h"

/* One request to DynamoDB: written part by part into its own buffer, sent by gb_dynamodb_start
 * (dynamodb_client.h), with the answer as views. A store keeps its calls and their buffers.
 * Owns:   the call owns request and answer; it must not move between begin and `done`. Texts given
 *         to the parts are copied, but table names are borrowed until `done`. Views of the answer
 *         are valid until the next gb_dynamodb_start or deinit: a next page can be begun from them.
 * Thread: loop thread only.
 * Errors: op.result; out of memory while writing is reported by `done`, too.
 *
 * What is tried again inside, by the AWS client's policy (spec 04 A5, three attempts in all within
 * op.deadline_ns): every operation after throttling, an expired token, a wrong clock, a
 * TransactionConflictException, a transaction of the same token that still runs, or a request that
 * never left. After an attempt whose end is not known (5xx, time-out, cut or damaged answer) only
 * what can't do harm twice is: reads, TransactWriteItems (its ClientRequestToken makes it one), and
 * a write with `repeatable` set. A cancelled transaction is never tried again inside, whatever its
 * reasons.
 *
 * `outcome` says what to believe of a write. UNKNOWN means that it may have been applied although
 * the result is an error: read back, or start the same call once more (a transaction keeps its
 * token, which the service knows for ten minutes; gb_dynamodb_token for one that is written anew).
 * A repeatable conditional write that was applied by an attempt whose answer got lost ends in
 * CONDITION_FAILED with outcome UNKNOWN; with GB_DYNAMODB_RETURN_ON_FAILURE the item that stands
 * there comes along, so that the store sees whether it is its own work. CONDITION_FAILED with
 * NOT_APPLIED was someone else's. */

enum { GB_DYNAMODB_TOKEN_SIZE = 37 };

enum gb_dynamodb_outcome {
    GB_DYNAMODB_NOT_APPLIED = 0, /* nothing was done */
    GB_DYNAMODB_APPLIED,         /* the result is GB_OK */
    GB_DYNAMODB_OUTCOME_UNKNOWN,
};

struct gb_dynamodb_call {
    struct gb_op op;         /* op.deadline_ns required: covers waiting and all attempts */
    bool repeatable;         /* a write that may be applied twice; gb_dynamodb_begin clears it */
    size_t item_room;        /* of an item: what later updates add to it; the same */
    struct gb_json_writer w; /* writes into the part that is open */
    /* out */
    enum gb_dynamodb_error error; /* NO_ERROR: done, or no word of the service */
    enum gb_dynamodb_outcome outcome;
    struct gb_dynamodb_answer answer;
    uint32_t attempts;
    /* private */
    struct gb_aws_call aws;
    enum gb_dynamodb_action action;
    const char *table; /* of a transaction: its first action's */
    char token[GB_DYNAMODB_TOKEN_SIZE];
    size_t actions;        /* of a transaction */
    size_t item_start;     /* where the item that is open begins; 0 = none */
    struct gb_err refusal; /* why it can't be sent; GB_OK */
    bool complete, running;
    struct gb_dynamodb_client *client;
};

/* Starts a request, empties what was written and answered before; the memory stays. `table` is NULL
 * for a transaction only. */
void gb_dynamodb_begin(struct gb_dynamodb_call *call, enum gb_dynamodb_action action,
                       const char *table);
/* Not while pending; accepts zeroed memory. */
void gb_dynamodb_call_deinit(struct gb_dynamodb_call *call);

/* --- parts, in any order, each at most once in a request or an action of a transaction --- */

enum gb_dynamodb_object {
    GB_DYNAMODB_KEY = 0,
    GB_DYNAMODB_ITEM,
    GB_DYNAMODB_VALUES, /* ExpressionAttributeValues: names begin with ':' */
};
/* Opens an item; write its attributes with gb_dynamodb_w_...(&call->w, ...), then close it. */
void gb_dynamodb_object(struct gb_dynamodb_call *call, enum gb_dynamodb_object object);
void gb_dynamodb_object_end(struct gb_dynamodb_call *call);

enum gb_dynamodb_text {
    GB_DYNAMODB_CONDITION = 0, /* ConditionExpression */
    GB_DYNAMODB_UPDATE,        /* UpdateExpression */
    GB_DYNAMODB_KEY_CONDITION, /* KeyConditionExpression */
    GB_DYNAMODB_FILTER,        /* FilterExpression */
    GB_DYNAMODB_PROJECTION,    /* ProjectionExpression */
    GB_DYNAMODB_INDEX,         /* IndexName */
    GB_DYNAMODB_RETURN_VALUES, /* "ALL_OLD", "ALL_NEW", "UPDATED_OLD", "UPDATED_NEW" */
};
void gb_dynamodb_text(struct gb_dynamodb_call *call, enum gb_dynamodb_text part, const char *text);

enum gb_dynamodb_flag {
    GB_DYNAMODB_CONSISTENT_READ = 0,
    GB_DYNAMODB_DESCENDING,
    GB_DYNAMODB_COUNT_ONLY,
    GB_DYNAMODB_RETURN_ON_FAILURE, /* the item that failed the condition comes with the error */
};
void gb_dynamodb_flag(struct gb_dynamodb_call *call, enum gb_dynamodb_flag flag);

struct gb_dynamodb_name {
    const char *alias, *name; /* "#status", "status" */
};
void gb_dynamodb_names(struct gb_dynamodb_call *call, const struct gb_dynamodb_name *names,
                       size_t count);
void gb_dynamodb_limit(struct gb_dynamodb_call *call, uint32_t items); /* passed, not matching */
/* The last_key of a page: of this call, too. Empty: from the start. */
void gb_dynamodb_start_key(struct gb_dynamodb_call *call, struct gb_bytes last_key);
void gb_dynamodb_ttl(struct gb_dynamodb_call *call, const char *attribute); /* UpdateTimeToLive */

/* --- transactions: begin, then up to 100 times action, parts, action_end --- */

/* PUT_ITEM, UPDATE_ITEM, DELETE_ITEM or CONDITION_CHECK. One more than fits is
 * GB_INVALID_PAYLOAD in `done`. */
void gb_dynamodb_action(struct gb_dynamodb_call *call, enum gb_dynamodb_action action,
                        const char *table);
void gb_dynamodb_action_end(struct gb_dynamodb_call *call);
/* To repeat a transaction by another call; unset, the first start makes one, which stays for
 * further starts of what was written. Up to 36 characters. */
void gb_dynamodb_token(struct gb_dynamodb_call *call, const char *token);

#endif
