#include "core/session_manager.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/duration.h"
#include "support/core_fixture.h"
#include "support/fake_lease.h"

/* TTL 12 s, renewals each 3 s, polls each 2 s, calls 1 s, grace 4 s, activation 20 s. */
struct bench {
    struct core_fixture x;
    struct fake_lease lease;
    struct fake_session session;
    struct gb_session_manager *m;
    struct gb_authority authority;
    struct gb_session_manager_cfg cfg;
    bool busy; /* the drainer has work in flight */
    unsigned gained, given_up;
    unsigned terminals;
    struct gb_err cause;
    struct gb_op close;
    bool closed;
};

static bool drained(void *arg)
{
    return !((struct bench *)arg)->busy;
}

static void authority_changed(void *arg, bool held)
{
    struct bench *b = arg;
    if (held) {
        b->gained++;
    } else {
        b->given_up++;
        assert_false(b->session.stops > 0 && !b->session.running); /* before the close */
    }
}

static void terminal(void *arg, const char *session_id, struct gb_err cause)
{
    struct bench *b = arg;
    assert_string_equal(session_id, "s");
    b->terminals++;
    b->cause = cause;
}

static void make(struct bench *b)
{
    assert_int_equal(gb_session_manager_new(&b->cfg, &b->m).code, GB_OK);
    b->authority = gb_session_manager_authority(b->m);
    gb_session_manager_start(b->m);
}

static int setup(void **state)
{
    static struct bench bench;
    struct bench *b = &bench;
    memset(b, 0, sizeof *b);
    core_fixture_init(&b->x);
    fake_lease_init(&b->lease, b->x.reactor);
    fake_session_init(&b->session, b->x.reactor);
    b->cfg = (struct gb_session_manager_cfg){
        .session_id = "s",
        .owner = "me#1",
        .cadence = {.ttl_ns = 12 * GB_SEC,
                    .renew_ns = 3 * GB_SEC,
                    .call_ns = GB_SEC,
                    .poll_ns = 2 * GB_SEC,
                    .grace_ns = 4 * GB_SEC,
                    .fails = 3},
        .activation_ns = 20 * GB_SEC,
        .connect_after_lease = true,
        .reactor = b->x.reactor,
        .metrics = b->x.metrics,
        .lease = &b->lease.lease,
        .session = &b->session.session,
        .drained = drained,
        .authority_changed = authority_changed,
        .terminal = terminal,
        .arg = b,
    };
    *state = b;
    return 0;
}

static void close_done(struct gb_op *op, void *arg)
{
    (void)op;
    ((struct bench *)arg)->closed = true;
}

static void begin_close(struct bench *b)
{
    b->close.deadline_ns = b->x.now_ns + 10 * (uint64_t)GB_SEC;
    gb_session_manager_close(b->m, &b->close, close_done, b);
}

static int teardown(void **state)
{
    struct bench *b = *state;
    if (b->m != NULL && !b->closed) {
        if (b->session.stopping != NULL) fake_session_let_go(&b->session);
        begin_close(b);
        core_fixture_run(&b->x, 30 * GB_SEC);
        assert_true(b->closed);
    }
    gb_session_manager_free(b->m);
    core_fixture_run(&b->x, 0);
    fake_lease_deinit(&b->lease);
    core_fixture_deinit(&b->x);
    return 0;
}

static bool has_authority(const struct bench *b)
{
    struct gb_token t;
    return b->authority.current(b->authority.ctx, &t);
}

static struct gb_session_manager_health health_of(const struct bench *b)
{
    struct gb_session_manager_health h;
    gb_session_manager_health(b->m, &h);
    return h;
}

static void demand(const struct bench *b, enum gb_session_role_state state)
{
    enum gb_session_role_state got = health_of(b).state;
    if (got != state) {
        fail_msg("%s instead of %s", gb_session_manager_state_name(got),
                 gb_session_manager_state_name(state));
    }
}

static void become_active(struct bench *b)
{
    core_fixture_run(&b->x, GB_MS);
    demand(b, GB_MANAGER_ACTIVATING);
    fake_session_serve(&b->session, true);
    core_fixture_run(&b->x, 200 * GB_MS);
    demand(b, GB_MANAGER_ACTIVE);
}

