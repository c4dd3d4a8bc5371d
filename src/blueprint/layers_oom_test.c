#include "blueprint/rule_rows.h"
#include "support/oom.h"

/* Layers and overrides with the n-th allocation failing, until all succeed: out of memory is an
 * error value, never a crash, a leak or a wrong answer. */

enum { LADDER_MAX = 20000 };

static struct gb_err load(const struct gb_blueprint_input *in, struct gb_blueprint **out)
{
    struct gb_findings findings = {0};
    struct gb_err err = gb_blueprint_load_layers(in, &findings, out);
    gb_findings_deinit(&findings);
    return err;
}

static void climb(const struct gb_blueprint_input *in, enum gb_code want)
{
    struct gb_blueprint *b = NULL;
    unsigned n = 1;
    bool reached = true;
    for (; reached && n < LADDER_MAX; n++) {
        b = NULL;
        gb_oom_fail_at(n);
        enum gb_code code = load(in, &b).code;
        reached = gb_oom_count() >= n;
        gb_oom_off();
        assert_int_equal(b != NULL, code == GB_OK);
        if (code != GB_UNAVAILABLE && code != want)
            fail_msg("step %u: %d, not %d", n, (int)code, (int)want);
        assert_true(reached || code == want);
        gb_blueprint_free(b);
    }
    assert_false(reached);
    assert_true(n > 30);
}

static void layers_and_overrides(void **state)
{
    (void)state;
    char *base = read_document(DOCUMENTS "standalone.yaml");
    const struct gb_blueprint_layer layers[] = {
        {.name = "base", .bytes = gb_bytes_c(base)},
        {.name = "kinds",
         .bytes = gb_bytes_c("senders: [{id: sqs-out, transport: http}, {id: b, transport: sqs}]\n"
                             "processors: {p: {type: filter}}")},
        {.name = "back",
         .bytes = gb_bytes_c("senders: [{id: sqs-out, transport: sqs, options: {queue_url: "
                             "https://h/q}}, {id: b, options: {queue_url: https://h/r}}]\n"
                             "bindings: [{id: to-sqs, session_id: plant}]")},
    };
    const struct gb_blueprint_override good[] = {
        {"-set 1", "bridge.log_level", gb_bytes_c("debug")},
        {"-set 2", "receivers[telemetry-in].topics[0]", gb_bytes_c("{topic: a, qos: 0}")},
    };
    const struct gb_blueprint_override bad[] = {
        {"-set 1", "senders[c].x", gb_bytes_c("1")},
        {"-set 2", "bridge.log_levl", gb_bytes_c("[1")},
        {"-set 3", "http.admin_api_key", gb_bytes_c("\"[REDACTED]\"")},
    };
    const struct gb_blueprint_env env = {"i", "0123456789abcdef", "0123456789abcdef"};
    struct gb_blueprint_input in = {layers, 3, good, 2, env};
    climb(&in, GB_OK);
    in.layer_count = 1;
    climb(&in, GB_OK);
    in.overrides = bad;
    in.override_count = 3;
    climb(&in, GB_INVALID_CONFIG);
    free(base);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(layers_and_overrides)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
