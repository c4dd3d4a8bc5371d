#include "adapters/dynamodb/dynamodb_lease.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/duration.h"
#include "support/dynamodb_bench.h"
#include "support/oom.h"

/* The allocation ladder of each operation of the lease store, on a table of one row that judges the
 * conditions: every call ends once, with success or with an error that says "try again"; a success
 * is in the row, a failure has changed nothing or all of it, no interval is made up, and the next
 * call ends well. */

#define TTL (6 * GB_SEC)

static struct row {
    bool present;
    char owner[16];
    uint64_t version, renewed_ms, expires_ms;
    bool observed;
    char fingerprint[80];
    uint64_t elapsed_ns, generation;
} row;
static struct dynamodb_bench b;
static struct gb_lease *store;
static int64_t wall_ms;
static uint64_t mono_ns, seen_from_ns;
static unsigned requests;
static bool cut; /* the next write is applied, and its answer lost */
static char room[2048];

/* --- the table --- */

static void item_of(char *out, size_t size)
{
    char evidence[320] = "";
    if (row.observed) {
        (void)snprintf(evidence, sizeof evidence,
                       ",\"takeover_observation_fingerprint\":{\"S\":\"%s\"},"
                       "\"takeover_observation_elapsed_ns\":{\"N\":\"%llu\"},"
                       "\"takeover_observation_generation\":{\"N\":\"%llu\"}",
                       row.fingerprint, (unsigned long long)row.elapsed_ns,
                       (unsigned long long)row.generation);
    }
    int used = snprintf(
        out, size,
        "{\"PK\":{\"S\":\"LEASE#s\"},\"owner\":{\"S\":\"%s\"},\"version\":{\"N\":\"%llu\"},"
        "\"acquired_at\":{\"N\":\"1000\"},\"renewed_at\":{\"N\":\"%llu\"},"
        "\"expires_at\":{\"N\":\"%llu\"},"
        "\"endpoints\":{\"M\":{\"ht\\ntp\":{\"S\":\"http://h\\n\"}}}%s}",
        row.owner, (unsigned long long)row.version, (unsigned long long)row.renewed_ms,
        (unsigned long long)row.expires_ms, evidence);
    assert_in_range(used, 1, size - 1);
}

static bool owner_is(const struct gb_http_request *q, const char *alias)
{
    char owner[16] = "?";
    (void)dynamodb_bench_text(q, alias, owner, sizeof owner);
    return strcmp(owner, row.owner) == 0;
}

/* What was read: spec 06 §6.1. */
static bool is_as_read(const struct gb_http_request *q)
{
    char fingerprint[80] = "";
    (void)dynamodb_bench_text(q, "\":was_fp\":{\"S\":\"", fingerprint, sizeof fingerprint);
    return owner_is(q, "\":was_owner\":{\"S\":\"") &&
           dynamodb_bench_number(q, "\":was_version\":{\"N\":\"") == row.version &&
           dynamodb_bench_number(q, "\":was_renewed\":{\"N\":\"") == row.renewed_ms &&
           dynamodb_bench_number(q, "\":was_expires\":{\"N\":\"") == row.expires_ms &&
           (row.observed ? strcmp(fingerprint, row.fingerprint) == 0 : fingerprint[0] == '\0') &&
           dynamodb_bench_number(q, "\":was_ns\":{\"N\":\"") == row.elapsed_ns &&
           dynamodb_bench_number(q, "\":was_gen\":{\"N\":\"") == row.generation;
}

static bool is_held(const struct gb_http_request *q)
{
    bool renew = dynamodb_bench_has(q, "SET renewed_at");
    return owner_is(q, "\":owner\":{\"S\":\"") &&
           dynamodb_bench_number(q, "\":version\":{\"N\":\"") == row.version &&
           (!renew || row.expires_ms >= dynamodb_bench_number(q, "\":now\":{\"N\":\""));
}

static void forget_evidence(void)
{
    row.observed = false;
    row.fingerprint[0] = '\0';
    row.elapsed_ns = row.generation = 0;
}

static void set_times(const struct gb_http_request *q, const char *now, const char *expires)
{
    row.renewed_ms = dynamodb_bench_number(q, now);
    row.expires_ms = dynamodb_bench_number(q, expires);
    assert_true(row.renewed_ms > 0 && row.expires_ms > row.renewed_ms);
    assert_true(dynamodb_bench_has(q, "endpoints\":{\"M\":{\"http\":{\"S\":\"http://me\"}}}"));
}

