#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/duration.h"
#include "contract/lease_dynamodb.h"

/* Each request of each lease operation, in turn, throttled, refused by a fault of the service,
 * applied and never answered, cut in the answer, or sent with an expired token: the operation ends
 * as specified, a request of its own is recognised, the row is right (spec 06 §6, 04 A5, A6). */

enum { REQUESTS_MAX = 12 };
#define PATIENT_NS (10 * GB_SEC)
enum { EVIDENCE = 1 }; /* the request of a take-over that writes it; never repeated (06 §6.1) */
#define TTL (6 * GB_SEC)

static struct dynamodb_rig *rig;
static char table[DYNAMODB_TABLE_SIZE];
static struct lease_process me, other;
static char id[16];
static unsigned cases;

enum operation {
    CREATE,    /* no row */
    TAKE,      /* a released row */
    TAKE_OWN,  /* what a former try of this process holds */
    TAKE_OVER, /* another's, seen unchanged for long enough */
    OBSERVE,   /* another's, seen unchanged, not for long enough */
    RENEW,
    RELEASE,
    CURRENT,
    OPERATIONS
};
static const char *const names[] = {"create",  "take",  "take own", "take over",
                                    "observe", "renew", "release",  "current"};

enum { LASTING = 2 }; /* of the effects */

static enum gb_code acquire(struct lease_process *p, const char *owner, uint64_t *version,
                            struct gb_lease_holder *seen)
{
    return lease_acquire(&p->b, id, owner, TTL, version, seen);
}

/* The version the row has then. */
static uint64_t prepare(enum operation op)
{
    (void)snprintf(id, sizeof id, "s%u", cases++);
    if (op == CREATE) return 0;
    if (op == TAKE) {
        assert_int_equal(acquire(&other, "other#1", NULL, NULL), GB_OK);
        assert_int_equal(lease_release(&other.b, id, "other#1", 1), GB_OK);
    } else if (op == TAKE_OVER || op == OBSERVE) {
        assert_int_equal(acquire(&other, "other#1", NULL, NULL), GB_OK);
        assert_int_equal(acquire(&me, "me#1", NULL, NULL), GB_ALREADY_EXISTS);
        me.mono_ns += (uint64_t)(op == OBSERVE ? GB_SEC : TTL);
    } else {
        assert_int_equal(acquire(&me, "me#1", NULL, NULL), GB_OK);
        me.wall_ms += 1000;
    }
    return 1;
}

static enum gb_code perform(enum operation op, uint64_t *version, struct gb_lease_holder *seen)
{
    *version = 1;
    if (op == RENEW) return lease_renew(&me.b, id, "me#1", 1, TTL);
    if (op == RELEASE) return lease_release(&me.b, id, "me#1", 1);
    if (op == CURRENT) return lease_current(&me.b, id, NULL);
    return acquire(&me, "me#1", version, seen);
}

static bool takes(enum operation op)
{
    return op <= TAKE_OVER;
}

/* After a success: the row says so, and the token works. */
static void check_success(enum operation op, uint64_t before, uint64_t version, const char *what)
{
    uint64_t stored = 0;
    const char *owner = lease_process_owner(&other, id, &stored);
    if (takes(op)) {
        bool right = strcmp(owner, "me#1") == 0 && stored == version && version > before;
        if (!right) fail_msg("%s: version %llu of %s", what, (unsigned long long)stored, owner);
        assert_int_equal(lease_renew(&me.b, id, "me#1", version, TTL), GB_OK);
        assert_int_not_equal(acquire(&other, "other#2", NULL, NULL), GB_OK);
    } else if (op == RELEASE) {
        if (owner[0] != '\0' || stored != before) fail_msg("%s: not released", what);
    } else if (strcmp(owner, op == OBSERVE ? "other#1" : "me#1") != 0 || stored != before) {
        fail_msg("%s: version %llu of %s", what, (unsigned long long)stored, owner);
    }
}

/* A take-over whose evidence got lost. */
static void observe_again(uint64_t *version)
{
    enum gb_code code = perform(TAKE_OVER, version, NULL);
    me.mono_ns += (uint64_t)TTL;
    if (code != GB_OK) assert_int_equal(perform(TAKE_OVER, version, NULL), GB_OK);
}

