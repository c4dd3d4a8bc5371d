#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/digest.h"
#include "base/duration.h"
#include "base/log.h"
#include "contract/dynamodb_driver.h"
#include "contract/io_peer.h"

/* The client over real connections against a peer that fails by script: what the call reports, and
 * how often the peer did what was asked. The peer knows one item, which a conditional put makes
 * once and a counter's update raises each time. */

enum effect {
    DO = 0,     /* and say so */
    THROTTLE,   /* don't */
    FAULT,      /* 500, not done */
    FAULT_DONE, /* 500, but done */
    SILENT,     /* done, never answered */
    CUT,        /* done, closed without a word */
    HALF,       /* done, closed after half of the answer */
    DAMAGED,    /* done, the answer does not match its checksum */
    GARBAGE,    /* done, 200 with something else than JSON, checksum right */
    NO_HTTP,    /* done, answered with something else than HTTP */
    EXPIRED,    /* 403 ExpiredTokenException, not done */
    DROP,       /* closed, not done */
};

enum { EFFECTS_MAX = 4, HEAD_MAX = 8192 };

static struct peer {
    enum effect effects[EFFECTS_MAX]; /* of the requests in turn; then DO */
    atomic_uint seen;                 /* requests since the script began */
    atomic_uint made;                 /* the item is there */
    atomic_uint counted;              /* updates */
} peer;

/* --- the peer --- */

static size_t read_head(struct gb_peer_conn *c, char *head)
{
    size_t size = 0;
    while (size < 4 || memcmp(head + size - 4, "\r\n\r\n", 4) != 0) {
        if (size + 1 >= HEAD_MAX || gb_peer_read(c, head + size, 1) == 0) return 0;
        size++;
    }
    head[size] = '\0';
    return size;
}

static void answer(struct gb_peer_conn *c, int status, const char *body, uint32_t crc_off,
                   size_t cut_bytes)
{
    char text[1024];
    int size = snprintf(text, sizeof text,
                        "HTTP/1.1 %d X\r\nContent-Type: application/x-amz-json-1.0\r\n"
                        "X-Amz-Crc32: %u\r\nContent-Length: %zu\r\n\r\n%s",
                        status, gb_crc32(gb_bytes_c(body)) + crc_off, strlen(body), body);
    (void)gb_peer_write(c, text, (size_t)size - cut_bytes);
}

#define MINE "{\"PK\":{\"S\":\"a\"},\"by\":{\"S\":\"me\"}}"

/* Does what was asked; what DynamoDB would answer. */
static const char *perform(const char *head, int *status)
{
    *status = 200;
    if (strstr(head, ".GetItem") != NULL) return "{\"Item\":" MINE "}";
    if (strstr(head, ".UpdateItem") != NULL) {
        atomic_fetch_add(&peer.counted, 1);
        return "{\"Attributes\":{\"n\":{\"N\":\"1\"}}}";
    }
    /* A transaction's token makes a repetition a success. */
    if (atomic_exchange(&peer.made, 1) == 0 || strstr(head, ".TransactWriteItems") != NULL)
        return "{}";
    *status = 400;
    return "{\"__type\":\"com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException\","
           "\"Message\":\"The conditional request failed\",\"Item\":" MINE "}";
}