static uint64_t counted(const struct bench *b, const char *name)
{
    return core_fixture_count(&b->x, name);
}

/* --- delays --- */

static void check_06_17_delays(void **state)
{
    struct bench *b = *state;
    int64_t low_ns = INT64_MAX;
    int64_t high_ns = 0;
    for (int i = 0; i < 10000; i++) {
        int64_t d = gb_lease_poll_delay_ns(5 * GB_SEC, b->x.reactor);
        assert_true(d >= 3750 * GB_MS && d < 6250 * GB_MS);
        if (d < low_ns) low_ns = d;
        if (d > high_ns) high_ns = d;
    }
    assert_true(low_ns < 3760 * GB_MS && high_ns > 6240 * GB_MS);
    for (int i = 0; i < 1000; i++) {
        int64_t d = gb_lease_renew_delay_ns(10 * GB_SEC, GB_SEC, b->x.reactor);
        assert_true(d >= 9500 * GB_MS && d < 10500 * GB_MS);
    }
    assert_int_equal(gb_lease_renew_delay_ns(3 * GB_SEC, 0, b->x.reactor), 3 * GB_SEC);
    assert_int_equal(gb_lease_poll_delay_ns(1, b->x.reactor), GB_MS);
}

/* --- standing by --- */

static void stands_by_without_connecting(void **state)
{
    struct bench *b = *state;
    fake_lease_steal(&b->lease, "other#1");
    make(b);
    core_fixture_run(&b->x, 30 * GB_SEC);
    demand(b, GB_MANAGER_STANDBY);
    assert_int_equal(b->session.starts, 0);
    assert_false(has_authority(b));
    assert_in_range(b->lease.calls[FAKE_ACQUIRE], 12, 21); /* each 1.5 to 2.5 s */
    assert_int_equal(counted(b, "LeaseAcquireFailures"), b->lease.calls[FAKE_ACQUIRE]);
    assert_string_equal(health_of(b).owner, "other#1");
    assert_int_equal(health_of(b).version, 1);
    assert_int_equal(health_of(b).last_error.code, GB_OK); /* contention is no error */
}

static void outages_never_end_the_waiting(void **state)
{
    struct bench *b = *state;
    fake_script_always(&b->lease.script[FAKE_ACQUIRE], FAKE_FAIL, GB_UNAVAILABLE);
    make(b);
    core_fixture_run(&b->x, 10 * GB_MINUTE);
    demand(b, GB_MANAGER_STANDBY);
    assert_int_equal(health_of(b).last_error.code, GB_UNAVAILABLE);
    fake_script_always(&b->lease.script[FAKE_ACQUIRE], FAKE_DO, GB_OK);
    core_fixture_run(&b->x, 3 * GB_SEC);
    demand(b, GB_MANAGER_ACTIVATING);
}

/* An answer later than the TTL gives no authority, whatever it says. */
static void an_answer_after_the_end_is_worth_nothing(void **state)
{
    struct bench *b = *state;
    b->cfg.cadence.call_ns = 20 * GB_SEC;
    fake_script_add(&b->lease.script[FAKE_ACQUIRE], FAKE_HOLD, GB_OK);
    make(b);
    core_fixture_run(&b->x, 12 * GB_SEC + GB_MS);
    fake_lease_answer(&b->lease, GB_OK);
    core_fixture_run(&b->x, GB_MS);
    demand(b, GB_MANAGER_STANDBY);
    assert_false(has_authority(b));
    assert_int_equal(b->session.starts, 0);
    core_fixture_run(&b->x, 3 * GB_SEC); /* the own token takes it again */
    demand(b, GB_MANAGER_ACTIVATING);
    assert_int_equal(health_of(b).version, 2);
}

/* --- activating --- */