/* False: the condition failed. */
static bool update(const struct gb_http_request *q)
{
    bool has_read = dynamodb_bench_has(q, ":was_owner");
    if (!row.present || !(has_read ? is_as_read(q) : is_held(q))) return false;
    if (dynamodb_bench_has(q, "SET #fp")) {
        row.observed =
            dynamodb_bench_text(q, "\":fp\":{\"S\":\"", row.fingerprint, sizeof row.fingerprint);
        row.elapsed_ns = dynamodb_bench_number(q, "\":ns\":{\"N\":\"");
        row.generation = dynamodb_bench_number(q, "\":gen\":{\"N\":\"");
        assert_true(row.observed && row.generation > 0);
        return true;
    }
    assert_true(dynamodb_bench_has(q, "#fp, #ns, #gen, #ttl"));
    forget_evidence();
    if (dynamodb_bench_has(q, ":nobody")) {
        row.owner[0] = '\0';
        row.expires_ms = 0;
        return true;
    }
    set_times(q, "\":now\":{\"N\":\"", "\":expires\":{\"N\":\"");
    if (!has_read) return true;
    assert_true(dynamodb_bench_text(q, "\":owner\":{\"S\":\"", row.owner, sizeof row.owner));
    row.version = dynamodb_bench_number(q, "\":version\":{\"N\":\"");
    return true;
}

static bool create(const struct gb_http_request *q)
{
    if (row.present) return false;
    row.present = true;
    assert_true(dynamodb_bench_text(q, "\"owner\":{\"S\":\"", row.owner, sizeof row.owner));
    row.version = dynamodb_bench_number(q, "\"version\":{\"N\":\"");
    set_times(q, "\"renewed_at\":{\"N\":\"", "\"expires_at\":{\"N\":\"");
    return true;
}

static struct fake_http_answer serve(void *arg, const struct gb_http_request *q)
{
    char item[1024] = "";
    (void)arg;
    requests++;
    dynamodb_bench_whole(q);
    assert_true(dynamodb_bench_has(q, "\"PK\":{\"S\":\"LEASE#s\"}"));
    if (row.present) item_of(item, sizeof item);
    if (dynamodb_bench_is(q, "GetItem")) {
        (void)snprintf(room, sizeof room, row.present ? "{\"Item\":%s}" : "{}", item);
        return dynamodb_bench_body(room);
    }
    bool applied = dynamodb_bench_is(q, "PutItem") ? create(q) : update(q);
    bool shows = dynamodb_bench_has(q, "ReturnValuesOnCondition");
    if (!applied) return dynamodb_bench_refusal(room, sizeof room, shows ? item : "");
    if (!cut) return dynamodb_bench_body("{}");
    cut = false;
    return dynamodb_bench_cut();
}

/* --- set up --- */

static int64_t wall(void *arg)
{
    (void)arg;
    return wall_ms;
}

static uint64_t mono(void *arg)
{
    (void)arg;
    return mono_ns;
}

static struct gb_err make_store(void)
{
    const struct gb_dynamodb_lease_cfg cfg = {
        .reactor = b.r, .client = b.client, .table = "t", .wall_ms = wall, .mono_ns = mono};
    struct gb_err err = gb_dynamodb_lease_new(&cfg, &store);
    assert_int_equal(store != NULL, !gb_failed(err));
    return err;
}

static void open_bench(void)
{
    row = (struct row){.present = false};
    store = NULL;
    cut = false;
    requests = 0;
    wall_ms = 1000;
    mono_ns = 1;
    dynamodb_bench_open(&b, "{}");
    b.http.serve = serve;
    assert_int_equal(dynamodb_bench_client(&b, 3).code, GB_OK);
}

static void close_bench(void)
{
    if (store != NULL) DYNAMODB_BENCH_CLOSE_STORE(&b, store);
    dynamodb_bench_close(&b);
}

static void constructor(void **state)
{
    (void)state;
    open_bench();
    dynamodb_bench_constructor(make_store);
    close_bench();
}

/* --- operations --- */

