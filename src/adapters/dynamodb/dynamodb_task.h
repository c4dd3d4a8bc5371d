#ifndef GB_ADAPTERS_DYNAMODB_DYNAMODB_TASK_H
#define GB_ADAPTERS_DYNAMODB_DYNAMODB_TASK_H

#include "adapters/dynamodb/dynamodb_client.h"

/* Port calls of a store that has one request under way for each of them: their admission, deadline,
 * cancel, and the store's close.
 * Owns:   a desk its copy of the table's name; a task, its request and scratch live from
 *         gb_dynamodb_task_new to gb_dynamodb_task_end.
 * Thread: loop thread only.
 * Errors: GB_UNAVAILABLE: `queue_max` calls are pending, closed, out of memory; GB_CANCELLED; those
 *         of the client. */

struct gb_dynamodb_desk {
    struct gb_reactor *reactor;
    struct gb_dynamodb_client *client;
    char *table;
    size_t queue_max, pending;
    struct gb_op *close_op;
    void (*free)(struct gb_dynamodb_desk *desk); /* calls gb_dynamodb_desk_deinit */
};
struct gb_err gb_dynamodb_desk_init(struct gb_dynamodb_desk *d, const char *table);
void gb_dynamodb_desk_deinit(struct gb_dynamodb_desk *d);
/* Lets pending calls end, then frees the store. */
void gb_dynamodb_desk_close(struct gb_dynamodb_desk *d, struct gb_op *op, gb_done_fn *done,
                            void *arg);

struct gb_dynamodb_task;
typedef void gb_dynamodb_task_fn(struct gb_dynamodb_task *t);
struct gb_dynamodb_task {
    struct gb_dynamodb_desk *desk;
    struct gb_op *op;
    struct gb_dynamodb_call call;
    struct gb_str scratch;
    gb_dynamodb_task_fn *next;
    gb_dynamodb_task_fn *deinit; /* what the task holds besides; NULL ok */
    uint64_t deadline_ns;
    bool cancelled;
};
/* `size` zeroed bytes that begin with a task; NULL when the op is refused, it is finished then. */
void *gb_dynamodb_task_new(struct gb_dynamodb_desk *d, size_t size, struct gb_op *op,
                           gb_done_fn *done, void *arg);
/* Sends what was written into t->call; `next` looks at its result. A cancelled task ends instead.
 * Nothing may be done with the task after it. */
void gb_dynamodb_task_send(struct gb_dynamodb_task *t, gb_dynamodb_task_fn *next);
void gb_dynamodb_task_end(struct gb_dynamodb_task *t, struct gb_err result);

#endif