static void activates_and_renews_meanwhile(void **state)
{
    struct bench *b = *state;
    make(b);
    core_fixture_run(&b->x, 16 * GB_SEC); /* longer than the TTL (06 check 26) */
    demand(b, GB_MANAGER_ACTIVATING);
    assert_true(has_authority(b));
    assert_in_range(b->lease.calls[FAKE_RENEW], 5, 5);
    fake_session_serve(&b->session, true);
    core_fixture_run(&b->x, 200 * GB_MS);
    demand(b, GB_MANAGER_ACTIVE);
    assert_int_equal(b->gained, 1);
    assert_int_equal(counted(b, "LeaseTransfers"), 0); /* version 1 */
}

/* 06 check 26, second half; §7.2 "deadline overrun": both returned, so it is released. */
static void an_activation_past_its_bound_is_terminal(void **state)
{
    struct bench *b = *state;
    make(b);
    core_fixture_run(&b->x, 21 * GB_SEC);
    demand(b, GB_MANAGER_TERMINAL);
    assert_int_equal(b->terminals, 1);
    assert_int_equal(b->cause.code, GB_TIMEOUT);
    assert_int_equal(b->session.stops, 1);
    assert_string_equal(b->lease.owner, "");
    assert_false(has_authority(b));
    core_fixture_run(&b->x, GB_MINUTE);
    assert_int_equal(b->lease.calls[FAKE_ACQUIRE], 1); /* not before a restart */
}

/* §7.2 "ordinary error": released, so that another one gets its chance, then again. */
static void a_failed_connect_gives_the_lease_back(void **state)
{
    struct bench *b = *state;
    make(b);
    for (unsigned term = 1; term <= 3; term++) {
        core_fixture_run(&b->x, term == 1 ? GB_MS : 12 * GB_SEC);
        while (b->session.starts < term) core_fixture_run(&b->x, 100 * GB_MS);
        b->session.health.failed_attempts = 1;
        core_fixture_run(&b->x, 200 * GB_MS);
        demand(b, GB_MANAGER_FAILED);
        assert_string_equal(b->lease.owner, "");
        assert_int_equal(b->terminals, 0);
    }
    assert_int_equal(counted(b, "LeaseExpiries"), 0);
    while (b->session.starts < 4) core_fixture_run(&b->x, 100 * GB_MS);
    become_active(b);
    assert_int_equal(health_of(b).version, 4);
}

/* A transport that declares no bound has the rest of its lease, less what a release takes. */
static void unknown_activation(void **state)
{
    struct bench *b = *state;
    b->cfg.activation_ns = 0;
    make(b);
    core_fixture_run(&b->x, 7900 * GB_MS);
    demand(b, GB_MANAGER_ACTIVATING);
    core_fixture_run(&b->x, 400 * GB_MS); /* 12 s - min(5 s, grace) */
    demand(b, GB_MANAGER_TERMINAL);
}

/* --- active --- */

/* 06 check 18: authority ends at the instant before the last good call plus TTL. */
static void renewals_that_fail_end_by_the_deadline(void **state)
{
    struct bench *b = *state;
    make(b);
    become_active(b);
    core_fixture_run(&b->x, 10 * GB_SEC);
    unsigned renewals = b->lease.calls[FAKE_RENEW];
    uint64_t last_ns = b->x.now_ns; /* the last one began before this */
    fake_script_always(&b->lease.script[FAKE_RENEW], FAKE_HOLD, GB_OK);
    fake_script_always(&b->lease.script[FAKE_CURRENT], FAKE_HOLD, GB_OK);
    while (b->session.running) {
        core_fixture_run(&b->x, 10 * GB_MS);
        assert_true(b->x.now_ns <= last_ns + 12 * (uint64_t)GB_SEC + 20 * (uint64_t)GB_MS);
    }
    assert_true(renewals > 0);
    assert_false(has_authority(b));
    assert_int_equal(counted(b, "LeaseExpiries"), 1);
    assert_int_equal(b->given_up, 1);
}