static const struct gb_lease_endpoint endpoints[] = {
    {{(const uint8_t *)"http", 4}, {(const uint8_t *)"http://me", 9}}};

/* Everything that was handed out is whole. */
static void check_holder(const struct gb_lease_holder *h)
{
    if (h->owner == NULL) {
        assert_true(h->endpoint_count == 0 && h->observed_ns == 0 && h->required_ns == 0);
        return;
    }
    assert_true(h->version > 0 && h->renewed_ms > 0);
    assert_int_equal(h->endpoint_count, 1);
    assert_true(gb_bytes_equal_c(h->endpoints[0].capability, "ht\ntp"));
    assert_true(gb_bytes_equal_c(h->endpoints[0].url, "http://h\n"));
}

static enum gb_code acquire_as(const char *owner, uint64_t *version, int64_t *observed_ns)
{
    struct gb_lease_acquire q = {.lease_id = gb_bytes_c("s"),
                                 .owner = gb_bytes_c(owner),
                                 .ttl_ns = TTL,
                                 .endpoints = endpoints,
                                 .endpoint_count = 1};
    store->ops->acquire(store, &q, dynamodb_bench_done, &b);
    dynamodb_bench_run(&b);
    if (q.op.result.code != GB_ALREADY_EXISTS) dynamodb_bench_check(&q.op);
    check_holder(&q.seen);
    if (version != NULL) *version = q.version;
    if (observed_ns != NULL) *observed_ns = q.seen.observed_ns;
    gb_lease_holder_deinit(&q.seen);
    return q.op.result.code;
}

static enum gb_code acquire(void)
{
    uint64_t version = 0;
    enum gb_code code = acquire_as("me#1", &version, NULL);
    if (code != GB_OK) return code;
    assert_string_equal(row.owner, "me#1");
    assert_int_equal(row.version, version);
    return code;
}

/* Whatever is lost of what was seen, nothing is added. */
static enum gb_code observe(void)
{
    int64_t observed_ns = 0;
    enum gb_code code = acquire_as("me#1", NULL, &observed_ns);
    assert_int_not_equal(code, GB_OK);
    uint64_t real_ns = mono_ns - seen_from_ns;
    assert_true((uint64_t)observed_ns <= real_ns && row.elapsed_ns <= real_ns);
    assert_string_equal(row.owner, "other#1");
    assert_int_equal(row.version, 1);
    return code;
}

static enum gb_code renew(void)
{
    struct gb_lease_renew q = {.lease_id = gb_bytes_c("s"),
                               .token = {gb_bytes_c("me#1"), row.version},
                               .ttl_ns = TTL,
                               .endpoints = endpoints,
                               .endpoint_count = 1};
    store->ops->renew(store, &q, dynamodb_bench_done, &b);
    dynamodb_bench_run(&b);
    dynamodb_bench_check(&q.op);
    if (q.op.result.code == GB_OK) assert_int_equal(row.renewed_ms, wall_ms);
    return q.op.result.code;
}

static enum gb_code release(void)
{
    struct gb_lease_release q = {.lease_id = gb_bytes_c("s"),
                                 .token = {gb_bytes_c("me#1"), row.version}};
    bool was = row.owner[0] == '\0';
    store->ops->release(store, &q, dynamodb_bench_done, &b);
    dynamodb_bench_run(&b);
    /* Where the answer got lost, "released" is what is found, or that it can't be read. */
    enum gb_code code = q.op.result.code;
    bool released = row.owner[0] == '\0';
    if (code == GB_OK || code == GB_NOT_FOUND) assert_true(released);
    if (code == GB_STALE_FENCING_TOKEN) assert_true(released && !was);
    if (code != GB_NOT_FOUND && code != GB_STALE_FENCING_TOKEN) dynamodb_bench_check(&q.op);
    return code;
}

static enum gb_code current(void)
{
    struct gb_lease_current q = {.lease_id = gb_bytes_c("s")};
    store->ops->current(store, &q, dynamodb_bench_done, &b);
    dynamodb_bench_run(&b);
    dynamodb_bench_check(&q.op);
    check_holder(&q.holder);
    assert_int_equal(q.holder.owner != NULL, q.op.result.code == GB_OK);
    if (q.holder.owner != NULL) assert_string_equal(q.holder.owner, row.owner);
    gb_lease_holder_deinit(&q.holder);
    return q.op.result.code;
}