/* False ends the connection. */
static bool serve_one(struct gb_peer_conn *c, const char *head)
{
    unsigned n = atomic_fetch_add(&peer.seen, 1);
    enum effect effect = n < EFFECTS_MAX ? peer.effects[n] : DO;
    bool does = effect != THROTTLE && effect != FAULT && effect != EXPIRED && effect != DROP;
    int status = 200;
    const char *body = does ? perform(head, &status) : "";
    switch (effect) {
    case DO:
        answer(c, status, body, 0, 0);
        return true;
    case THROTTLE:
        answer(c, 400, "{\"__type\":\"x#ProvisionedThroughputExceededException\"}", 0, 0);
        return true;
    case FAULT:
    case FAULT_DONE:
        answer(c, 500, "{\"__type\":\"x#InternalServerError\"}", 0, 0);
        return true;
    case SILENT:
        (void)gb_peer_wait(c, 20000);
        return false;
    case HALF:
        answer(c, status, body, 0, strlen(body) / 2 + 1);
        return false;
    case DAMAGED:
        answer(c, status, body, 1, 0);
        return true;
    case GARBAGE:
        answer(c, 200, "<html>{\"Item\":", 0, 0);
        return true;
    case NO_HTTP:
        (void)gb_peer_write(c, "what?\r\n\r\n", 9);
        return false;
    case EXPIRED:
        answer(c, 403, "{\"__type\":\"x#ExpiredTokenException\"}", 0, 0);
        return true;
    case CUT:
    case DROP:
        return false;
    }
    return false;
}

static void serve(struct gb_peer_conn *c, void *arg)
{
    (void)arg;
    char *head = malloc(HEAD_MAX);
    bool more = true;
    while (more && read_head(c, head) > 0) {
        const char *length = strstr(head, "Content-Length: ");
        size_t body_size = length == NULL ? 0 : (size_t)strtoul(length + 16, NULL, 10);
        char *body = malloc(body_size + 1);
        more = gb_peer_read_all(c, body, body_size) && serve_one(c, head);
        free(body);
    }
    free(head);
}

/* --- the calls --- */

static void make_get(struct gb_dynamodb_call *call)
{
    gb_dynamodb_begin(call, GB_DYNAMODB_GET_ITEM, "t");
}

static void make_put(struct gb_dynamodb_call *call)
{
    gb_dynamodb_begin(call, GB_DYNAMODB_PUT_ITEM, "t");
    gb_dynamodb_flag(call, GB_DYNAMODB_RETURN_ON_FAILURE);
}

static void make_repeatable_put(struct gb_dynamodb_call *call)
{
    make_put(call);
    call->repeatable = true;
}

static void make_count(struct gb_dynamodb_call *call)
{
    gb_dynamodb_begin(call, GB_DYNAMODB_UPDATE_ITEM, "t");
}

static void make_transaction(struct gb_dynamodb_call *call)
{
    gb_dynamodb_begin(call, GB_DYNAMODB_TRANSACT_WRITE_ITEMS, NULL);
    gb_dynamodb_action(call, GB_DYNAMODB_PUT_ITEM, "t");
    gb_dynamodb_action_end(call);
}

enum call_kind { GET, PUT, REPEATABLE, COUNT, TRANSACTION, KINDS };
static void (*const makers[KINDS])(struct gb_dynamodb_call *call) = {
    make_get, make_put, make_repeatable_put, make_count, make_transaction};
static const char *const kind_names[KINDS] = {"get", "put", "repeatable put", "count",
                                              "transaction"};

/* What a call must report for one effect on its first request. */
struct expected {
    enum gb_code code;
    enum gb_dynamodb_outcome outcome;
    unsigned seen; /* requests */
};
#define FINE(n)                                                                                    \
    {                                                                                              \
        GB_OK, GB_DYNAMODB_APPLIED, n                                                              \
    }
#define OPEN(code, n)                                                                              \
    {                                                                                              \
        code, GB_DYNAMODB_OUTCOME_UNKNOWN, n                                                       \
    }