/* False: the operation has no such request. */
static bool fault_at(enum operation op, const char *effect, unsigned request)
{
    char what[96], rule[96];
    uint64_t version = 0;
    struct gb_lease_holder seen = {0};
    (void)snprintf(what, sizeof what, "%s, request %u, %s", names[op], request, effect);
    uint64_t before = prepare(op);
    (void)snprintf(rule, sizeof rule, "\"effect\": \"%s\", \"skip\": %u", effect, request);
    dynamodb_rig_rule(rig, rule);
    uint64_t arrived = dynamodb_rig_arrived(rig);
    enum gb_code code = perform(op, &version, &seen);
    bool hit = dynamodb_rig_arrived(rig) - arrived > request;
    dynamodb_rig_clear(rig);
    struct gb_err err = gb_err(code, "x");
    if (op == OBSERVE) { /* an interval may be lost, none is made up */
        if (code != GB_ALREADY_EXISTS && !gb_err_is_transient(&err))
            fail_msg("%s: %s", what, gb_code_name(code));
        assert_true(seen.observed_ns <= GB_SEC);
        if (!hit) assert_int_equal(seen.observed_ns, GB_SEC);
    } else if (op == TAKE_OVER && request == EVIDENCE && gb_err_is_transient(&err)) {
        observe_again(&version);
    } else if (code != GB_OK) {
        fail_msg("%s: %s", what, gb_code_name(code));
    }
    /* a repeated request does not raise the version twice */
    if (takes(op) && version != before + 1) fail_msg("%s: version raised twice", what);
    check_success(op, before, version, what);
    gb_lease_holder_deinit(&seen);
    return hit;
}

static void open_for(const char *effect)
{
    lease_process_open(&me, rig, "A", table, dynamodb_rig_attempt_ns(effect));
}

static void each_request_fails_once(void **state)
{
    unsigned hits = 0;
    (void)state;
    for (size_t e = 0; e < dynamodb_rig_effect_count(rig); e++) {
        open_for(dynamodb_rig_effects[e]);
        for (int op = 0; op < OPERATIONS; op++) {
            unsigned request = 0;
            while (fault_at((enum operation)op, dynamodb_rig_effects[e], request))
                assert_true(++request < REQUESTS_MAX);
            assert_true(request > 0);
            hits += request;
        }
        lease_process_close(&me);
    }
    print_message("%u faults\n", hits);
}

/* A fault that stays ends the call with an error that says "try again", and the next try ends well,
 * whatever became of the first. */
static void stays(enum operation op, const char *effect)
{
    char what[96], rule[64];
    uint64_t version = 0;
    (void)snprintf(what, sizeof what, "%s, %s for good", names[op], effect);
    uint64_t before = prepare(op);
    (void)snprintf(rule, sizeof rule, "\"effect\": \"%s\", \"times\": 0", effect);
    dynamodb_rig_rule(rig, rule);
    enum gb_code code = perform(op, &version, NULL);
    dynamodb_rig_clear(rig);
    struct gb_err err = gb_err(code, "x");
    if (code == GB_OK || !gb_err_is_transient(&err) || code == GB_ALREADY_EXISTS)
        fail_msg("%s: %s", what, gb_code_name(code));
    code = perform(op, &version, NULL);
    bool well = op == OBSERVE     ? code == GB_ALREADY_EXISTS
                : op == RELEASE   ? code == GB_OK || code == GB_NOT_FOUND
                : op == TAKE_OVER ? code == GB_OK || code == GB_ALREADY_EXISTS
                                  : code == GB_OK;
    if (!well) fail_msg("%s, then: %s", what, gb_code_name(code));
    if (code == GB_ALREADY_EXISTS && op == TAKE_OVER) observe_again(&version);
    check_success(op, before, version, what);
}

static void faults_that_stay(void **state)
{
    (void)state;
    for (size_t e = 0; e < LASTING; e++) {
        open_for(dynamodb_rig_effects[e]);
        for (int op = 0; op < OPERATIONS; op++) stays((enum operation)op, dynamodb_rig_effects[e]);
        lease_process_close(&me);
    }
}

static int set_up(void **state)
{
    (void)state;
    dynamodb_rig_clear(rig);
    dynamodb_rig_table(rig, "lease", table);
    lease_process_open(&other, rig, "B", table, PATIENT_NS);
    lease_process_create_table(&other);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    lease_process_close(&other);
    return 0;
}

int main(void)
{
    rig = dynamodb_rig_new();
    if (rig == NULL) return DYNAMODB_RIG_SKIP;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_request_fails_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(faults_that_stay, set_up, tear_down),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    dynamodb_rig_free(rig);
    return failed;
}