/* --- rows to begin with --- */

static void hold(void)
{
    assert_int_equal(acquire_as("me#1", NULL, NULL), GB_OK);
    wall_ms += 1000;
}

static void free_row(void)
{
    row = (struct row){.present = true, .version = 1, .renewed_ms = 1000};
}

static void unseen(void)
{
    seen_from_ns = mono_ns;
    row = (struct row){
        .present = true, .owner = "other#1", .version = 1, .renewed_ms = 1000, .expires_ms = 7000};
}

static void foreign(uint64_t seen_ns)
{
    unseen();
    assert_int_equal(acquire_as("me#1", NULL, NULL), GB_ALREADY_EXISTS);
    mono_ns += seen_ns;
}

static void seen_long_enough(void)
{
    foreign((uint64_t)TTL);
}

static void seen_for_a_second(void)
{
    foreign((uint64_t)GB_SEC);
}

static const struct operation {
    const char *name;
    enum gb_code (*perform)(void);
    void (*prepare)(void);
    enum gb_code want;
    bool cut;
} operations[] = {
    {"create", acquire, NULL, GB_OK, false},
    {"create, answer lost", acquire, NULL, GB_OK, true},
    {"take a released row", acquire, free_row, GB_OK, false},
    {"take a released row, answer lost", acquire, free_row, GB_OK, true},
    {"take the own row", acquire, hold, GB_OK, false},
    {"observe for the first time", observe, unseen, GB_ALREADY_EXISTS, false},
    {"observe", observe, seen_for_a_second, GB_ALREADY_EXISTS, false},
    {"take over", acquire, seen_long_enough, GB_OK, false},
    {"renew", renew, hold, GB_OK, false},
    {"renew, answer lost", renew, hold, GB_OK, true},
    {"release", release, hold, GB_OK, false},
    {"release, answer lost", release, hold, GB_OK, true},
    {"current", current, hold, GB_OK, false},
};

/* The next call, with memory: a take-over may have to be observed once more. After a failure the
 * interval of this process begins anew (spec 06 §6.1). */
static void try_again(const struct operation *o, bool failed)
{
    uint64_t elapsed_ns = row.elapsed_ns;
    if (o->perform == observe) mono_ns += (uint64_t)GB_SEC;
    enum gb_code code = o->perform();
    if (o->perform == observe && failed) assert_true(row.elapsed_ns <= elapsed_ns);
    if (o->prepare == seen_long_enough && code == GB_ALREADY_EXISTS) {
        mono_ns += (uint64_t)TTL;
        code = o->perform();
    }
    bool released =
        o->perform == release && (code == GB_NOT_FOUND || code == GB_STALE_FENCING_TOKEN);
    if (!released) assert_int_equal(code, o->want);
}

/* True when no allocation failed. */
static bool failing_at(const void *arg, unsigned n)
{
    const struct operation *o = arg;
    open_bench();
    assert_int_equal(make_store().code, GB_OK);
    if (o->prepare != NULL) o->prepare();
    const struct row before = row;
    cut = o->cut;
    requests = 0;
    gb_oom_fail_at(n);
    enum gb_code code = o->perform();
    bool whole = gb_oom_count() < n;
    gb_oom_off();
    cut = false;
    if (whole) assert_int_equal(code, o->want);
    /* a write that was repeated raises the version once, and a failure is nothing or all of it */
    bool taken = row.version == before.version + 1 && strcmp(row.owner, "me#1") == 0;
    bool kept = row.version == before.version &&
                (strcmp(row.owner, before.owner) == 0 || o->perform == release);
    assert_true(taken || kept);
    if (code == GB_OK && o->perform == acquire) assert_true(taken);
    if (code != GB_OK || whole) try_again(o, code != o->want && requests > 0);
    close_bench();
    return whole;
}

static void each_operation(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof operations / sizeof operations[0]; i++) {
        unsigned n = gb_oom_ladder(failing_at, &operations[i]);
        print_message("%s: %u\n", operations[i].name, n - 1);
        assert_true(n > 5);
    }
}

int main(void)
{
    dynamodb_bench_quiet();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(constructor),
        cmocka_unit_test(each_operation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
