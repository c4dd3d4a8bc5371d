#include "api/service_level.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define FULL_SESSION                                                                               \
    {                                                                                              \
        .id = "s", .health = {.connected = true, .ready = true, .service_level = GB_LEVEL_FULL }   \
    }
#define STANDBY(after)                                                                             \
    {                                                                                              \
        .id = "l", .exclusive = true, .lease = {.connect_after = (after) }                         \
    }

/* One session and one route each; `is` are readiness, role, service level, ready_for_traffic. */
static const struct row {
    const char *name;
    struct gb_monitor_session session; /* without id: none */
    struct gb_monitor_route route;     /* without id: none */
    bool no_runtime, stopped, unhealthy;
    enum gb_readiness level;
    enum gb_role role;
    enum gb_service_level service;
    bool traffic;
} rows[] = {
    {"full",
     FULL_SESSION,
     {.id = "r", .ready = true},
     0,
     0,
     0,
     GB_READY_FULL,
     GB_ROLE_STANDALONE,
     GB_LEVEL_FULL,
     true},
    {"no runtime", {0}, {0}, true, 0, 0, GB_READY_LIVE, GB_ROLE_STANDALONE, GB_LEVEL_NONE, false},
    {"stopped",
     FULL_SESSION,
     {.id = "r", .ready = true},
     0,
     true,
     0,
     GB_READY_LIVE,
     GB_ROLE_STANDALONE,
     GB_LEVEL_FULL,
     false},
    {"unhealthy",
     FULL_SESSION,
     {.id = "r", .ready = true},
     0,
     0,
     true,
     GB_READY_LIVE,
     GB_ROLE_STANDALONE,
     GB_LEVEL_FULL,
     false},
    {"empty", {0}, {0}, 0, 0, 0, GB_READY_RUNNING, GB_ROLE_STANDALONE, GB_LEVEL_NONE, false},
    {"routes only",
     {0},
     {.id = "r", .ready = true},
     0,
     0,
     0,
     GB_READY_FULL,
     GB_ROLE_STANDALONE,
     GB_LEVEL_FULL,
     true},
    {"disconnected",
     {.id = "s", .health = {.ready = true, .service_level = GB_LEVEL_FULL}},
     {.id = "r", .ready = true},
     0,
     0,
     0,
     GB_READY_RUNNING,
     GB_ROLE_STANDALONE,
     GB_LEVEL_NONE,
     false},
    {"not converged",
     {.id = "s", .health = {.connected = true, .service_level = GB_LEVEL_FULL}},
     {.id = "r", .ready = true},
     0,
     0,
     0,
     GB_READY_CONNECTED,
     GB_ROLE_STANDALONE,
     GB_LEVEL_FULL,
     true},
    {"degraded",
     {.id = "s", .health = {.connected = true, .ready = true, .service_level = GB_LEVEL_DEGRADED}},
     {.id = "r", .ready = true},
     0,
     0,
     0,
     GB_READY_SUBSCRIBED,
     GB_ROLE_STANDALONE,
     GB_LEVEL_DEGRADED,
     true},
    {"route not started",
     FULL_SESSION,
     {.id = "r"},
     0,
     0,
     0,
     GB_READY_SUBSCRIBED,
     GB_ROLE_STANDALONE,
     GB_LEVEL_FULL,
     true},
    {"route dead",
     FULL_SESSION,
     {.id = "r", .ready = true, .dead = true},
     0,
     0,
     0,
     GB_READY_SUBSCRIBED,
     GB_ROLE_STANDALONE,
     GB_LEVEL_FULL,
     true},
    {"standby, connects later",
     STANDBY(true),
     {.id = "r", .ready = true},
     0,
     0,
     0,
     GB_READY_SUBSCRIBED,
     GB_ROLE_STANDBY,
     GB_LEVEL_NONE,
     false},
    {"standby that should be connected",
     STANDBY(false),
     {.id = "r", .ready = true},
     0,
     0,
     0,
     GB_READY_RUNNING,
     GB_ROLE_STANDBY,
     GB_LEVEL_NONE,
     false},
    {"owner",
     {.id = "l",
      .exclusive = true,
      .lease = {.holds = true, .connect_after = true},
      .health = {.connected = true, .ready = true, .service_level = GB_LEVEL_FULL}},
     {.id = "r", .ready = true},
     0,
     0,
     0,
     GB_READY_FULL,
     GB_ROLE_ACTIVE,
     GB_LEVEL_FULL,
     true},
    {"owner on its way",
     {.id = "l", .exclusive = true, .lease = {.holds = true, .connect_after = true}},
     {.id = "r", .ready = true},
     0,
     0,
     0,
     GB_READY_RUNNING,
     GB_ROLE_ACTIVE,
     GB_LEVEL_NONE,
     false},
};

static void levels(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct row *w = &rows[i];
        const struct gb_monitor_snapshot s = {
            .runtime = !w->no_runtime,
            .running = !w->no_runtime && !w->stopped,
            .healthy = !w->unhealthy,
            .sessions = &w->session,
            .session_count = w->session.id != NULL,
            .routes = &w->route,
            .route_count = w->route.id != NULL,
        };
        if (gb_readiness_of(&s) != w->level || gb_role_of(&s) != w->role ||
            gb_service_level_of(&s) != w->service || gb_ready_for_traffic(&s) != w->traffic) {
            fail_msg("%s: %s %s %s %d", w->name, gb_readiness_name(gb_readiness_of(&s)),
                     gb_role_name(gb_role_of(&s)), gb_service_level_name(gb_service_level_of(&s)),
                     gb_ready_for_traffic(&s));
        }
    }
}

static void the_lowest_session_counts(void **state)
{
    (void)state;
    const struct gb_monitor_session sessions[] = {
        FULL_SESSION,
        {.id = "t", .health = {.connected = true, .service_level = GB_LEVEL_DEGRADED}},
        STANDBY(true),
    };
    struct gb_monitor_snapshot s = {.runtime = true,
                                    .running = true,
                                    .healthy = true,
                                    .sessions = sessions,
                                    .session_count = 3};
    assert_int_equal(gb_readiness_of(&s), GB_READY_CONNECTED);
    assert_int_equal(gb_service_level_of(&s), GB_LEVEL_NONE);
    s.session_count = 2;
    assert_int_equal(gb_service_level_of(&s), GB_LEVEL_DEGRADED);
    s.session_count = 1;
    assert_int_equal(gb_readiness_of(&s), GB_READY_FULL);
}

static void parse(void **state)
{
    (void)state;
    enum gb_readiness level = GB_READY_DOWN;
    assert_true(gb_readiness_parse(" FULL\t", &level));
    assert_int_equal(level, GB_READY_FULL);
    assert_true(gb_readiness_parse("live", &level));
    assert_int_equal(level, GB_READY_LIVE);
    static const char *const bad[] = {"", " ", "down", "banana", "ful", "fullx", "full x"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(gb_readiness_parse(bad[i], &level));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(levels),
        cmocka_unit_test(the_lowest_session_counts),
        cmocka_unit_test(parse),
    };
    return cmocka_run_group_tests_name("service_level", tests, NULL, NULL);
}
