#include "app/runtime.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "app/seed_list.h"
#include "base/log.h"
#include "support/oom.h"

/* Allocation ladders of the composition root: a runtime that could not be built is closed by the
 * same phases as a running one and leaves nothing behind (ASan). */

enum { LADDER_MAX = 2000 };

/* Volatile stores: those on SQLite have a thread of their own, whose allocations come at any time;
 * their constructors climb in tests/contract. */
static const char document[] =
    "{\"bridge\":{\"id\":\"b\"},"
    "\"stores\":{"
    "\"outbox\":{\"type\":\"memory\",\"options\":{\"acknowledge_volatile\":true}},"
    "\"dlq\":{\"type\":\"memory\",\"options\":{\"acknowledge_volatile\":true}}},"
    "\"sessions\":[{\"id\":\"s\",\"transport\":\"mqtt\",\"session_mode\":\"ephemeral\","
    "\"options\":{\"session\":{\"broker_url\":\"tcp://localhost:1883\",\"client_id\":\"c\"}}}],"
    "\"receivers\":[{\"id\":\"in\",\"session_id\":\"s\","
    "\"topics\":[{\"topic\":\"a/#\",\"qos\":1},{\"topic\":\"b\",\"qos\":0}]}],"
    "\"senders\":[{\"id\":\"queue\",\"transport\":\"sqs\",\"options\":{"
    "\"queue_url\":\"http://localhost:9324/1/q\",\"region\":\"eu-west-1\"}},"
    "{\"id\":\"back\",\"session_id\":\"s\",\"options\":{\"sender\":{\"qos\":1}}}],"
    "\"bindings\":[{\"id\":\"to-queue\",\"sender_id\":\"queue\",\"address\":\"q\"},"
    "{\"id\":\"to-back\",\"sender_id\":\"back\",\"address\":\"x\"}],"
    "\"routes\":[{\"id\":\"r\",\"receiver_id\":\"in\",\"delivery_mode\":\"shared_outbox\","
    "\"dispatch_mode\":\"fan_out\",\"bindings\":[\"to-queue\",\"to-back\"]}]}";

static void quiet(void *arg, enum gb_log_level level, const char *line, size_t size)
{
    (void)arg;
    (void)level;
    (void)line;
    (void)size;
}

static void terminal(void *arg, struct gb_err cause)
{
    (void)arg;
    fail_msg("terminal: %s", cause.message);
}

struct closing {
    struct gb_loop *loop;
    unsigned done;
    struct gb_err result;
};

static void closed(void *arg, struct gb_err result)
{
    struct closing *c = arg;
    c->done++;
    c->result = result;
    gb_loop_stop(c->loop);
}

/* Builds with the n-th allocation failing and closes what there is; false: none failed any more. */
static bool build_failing_at(const struct gb_blueprint *blueprint, unsigned n, unsigned *refused)
{
    struct closing c = {0};
    struct gb_metrics *metrics = NULL;
    struct gb_runtime *r = NULL;
    assert_int_equal(gb_loop_new(&c.loop).code, GB_OK);
    assert_int_equal(gb_metrics_new(&metrics).code, GB_OK);
    const struct gb_runtime_cfg cfg = {.loop = c.loop,
                                       .metrics = metrics,
                                       .blueprint = blueprint,
                                       .instance_id = "i1",
                                       .owner = "i1#n",
                                       .terminal = terminal};
    gb_oom_fail_at(n);
    struct gb_err err = gb_runtime_new(&cfg, &r);
    bool failed = gb_oom_count() >= n;
    gb_oom_off();
    /* A metric or a log line can be done without, the rest is an error. */
    if (err.code != GB_OK) assert_int_equal(err.code, GB_UNAVAILABLE);
    if (!failed) assert_int_equal(err.code, GB_OK);
    if (r != NULL) {
        uint64_t now_ns = gb_reactor_now_ns(gb_loop_reactor(c.loop));
        gb_runtime_stop(r, now_ns + 60 * (uint64_t)GB_SEC, closed, &c);
        gb_loop_run(c.loop);
        assert_int_equal(c.done, 1);
        assert_int_equal(c.result.code, GB_OK);
        gb_runtime_free(r);
    }
    *refused += err.code != GB_OK;
    gb_metrics_free(metrics);
    gb_loop_drain_closing(c.loop);
    gb_loop_free(c.loop);
    return failed;
}

static void runtime(void **state)
{
    (void)state;
    struct gb_findings findings = {0};
    struct gb_blueprint *blueprint = NULL;
    struct gb_err err =
        gb_blueprint_load(gb_bytes_c(document), "doc", GB_BLUEPRINT_JSON, &findings, &blueprint);
    struct gb_str text = {0};
    gb_findings_print(&findings, (const char *const[]){"doc"}, &text);
    if (gb_failed(err)) fail_msg("%s %s", err.message, text.data);
    gb_str_deinit(&text);
    gb_findings_deinit(&findings);
    unsigned refused = 0;
    unsigned n = 1;
    while (build_failing_at(blueprint, n, &refused)) assert_true(++n < LADDER_MAX);
    assert_true(refused > 50);
    gb_blueprint_free(blueprint);
}

static void seeds(void **state)
{
    (void)state;
    const struct gb_options o = {.seeds = {"s=a", "t"}, .seed_count = 2};
    for (unsigned n = 1; n <= 3; n++) {
        struct gb_seed *list = calloc(2, sizeof *list);
        assert_non_null(list);
        gb_oom_fail_at(n);
        struct gb_err err = gb_seeds_read(&o, list);
        gb_oom_off();
        assert_int_equal(err.code, n < 3 ? GB_UNAVAILABLE : GB_OK);
        for (size_t i = 0; i < 2; i++) gb_seed_deinit(&list[i]);
        free(list);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runtime),
        cmocka_unit_test(seeds),
    };
    gb_log_set_sink(quiet, NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
