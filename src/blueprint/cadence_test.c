#include "blueprint/cadence.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define MS(n) ((n)*GB_MS)
#define S(n) ((n)*GB_SEC)

/* 0 = not written. */
static const struct cadence_row {
    const char *name;
    bool clustered;
    int64_t ttl, renew, jitter, call, poll, grace, fails;
    struct gb_cadence want;
} rows[] = {
    {"01 row 17, clustered baseline",
     true,
     0,
     0,
     0,
     0,
     0,
     0,
     0,
     {.ttl_ns = S(45),
      .renew_ns = S(10),
      .jitter_ns = S(1),
      .call_ns = S(3),
      .poll_ns = S(5),
      .grace_ns = S(5),
      .fails = 3,
      .span_ns = MS(40500)}},
    {"01 row 17, standalone",
     false,
     0,
     0,
     0,
     0,
     0,
     0,
     0,
     {.ttl_ns = S(360),
      .renew_ns = 75555555555,
      .jitter_ns = 18888888888,
      .call_ns = S(5),
      .poll_ns = S(5),
      .grace_ns = S(15),
      .fails = 3,
      .span_ns = 269999999997}},
    {"seed example",
     true,
     S(300),
     0,
     0,
     0,
     0,
     S(20),
     3,
     {.ttl_ns = S(300),
      .renew_ns = 62222222222,
      .jitter_ns = 15555555555,
      .call_ns = S(5),
      .poll_ns = S(5),
      .grace_ns = S(20),
      .fails = 3,
      .span_ns = 224999999997}},
    {"01 row 16, span too long",
     false,
     S(10),
     S(3),
     0,
     0,
     0,
     0,
     0,
     {.ttl_ns = S(10),
      .renew_ns = S(3),
      .call_ns = MS(1500),
      .poll_ns = MS(2500),
      .grace_ns = S(15),
      .fails = 3,
      .span_ns = MS(13500),
      .cut = true}},
    {"01 row 16, accepted",
     false,
     S(30),
     0,
     0,
     0,
     0,
     0,
     0,
     {.ttl_ns = S(30),
      .renew_ns = 3333333333,
      .jitter_ns = 833333333,
      .call_ns = 1666666666,
      .poll_ns = 3333333333,
      .grace_ns = S(15),
      .fails = 3,
      .span_ns = 16249999995}},
    {"renew written: no jitter of its own",
     true,
     0,
     S(20),
     0,
     0,
     0,
     0,
     0,
     {.ttl_ns = S(360),
      .renew_ns = S(20),
      .call_ns = S(5),
      .poll_ns = S(5),
      .grace_ns = S(15),
      .fails = 3,
      .span_ns = S(75)}},
    {"only the jitter is trimmed",
     false,
     S(30),
     S(5),
     S(10),
     S(3),
     0,
     0,
     0,
     {.ttl_ns = S(30),
      .renew_ns = S(5),
      .jitter_ns = S(2),
      .call_ns = S(3),
      .poll_ns = S(5),
      .grace_ns = S(15),
      .fails = 3,
      .span_ns = S(39),
      .trimmed = true}},
    {"written poll",
     false,
     0,
     0,
     0,
     0,
     MS(100),
     0,
     1,
     {.ttl_ns = S(360),
      .renew_ns = 235555555555,
      .jitter_ns = 58888888888,
      .call_ns = S(5),
      .poll_ns = MS(100),
      .grace_ns = S(15),
      .fails = 1,
      .span_ns = S(270) - 1}},
};

static void cadences(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct cadence_row *row = &rows[i];
        struct gb_bp_route_session s = {
            .lease_ttl = {row->ttl, row->ttl > 0},
            .renew_interval = {row->renew, row->renew > 0},
            .lease_renew_jitter = {row->jitter, row->jitter > 0},
            .renew_call_timeout = {row->call, row->call > 0},
            .acquire_poll_interval = {row->poll, row->poll > 0},
            .step_down_grace = {row->grace, row->grace > 0},
            .max_renew_fails = {row->fails, row->fails > 0},
        };
        struct gb_cadence got = gb_blueprint_cadence(&s, row->clustered);
        const struct gb_cadence *want = &row->want;
        if (got.ttl_ns != want->ttl_ns || got.renew_ns != want->renew_ns ||
            got.jitter_ns != want->jitter_ns || got.call_ns != want->call_ns ||
            got.poll_ns != want->poll_ns || got.grace_ns != want->grace_ns ||
            got.fails != want->fails || got.span_ns != want->span_ns ||
            got.trimmed != want->trimmed || got.cut != want->cut) {
            fail_msg("%s: ttl %lld renew %lld jitter %lld call %lld poll %lld span %lld cut %d",
                     row->name, (long long)got.ttl_ns, (long long)got.renew_ns,
                     (long long)got.jitter_ns, (long long)got.call_ns, (long long)got.poll_ns,
                     (long long)got.span_ns, got.cut);
        }
    }
}

static void extremes_do_not_overflow(void **state)
{
    (void)state;
    static const int64_t values[] = {1, INT64_MAX};
    for (size_t i = 0; i < 32; i++) {
        struct gb_bp_route_session s = {
            .lease_ttl = {values[i & 1], true},
            .renew_interval = {values[i >> 1 & 1], (i >> 1 & 1) == 1},
            .lease_renew_jitter = {values[i >> 2 & 1], true},
            .renew_call_timeout = {values[i >> 3 & 1], (i >> 3 & 1) == 1},
            .max_renew_fails = {(i >> 4 & 1) == 1 ? 1000000 : 1, true},
        };
        struct gb_cadence got = gb_blueprint_cadence(&s, false);
        assert_true(got.renew_ns > 0 && got.call_ns > 0 && got.poll_ns > 0 && got.jitter_ns >= 0);
        assert_true(got.span_ns > 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cadences),
        cmocka_unit_test(extremes_do_not_overflow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
