#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/duration.h"
#include "contract/outbox_dynamodb.h"

/* Each request of each operation, in turn, throttled, refused by a fault of the service, applied
 * and never answered, cut in the answer, or sent with an expired token: the operation ends as
 * specified and the state is right (spec 05 §9.1, 04 A5, A6). Twice: with what is held put directly
 * (docs/decisions/0623), and in the layout of the specification. */

enum { RECORDS = 3, REQUESTS_MAX = 24 };

static struct outbox_dynamodb dynamodb;
static struct outbox_backend backend = {.ctx = &dynamodb};
static char session[16], partition[32];
static unsigned cases;

enum operation { PERSIST, CLAIM, COMPLETE, RELEASE, EXPIRE, STATS, OPERATIONS };
static const char *const operation_names[] = {"persist", "claim",  "complete",
                                              "release", "expire", "stats"};

/* --- what each operation finds, does and leaves --- */

struct situation {
    struct gb_outbox_record records[RECORDS];
    struct gb_outbox_batch *batch; /* claimed before */
    uint64_t expired;
};

static void make_records(struct situation *s, bool due)
{
    static const char *const names[RECORDS] = {"A", "B", "C"};
    for (size_t i = 0; i < RECORDS; i++) {
        s->records[i] = outbox_record(&(struct outbox_spec){.envelope_id = names[i],
                                                            .binding_id = "b1",
                                                            .session_id = session,
                                                            .expires_at_ms = due ? 5000 : 0});
    }
}

static struct gb_outbox_batch *claim_all(enum gb_code *code)
{
    return outbox_claim(&backend, partition, "o", 2, 10, code);
}

static void prepare(struct situation *s, enum operation op)
{
    size_t stored = 0;
    (void)snprintf(session, sizeof session, "s%u", cases++);
    (void)snprintf(partition, sizeof partition, "SESSION#%s", session);
    *s = (struct situation){.expired = 0};
    memset(dynamodb.held, 0, sizeof dynamodb.held); /* the partitions before are done with */
    make_records(s, op == EXPIRE);
    enum gb_code code = GB_OK;
    gb_outbox_batch_free(outbox_claim(&backend, partition, "o", 2, 10, &code)); /* it holds it */
    assert_int_equal(code, GB_OK);
    if (op == PERSIST) return;
    assert_int_equal(outbox_persist(&backend, s->records, RECORDS, &stored), GB_OK);
    if (op != COMPLETE && op != RELEASE) return;
    s->batch = claim_all(&code);
    assert_int_equal(s->batch->count, RECORDS);
}

static enum gb_code perform(struct situation *s, enum operation op)
{
    enum gb_code code = GB_OK;
    size_t stored = 0;
    switch (op) {
    case PERSIST:
        code = outbox_persist(&backend, s->records, RECORDS, &stored);
        return code == GB_DUPLICATE_RECORD ? GB_OK : code;
    case CLAIM:
        s->batch = claim_all(&code);
        return code;
    case COMPLETE:
    case RELEASE:
        return outbox_settle(&backend, op == COMPLETE ? GB_OUTBOX_COMPLETE : GB_OUTBOX_RELEASE,
                             partition, s->batch->records[0].id, "o", 2);
    case EXPIRE:
        return outbox_expire(&backend, partition, "o", 2, 10000, &s->expired);
    case STATS:
        (void)outbox_stats(&backend, partition);
        return GB_OK;
    case OPERATIONS:
        break;
    }
    return GB_INTERNAL;
}

/* As a successor finds it: another process with the next version, nothing but the table. */
static void check_state(struct situation *s, enum operation op, const char *what)
{
    static struct outbox_dynamodb next;
    struct outbox_backend b = {.ctx = &next};
    outbox_dynamodb_share(&b, &backend);
    b.driver.wall_ms += 1;
    enum gb_code code = GB_OK;
    size_t want = op == EXPIRE ? 0 : op == COMPLETE ? RECORDS - 1 : RECORDS;
    struct gb_outbox_batch *batch = outbox_claim(&b, partition, "next", 3, 10, &code);
    size_t got = batch == NULL ? 0 : batch->count;
    if (code != GB_OK || got != want)
        fail_msg("%s: a successor claims %zu of %zu (%s)", what, got, want, gb_code_name(code));
    for (size_t i = 0; i < got; i++) {
        for (size_t k = 0; k < i; k++) { /* nothing twice */
            assert_false(
                gb_bytes_equal(batch->records[i].envelope->id, batch->records[k].envelope->id));
        }
    }
    gb_outbox_batch_free(batch);
    gb_outbox_batch_free(s->batch);
    s->batch = NULL;
    STORE_CLOSE(&b.driver, b.store);
    backend.driver.waiting = 0;
}

/* --- one fault --- */

enum { LASTING = 4 }; /* of the effects */