static const struct row {
    const char *name;
    enum effect effect;
    struct expected want[KINDS]; /* get, put, repeatable put, count, transaction */
} rows[] = {
    {"done", DO, {FINE(1), FINE(1), FINE(1), FINE(1), FINE(1)}},
    {"throttled", THROTTLE, {FINE(2), FINE(2), FINE(2), FINE(2), FINE(2)}},
    {"500", FAULT, {FINE(2), OPEN(GB_UNAVAILABLE, 1), FINE(2), OPEN(GB_UNAVAILABLE, 1), FINE(2)}},
    {"500 but done",
     FAULT_DONE,
     {FINE(2), OPEN(GB_UNAVAILABLE, 1), OPEN(GB_VERSION_MISMATCH, 2), OPEN(GB_UNAVAILABLE, 1),
      FINE(2)}},
    {"silent",
     SILENT,
     {FINE(2), OPEN(GB_TIMEOUT, 1), OPEN(GB_VERSION_MISMATCH, 2), OPEN(GB_TIMEOUT, 1), FINE(2)}},
    {"cut",
     CUT,
     {FINE(2), OPEN(GB_CONNECTION_LOST, 1), OPEN(GB_VERSION_MISMATCH, 2),
      OPEN(GB_CONNECTION_LOST, 1), FINE(2)}},
    {"half",
     HALF,
     {FINE(2), OPEN(GB_CONNECTION_LOST, 1), OPEN(GB_VERSION_MISMATCH, 2),
      OPEN(GB_CONNECTION_LOST, 1), FINE(2)}},
    {"damaged",
     DAMAGED,
     {FINE(2), OPEN(GB_CONNECTION_LOST, 1), OPEN(GB_VERSION_MISMATCH, 2),
      OPEN(GB_CONNECTION_LOST, 1), FINE(2)}},
    {"garbage",
     GARBAGE,
     {OPEN(GB_UNAVAILABLE, 1), OPEN(GB_UNAVAILABLE, 1), OPEN(GB_UNAVAILABLE, 1),
      OPEN(GB_UNAVAILABLE, 1), OPEN(GB_UNAVAILABLE, 1)}},
    {"no HTTP",
     NO_HTTP,
     {FINE(2), OPEN(GB_CONNECTION_LOST, 1), OPEN(GB_VERSION_MISMATCH, 2),
      OPEN(GB_CONNECTION_LOST, 1), FINE(2)}},
    {"token expired", EXPIRED, {FINE(2), FINE(2), FINE(2), FINE(2), FINE(2)}},
    {"dropped",
     DROP,
     {FINE(2), OPEN(GB_CONNECTION_LOST, 1), FINE(2), OPEN(GB_CONNECTION_LOST, 1), FINE(2)}},
};

/* --- the tests --- */

struct fixture {
    struct gb_peer *listener;
    struct dynamodb_driver driver;
    struct gb_dynamodb_call call;
};

static void open_fixture(struct fixture *f)
{
    char endpoint[64];
    peer.effects[0] = DO;
    f->call = (struct gb_dynamodb_call){0};
    f->listener = gb_peer_start(&(struct gb_peer_cfg){.handle = serve});
    (void)snprintf(endpoint, sizeof endpoint, "http://127.0.0.1:%d", gb_peer_port(f->listener));
    dynamodb_driver_open(&f->driver, &(struct dynamodb_driver_cfg){
                                         .endpoint = endpoint, .attempt_timeout_ns = 500 * GB_MS});
}

static void close_fixture(struct fixture *f)
{
    gb_dynamodb_call_deinit(&f->call);
    dynamodb_driver_close(&f->driver);
    gb_peer_stop(f->listener);
}

static void script(enum effect first, enum effect second)
{
    peer.effects[0] = first;
    peer.effects[1] = second;
    atomic_store(&peer.seen, 0);
    atomic_store(&peer.made, 0);
    atomic_store(&peer.counted, 0);
}

/* A connection that is kept from a request before: libcurl would repeat what dies on it. */
static void warm_up(struct fixture *f)
{
    script(DO, DO);
    make_get(&f->call);
    assert_int_equal(dynamodb_driver_run(&f->driver, &f->call), GB_OK);
}

static void check(const struct fixture *f, const struct row *row, enum call_kind kind, bool kept)
{
    const struct gb_dynamodb_call *call = &f->call;
    const struct expected *want = &row->want[kind];
    unsigned seen = atomic_load(&peer.seen);
    if (call->op.result.code != want->code || call->outcome != want->outcome ||
        seen != want->seen) {
        fail_msg("%s, %s%s: %s, outcome %d, %u requests", row->name, kind_names[kind],
                 kept ? " on a kept connection" : "", call->op.result.message, call->outcome, seen);
    }
    if (kind == COUNT) assert_true(atomic_load(&peer.counted) <= 1); /* never twice */
    if (want->code == GB_VERSION_MISMATCH) /* the store sees its own work */
        assert_true(gb_bytes_equal_c(call->answer.item, MINE));
}