/* The answer to a renewal took its time: that time does not count for the owner. */
static void the_deadline_counts_from_before_the_call(void **state)
{
    struct bench *b = *state;
    make(b);
    become_active(b);
    fake_script_add(&b->lease.script[FAKE_RENEW], FAKE_HOLD, GB_OK);
    while (b->lease.held == NULL) core_fixture_run(&b->x, 10 * GB_MS);
    uint64_t asked_ns = b->x.now_ns;
    core_fixture_run(&b->x, 900 * GB_MS);
    fake_lease_answer(&b->lease, GB_OK);
    core_fixture_run(&b->x, GB_MS);
    int64_t left_ns = health_of(b).remaining_ns;
    assert_true((uint64_t)left_ns <= asked_ns + 12 * (uint64_t)GB_SEC - b->x.now_ns);
    assert_true(left_ns > 11 * GB_SEC - 100 * GB_MS);
}

/* 06 check 19, first half. */
static void one_stale_token_steps_down_at_once(void **state)
{
    static const enum gb_code codes[] = {GB_STALE_FENCING_TOKEN, GB_NOT_FOUND, GB_VERSION_MISMATCH,
                                         GB_ALREADY_EXISTS};
    struct bench *b = *state;
    make(b);
    for (unsigned i = 0; i < 4; i++) {
        while (b->session.starts < i + 1) core_fixture_run(&b->x, 100 * GB_MS);
        become_active(b);
        fake_script_add(&b->lease.script[FAKE_RENEW], FAKE_FAIL, codes[i]);
        core_fixture_run(&b->x, 3100 * GB_MS);
        assert_false(b->session.running);
        assert_int_equal(counted(b, "LeaseExpiries"), i + 1);
    }
}

/* 06 check 19, second half: time-outs with the row still mine keep the lease; the next one reads
 * again. */
static void the_row_decides_after_max_fails(void **state)
{
    struct bench *b = *state;
    b->cfg.cadence.renew_ns = GB_SEC;
    b->cfg.cadence.call_ns = 500 * GB_MS;
    make(b);
    become_active(b);
    fake_script_always(&b->lease.script[FAKE_RENEW], FAKE_FAIL, GB_UNAVAILABLE);
    core_fixture_run(&b->x, 3500 * GB_MS);
    demand(b, GB_MANAGER_ACTIVE);
    assert_int_equal(b->lease.calls[FAKE_CURRENT], 1);
    assert_int_equal(health_of(b).fails, 2);
    core_fixture_run(&b->x, GB_SEC);
    assert_int_equal(b->lease.calls[FAKE_CURRENT], 2);
    fake_script_always(&b->lease.script[FAKE_RENEW], FAKE_DO, GB_OK);
    core_fixture_run(&b->x, GB_SEC);
    assert_int_equal(health_of(b).fails, 0);
    demand(b, GB_MANAGER_ACTIVE);
    fake_script_always(&b->lease.script[FAKE_RENEW], FAKE_FAIL, GB_UNAVAILABLE);
    fake_lease_steal(&b->lease, "other#1");
    core_fixture_run(&b->x, 3500 * GB_MS);
    assert_false(b->session.running);
    assert_false(has_authority(b));
    core_fixture_run(&b->x, 5 * GB_SEC);
    demand(b, GB_MANAGER_STANDBY);
}

/* What was seen before a term says nothing after it: an outage would show a dead owner for long. */
static void a_term_ends_what_was_seen_before(void **state)
{
    struct bench *b = *state;
    fake_lease_steal(&b->lease, "other#1");
    make(b);
    core_fixture_run(&b->x, 3 * GB_SEC);
    assert_string_equal(health_of(b).owner, "other#1");
    fake_lease_steal(&b->lease, "");
    while (b->session.starts == 0) core_fixture_run(&b->x, 100 * GB_MS);
    become_active(b);
    assert_string_equal(health_of(b).owner, "me#1");
    for (int call = FAKE_ACQUIRE; call < FAKE_LEASE_KINDS; call++)
        fake_script_always(&b->lease.script[call], FAKE_FAIL, GB_UNAVAILABLE);
    core_fixture_run(&b->x, 30 * GB_SEC);
    demand(b, GB_MANAGER_STANDBY);
    struct gb_session_manager_health h = health_of(b);
    assert_string_equal(h.owner, "");
    assert_int_equal(h.version, 0);
    assert_int_equal(h.observed_ns, 0);
    assert_int_equal(h.fails, 0);
    assert_int_equal(h.last_error.code, GB_UNAVAILABLE);
}