/* False: the operation has no such request. */
static bool fault_at(enum operation op, const char *effect, unsigned request, bool direct)
{
    struct situation s;
    char what[96], rule[96];
    (void)snprintf(what, sizeof what, "%s, request %u, %s%s", operation_names[op], request, effect,
                   direct ? ", direct" : "");
    prepare(&s, op);
    (void)snprintf(rule, sizeof rule, "\"effect\": \"%s\", \"skip\": %u", effect, request);
    dynamodb_rig_rule(dynamodb.rig, rule);
    uint64_t before = dynamodb_rig_arrived(dynamodb.rig);
    enum gb_code code = perform(&s, op);
    bool hit = dynamodb_rig_arrived(dynamodb.rig) - before > request;
    dynamodb_rig_clear(dynamodb.rig);
    if (code != GB_OK) fail_msg("%s: %s", what, gb_code_name(code));
    if (op == CLAIM) assert_int_equal(s.batch->count, RECORDS);
    if (op == EXPIRE) assert_int_equal(s.expired, RECORDS);
    check_state(&s, op, what);
    return hit;
}

static void set_up_for(const char *effect, bool direct)
{
    dynamodb.direct = direct;
    dynamodb.through_proxy = true;
    dynamodb.attempt_timeout_ns = dynamodb_rig_attempt_ns(effect);
    dynamodb_rig_clear(dynamodb.rig);
    outbox_dynamodb_set_up(&backend, 0);
}

static void every_fault(bool direct)
{
    unsigned hits = 0;
    for (size_t e = 0; e < dynamodb_rig_effect_count(dynamodb.rig); e++) {
        set_up_for(dynamodb_rig_effects[e], direct);
        for (int op = 0; op < OPERATIONS; op++) {
            unsigned request = 0;
            while (fault_at((enum operation)op, dynamodb_rig_effects[e], request, direct)) {
                request++;
                assert_true(request < REQUESTS_MAX);
            }
            hits += request;
            outbox_records_free();
        }
        outbox_dynamodb_tear_down(&backend);
    }
    print_message("%u faults%s\n", hits, direct ? ", direct" : "");
}

static void each_request_fails_once(void **state)
{
    (void)state;
    every_fault(false);
}

static void each_request_fails_once_direct(void **state)
{
    (void)state;
    every_fault(true);
}

/* --- faults that stay --- */

/* From that request on. What the operation says is true: done, and a successor finds it so, or an
 * error that says "try again", and the next try ends well. False: it has no such request. */
static bool stays(enum operation op, const char *effect, unsigned request, bool direct)
{
    struct situation s;
    char what[96], rule[96];
    (void)snprintf(what, sizeof what, "%s, %s for good from request %u%s", operation_names[op],
                   effect, request, direct ? ", direct" : "");
    prepare(&s, op);
    (void)snprintf(rule, sizeof rule, "\"effect\": \"%s\", \"skip\": %u, \"times\": 0", effect,
                   request);
    dynamodb_rig_rule(dynamodb.rig, rule);
    uint64_t before = dynamodb_rig_arrived(dynamodb.rig);
    enum gb_code code = perform(&s, op);
    bool hit = dynamodb_rig_arrived(dynamodb.rig) - before > request;
    dynamodb_rig_clear(dynamodb.rig);
    struct gb_err err = gb_err(code, "x");
    if (code != GB_OK && !gb_err_is_transient(&err)) fail_msg("%s: %s", what, gb_code_name(code));
    if (code != GB_OK) {
        if (op == CLAIM) assert_null(s.batch);
        code = perform(&s, op); /* the caller's next try */
        bool own = code == GB_STALE_FENCING_TOKEN && (op == COMPLETE || op == RELEASE);
        if (code != GB_OK && !own) fail_msg("%s, then: %s", what, gb_code_name(code));
    }
    if (op == CLAIM) { /* what an unanswered transaction claimed comes when it is stale */
        size_t count = s.batch == NULL ? 0 : s.batch->count;
        assert_true(count == RECORDS || count == 0);
    }
    check_state(&s, op, what);
    return hit;
}

/* The first request with each fault, the later ones with those that differ most: applied or not
 * with nobody the wiser, and refused. */
static unsigned stays_from_each(enum operation op, size_t effect, bool direct)
{
    unsigned request = 0;
    while (stays(op, dynamodb_rig_effects[effect], request, direct)) {
        request++;
        if (effect >= LASTING) break;
        assert_true(request < REQUESTS_MAX);
    }
    return request;
}

static void faults_that_stay(void **state)
{
    unsigned hits = 0;
    (void)state;
    for (int direct = 0; direct <= 1; direct++) {
        for (size_t e = 0; e < dynamodb_rig_effect_count(dynamodb.rig); e++) {
            set_up_for(dynamodb_rig_effects[e], direct == 1);
            for (int op = 0; op < STATS; op++) {
                hits += stays_from_each((enum operation)op, e, direct == 1);
                outbox_records_free();
            }
            outbox_dynamodb_tear_down(&backend);
        }
    }
    print_message("%u faults that stay\n", hits);
}

int main(void)
{
    dynamodb.rig = dynamodb_rig_new();
    if (dynamodb.rig == NULL) return DYNAMODB_RIG_SKIP;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_request_fails_once),
        cmocka_unit_test(each_request_fails_once_direct),
        cmocka_unit_test(faults_that_stay),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    dynamodb_rig_free(dynamodb.rig);
    return failed;
}