static void every_fault_of_every_call(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        for (int kind = 0; kind < 2 * KINDS; kind++) {
            struct fixture f;
            bool kept = kind >= KINDS;
            open_fixture(&f);
            if (kept) warm_up(&f);
            script(rows[i].effect, DO);
            makers[kind % KINDS](&f.call);
            (void)dynamodb_driver_run(&f.driver, &f.call);
            check(&f, &rows[i], (enum call_kind)(kind % KINDS), kept);
            close_fixture(&f);
        }
    }
}

static void faults_that_stay_end_the_call(void **state)
{
    static const struct {
        enum effect effect;
        enum gb_code code;
        unsigned seen;
        enum gb_dynamodb_outcome outcome;
    } ends[] = {
        {THROTTLE, GB_THROTTLED, 3, GB_DYNAMODB_NOT_APPLIED},
        {FAULT, GB_UNAVAILABLE, 3, GB_DYNAMODB_OUTCOME_UNKNOWN},
        {SILENT, GB_TIMEOUT, 3, GB_DYNAMODB_OUTCOME_UNKNOWN},
        {EXPIRED, GB_TEMPORARY_AUTH_FAILURE, 2, GB_DYNAMODB_NOT_APPLIED},
    };
    (void)state;
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        struct fixture f;
        open_fixture(&f);
        script(ends[i].effect, ends[i].effect);
        peer.effects[2] = ends[i].effect;
        make_transaction(&f.call);
        assert_int_equal(dynamodb_driver_run(&f.driver, &f.call), ends[i].code);
        assert_int_equal(atomic_load(&peer.seen), ends[i].seen);
        assert_int_equal(f.call.outcome, ends[i].outcome);
        peer.effects[2] = DO;
        close_fixture(&f);
    }
}

static void nobody_listens(void **state)
{
    struct fixture f;
    (void)state;
    open_fixture(&f);
    gb_peer_stop(f.listener);
    make_count(&f.call);
    assert_int_equal(dynamodb_driver_run(&f.driver, &f.call), GB_CONNECTION_LOST);
    assert_int_equal(f.call.outcome, GB_DYNAMODB_NOT_APPLIED);
    assert_int_equal(f.call.attempts, 3); /* what never left may go again */
    f.listener = gb_peer_start(&(struct gb_peer_cfg){.handle = serve});
    close_fixture(&f);
}

static void ignore(struct gb_op *op, void *arg)
{
    (void)op;
    (void)arg;
}

static void close_with_calls_under_way(void **state)
{
    struct fixture f;
    struct gb_dynamodb_call calls[20];
    (void)state;
    memset(calls, 0, sizeof calls);
    open_fixture(&f);
    script(SILENT, SILENT);
    for (size_t i = 0; i < 20; i++) {
        make_get(&calls[i]);
        dynamodb_driver_start(&f.driver, &calls[i]);
    }
    gb_dynamodb_client_close(f.driver.client, &f.driver.close_op, ignore, NULL);
    dynamodb_driver_wait(&f.driver);
    f.driver.client = NULL;
    for (size_t i = 0; i < 20; i++) {
        assert_int_equal(calls[i].op.result.code, GB_CANCELLED);
        gb_dynamodb_call_deinit(&calls[i]);
    }
    close_fixture(&f);
}

static void quiet(void *arg, enum gb_log_level level, const char *line, size_t size)
{
    (void)arg;
    (void)level;
    (void)line;
    (void)size;
}

int main(void)
{
    gb_log_set_sink(quiet, NULL);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_fault_of_every_call),
        cmocka_unit_test(faults_that_stay_end_the_call),
        cmocka_unit_test(nobody_listens),
        cmocka_unit_test(close_with_calls_under_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