/* Spec 06 §6.3: the boot clock goes on while nothing runs. */
static void a_suspend_past_the_ttl_ends_the_authority_at_once(void **state)
{
    struct bench *b = *state;
    make(b);
    become_active(b);
    gb_reactor_set_suspended(b->x.reactor, 11 * (uint64_t)GB_SEC);
    assert_true(has_authority(b));
    gb_reactor_set_suspended(b->x.reactor, 12 * (uint64_t)GB_SEC);
    assert_false(has_authority(b)); /* before any timer */
    assert_false(health_of(b).holds);
    core_fixture_run(&b->x, 200 * GB_MS);
    assert_false(b->session.running);
    assert_int_equal(counted(b, "LeaseExpiries"), 1);
}

/* --- stepping down --- */

static void lose(struct bench *b)
{
    fake_script_add(&b->lease.script[FAKE_RENEW], FAKE_FAIL, GB_STALE_FENCING_TOKEN);
    while (b->session.running) core_fixture_run(&b->x, 10 * GB_MS);
}

/* 06 check 22: closed, grace, released. */
static void grace_waits_for_what_is_in_flight(void **state)
{
    struct bench *b = *state;
    make(b);
    become_active(b);
    b->busy = true;
    lose(b);
    core_fixture_run(&b->x, 3900 * GB_MS);
    assert_int_equal(b->lease.calls[FAKE_LEASE_RELEASE], 0);
    assert_string_equal(b->lease.owner, "me#1");
    core_fixture_run(&b->x, 200 * GB_MS);
    assert_int_equal(b->lease.calls[FAKE_LEASE_RELEASE], 1);
    assert_string_equal(b->lease.owner, "");
    demand(b, GB_MANAGER_STANDBY);
    assert_int_equal(health_of(b).step_downs, 1);
}

static void an_idle_drainer_skips_the_grace(void **state)
{
    struct bench *b = *state;
    make(b);
    become_active(b);
    b->busy = true;
    lose(b);
    core_fixture_run(&b->x, GB_SEC);
    assert_int_equal(b->lease.calls[FAKE_LEASE_RELEASE], 0);
    b->busy = false;
    core_fixture_run(&b->x, 60 * GB_MS);
    assert_int_equal(b->lease.calls[FAKE_LEASE_RELEASE], 1);
    core_fixture_run(&b->x, 3 * GB_SEC); /* and again, in the same process (06 check 34) */
    become_active(b);
    assert_int_equal(health_of(b).version, 2);
    assert_int_equal(b->session.starts, 2);
    assert_int_equal(counted(b, "LeaseTransfers"), 1);
}

/* 06 check 23. */
static void a_hanging_close_keeps_the_lease(void **state)
{
    struct bench *b = *state;
    make(b);
    become_active(b);
    b->session.hang = true;
    fake_script_add(&b->lease.script[FAKE_RENEW], FAKE_FAIL, GB_STALE_FENCING_TOKEN);
    core_fixture_run(&b->x, 3 * GB_SEC + 4 * GB_SEC + GB_SEC);
    demand(b, GB_MANAGER_TERMINAL);
    assert_int_equal(b->terminals, 1);
    assert_int_equal(b->lease.calls[FAKE_LEASE_RELEASE], 0);
    assert_string_equal(b->lease.owner, "me#1");
    begin_close(b);
    core_fixture_run(&b->x, 11 * GB_SEC);
    assert_true(b->closed);
    assert_int_equal(b->close.result.code, GB_TIMEOUT);
    assert_int_equal(b->lease.calls[FAKE_LEASE_RELEASE], 0);
    fake_session_let_go(&b->session);
    core_fixture_run(&b->x, GB_MS);
}

static void a_close_with_an_error_has_returned(void **state)
{
    struct bench *b = *state;
    make(b);
    become_active(b);
    b->session.error = GB_CONNECTION_LOST;
    lose(b);
    core_fixture_run(&b->x, 100 * GB_MS);
    demand(b, GB_MANAGER_STANDBY);
    assert_string_equal(b->lease.owner, "");
}

