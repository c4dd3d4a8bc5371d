#ifndef GB_TESTS_SUPPORT_DYNAMODB_BENCH_H
#define GB_TESTS_SUPPORT_DYNAMODB_BENCH_H

#include "adapters/dynamodb/dynamodb_client.h"
#include "support/fake_http.h"

/* A DynamoDB client on a fake HTTP client and a reactor whose clock the bench moves: what the
 * allocation ladders of the stores stand on, and small tables without allocations of their own.
 * Owns:   all of it between open and close; answers' bodies are borrowed.
 * Thread: the test's.
 * Errors: set-up failures and an operation that does not end exactly once fail the test. */

struct dynamodb_bench {
    struct gb_reactor *r;
    struct fake_http http;
    struct gb_aws_credentials *credentials;
    struct gb_dynamodb_client *client;
    uint64_t now_ns;
    unsigned done; /* operations */
};

/* All but the client. Each request is answered by `body` and status 200 until http.serve is set. */
void dynamodb_bench_open(struct dynamodb_bench *b, const char *body);
struct gb_err dynamodb_bench_client(struct dynamodb_bench *b, uint32_t attempts_max);
/* Operations begin and end like this: store->ops->x(store, &q, dynamodb_bench_done, b);
 * dynamodb_bench_run(b); */
void dynamodb_bench_done(struct gb_op *op, void *bench);
void dynamodb_bench_run(struct dynamodb_bench *b);
/* A store's constructor, each of its allocations failing in turn; `make` sees to the pointer. */
void dynamodb_bench_constructor(struct gb_err (*make)(void));
/* After its stores. */
void dynamodb_bench_close(struct dynamodb_bench *b);
#define DYNAMODB_BENCH_CLOSE_STORE(b, store)                                                       \
    do {                                                                                           \
        struct gb_op close_op = {0};                                                               \
        (store)->ops->close((store), &close_op, dynamodb_bench_done, (b));                         \
        dynamodb_bench_run(b);                                                                     \
        assert_int_equal(close_op.result.code, GB_OK);                                             \
    } while (0)

/* Log lines go nowhere from now on. */
void dynamodb_bench_quiet(void);
/* A result that out of memory may have. */
void dynamodb_bench_check(const struct gb_op *op);

/* --- requests, as a table of the test reads them --- */

/* Fails unless the body is one whole JSON document: nothing is sent half written. */
void dynamodb_bench_whole(const struct gb_http_request *q);
bool dynamodb_bench_is(const struct gb_http_request *q, const char *action); /* "PutItem" */
bool dynamodb_bench_has(const struct gb_http_request *q, const char *text);
/* What stands behind `before` in the body, up to the next quote; false without it. */
bool dynamodb_bench_text(const struct gb_http_request *q, const char *before, char *out,
                         size_t size);
/* The number there; 0 without one. */
uint64_t dynamodb_bench_number(const struct gb_http_request *q, const char *before);

struct fake_http_answer dynamodb_bench_body(const char *body);
/* ConditionalCheckFailed, with the item that stands there ("" = none). */
struct fake_http_answer dynamodb_bench_refusal(char *room, size_t size, const char *item);
/* Applied, but cut off before the answer. */
struct fake_http_answer dynamodb_bench_cut(void);

#endif