static void a_refused_release_is_not_asked_again(void **state)
{
    struct bench *b = *state;
    make(b);
    become_active(b);
    fake_script_add(&b->lease.script[FAKE_LEASE_RELEASE], FAKE_FAIL, GB_UNAVAILABLE);
    lose(b);
    core_fixture_run(&b->x, 100 * GB_MS);
    demand(b, GB_MANAGER_STANDBY);
    assert_int_equal(b->lease.calls[FAKE_LEASE_RELEASE], 1);
}

/* 06 check 25. */
static void a_broken_broker_path_is_handed_over(void **state)
{
    struct bench *b = *state;
    b->cfg.step_down_ns = 5 * GB_SEC;
    make(b);
    become_active(b);
    fake_session_serve(&b->session, false);
    core_fixture_run(&b->x, 4 * GB_SEC);
    fake_session_serve(&b->session, true); /* converged: the clock starts anew */
    core_fixture_run(&b->x, 200 * GB_MS);
    fake_session_serve(&b->session, false);
    core_fixture_run(&b->x, 4900 * GB_MS);
    demand(b, GB_MANAGER_ACTIVE);
    core_fixture_run(&b->x, 300 * GB_MS);
    demand(b, GB_MANAGER_TERMINAL);
    assert_int_equal(counted(b, "BrokerHealthStepDown"), 1);
    assert_string_equal(b->lease.owner, "");
    core_fixture_run(&b->x, GB_MINUTE);
    assert_int_equal(b->lease.calls[FAKE_ACQUIRE], 1);
}

static void off_means_that_nothing_moves(void **state)
{
    struct bench *b = *state;
    make(b);
    become_active(b);
    fake_session_serve(&b->session, false);
    core_fixture_run(&b->x, 10 * GB_MINUTE);
    demand(b, GB_MANAGER_ACTIVE);
    assert_true(has_authority(b));
}

/* --- closing --- */

/* 06 check 24: the source first, then the lease. */
static void a_shutdown_closes_before_it_releases(void **state)
{
    struct bench *b = *state;
    make(b);
    become_active(b);
    b->busy = true; /* the drainers have ended already */
    b->session.hang = true;
    begin_close(b);
    core_fixture_run(&b->x, GB_SEC);
    assert_false(has_authority(b));
    assert_int_equal(b->lease.calls[FAKE_LEASE_RELEASE], 0);
    fake_session_let_go(&b->session);
    core_fixture_run(&b->x, GB_MS);
    assert_true(b->closed);
    assert_int_equal(b->close.result.code, GB_OK);
    assert_string_equal(b->lease.owner, "");
}

static void a_shutdown_keeps_the_lease_of_a_hanging_session(void **state)
{
    struct bench *b = *state;
    make(b);
    become_active(b);
    b->session.hang = true;
    begin_close(b);
    core_fixture_run(&b->x, 11 * GB_SEC);
    assert_true(b->closed);
    assert_int_equal(b->close.result.code, GB_TIMEOUT);
    assert_string_equal(b->lease.owner, "me#1");
    fake_session_let_go(&b->session);
    core_fixture_run(&b->x, GB_MS);
}

/* The acquire that a shutdown tries to cancel wins all the same: it is given back. */
static void a_lease_won_while_closing_is_released(void **state)
{
    struct bench *b = *state;
    fake_script_add(&b->lease.script[FAKE_ACQUIRE], FAKE_HOLD, GB_OK);
    b->lease.deaf = true;
    make(b);
    core_fixture_run(&b->x, 100 * GB_MS);
    begin_close(b);
    core_fixture_run(&b->x, 100 * GB_MS);
    assert_false(b->closed);
    fake_lease_answer(&b->lease, GB_OK);
    core_fixture_run(&b->x, 100 * GB_MS);
    assert_true(b->closed);
    assert_int_equal(b->lease.version, 1);
    assert_string_equal(b->lease.owner, "");
    assert_int_equal(b->session.starts, 0);
    assert_false(has_authority(b));
}

static void closing_at_any_moment(void **state)
{
    struct bench *b = *state;
    enum { MOMENTS = 60 };
    (void)b;
    for (int64_t moment = 0; moment < MOMENTS; moment++) {
        struct bench *again = *state;
        make(again);
        if (moment % 3 == 1) fake_script_add(&again->lease.script[FAKE_ACQUIRE], FAKE_HOLD, GB_OK);
        if (moment % 3 == 2)
            fake_script_add(&again->lease.script[FAKE_RENEW], FAKE_FAIL, GB_STALE_FENCING_TOKEN);
        for (int64_t i = 0; i < moment; i++) {
            core_fixture_run(&again->x, 150 * GB_MS);
            if (again->session.running) fake_session_serve(&again->session, true);
        }
        begin_close(again);
        if (again->lease.held != NULL && moment % 2 == 0) fake_lease_answer(&again->lease, GB_OK);
        core_fixture_run(&again->x, 30 * GB_SEC);
        assert_true(again->closed);
        assert_string_equal(again->lease.owner, ""); /* nothing is left behind */
        assert_false(again->session.running);
        gb_session_manager_free(again->m);
        again->m = NULL;
        again->closed = false;
        again->close = (struct gb_op){0};
        again->lease.script[FAKE_RENEW] = (struct fake_script){.next = 0};
        again->lease.script[FAKE_ACQUIRE] = (struct fake_script){.next = 0};
    }
}

static void connecting_before_the_lease(void **state)
{
    struct bench *b = *state;
    b->cfg.connect_after_lease = false;
    fake_lease_steal(&b->lease, "other#1");
    make(b);
    core_fixture_run(&b->x, GB_SEC);
    assert_int_equal(b->session.starts, 1);
    fake_session_serve(&b->session, true);
    b->lease.owner[0] = '\0';
    core_fixture_run(&b->x, 3 * GB_SEC);
    demand(b, GB_MANAGER_ACTIVE);
    assert_int_equal(b->session.starts, 1);
}

static void bad_configurations(void **state)
{
    struct bench *b = *state;
    struct gb_session_manager *m = NULL;
    struct gb_session_manager_cfg cfg = b->cfg;
    cfg.owner = "";
    assert_int_equal(gb_session_manager_new(&cfg, &m).code, GB_INVALID_CONFIG);
    cfg = b->cfg;
    cfg.cadence.ttl_ns = 0;
    assert_int_equal(gb_session_manager_new(&cfg, &m).code, GB_INVALID_CONFIG);
    assert_null(m);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(check_06_17_delays),
        TEST(stands_by_without_connecting),
        TEST(outages_never_end_the_waiting),
        TEST(an_answer_after_the_end_is_worth_nothing),
        TEST(activates_and_renews_meanwhile),
        TEST(an_activation_past_its_bound_is_terminal),
        TEST(a_failed_connect_gives_the_lease_back),
        TEST(unknown_activation),
        TEST(renewals_that_fail_end_by_the_deadline),
        TEST(the_deadline_counts_from_before_the_call),
        TEST(one_stale_token_steps_down_at_once),
        TEST(the_row_decides_after_max_fails),
        TEST(a_term_ends_what_was_seen_before),
        TEST(a_suspend_past_the_ttl_ends_the_authority_at_once),
        TEST(grace_waits_for_what_is_in_flight),
        TEST(an_idle_drainer_skips_the_grace),
        TEST(a_hanging_close_keeps_the_lease),
        TEST(a_close_with_an_error_has_returned),
        TEST(a_refused_release_is_not_asked_again),
        TEST(a_broken_broker_path_is_handed_over),
        TEST(off_means_that_nothing_moves),
        TEST(a_shutdown_closes_before_it_releases),
        TEST(a_shutdown_keeps_the_lease_of_a_hanging_session),
        TEST(a_lease_won_while_closing_is_released),
        TEST(closing_at_any_moment),
        TEST(connecting_before_the_lease),
        TEST(bad_configurations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
