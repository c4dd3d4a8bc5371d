#include "blueprint/bootstrap.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/duration.h"

#define HEX "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define BASE "\"bridge_id\":\"b\",\"config_file_path\":\"/b.yaml\""
#define HA(tables) "{" BASE ",\"topology\":\"dynamodb_coordinated_ha\"," tables "}"
#define TABLES                                                                                     \
    "\"dynamodb_ha_lease_table_name\":\"l\",\"dynamodb_ha_outbox_table_name\":\"o\","              \
    "\"dynamodb_ha_managed_subscriptions_table_name\":\"m\""

static struct gb_bootstrap *read_ok(const char *text, const char *role)
{
    struct gb_bootstrap *b = NULL;
    struct gb_err err = gb_bootstrap_read(gb_bytes_c(text), role, &b);
    if (gb_failed(err)) fail_msg("%s: %s", text, err.message);
    return b;
}

static void defaults(void **state)
{
    (void)state;
    struct gb_bootstrap *b = read_ok("{" BASE "}", NULL);
    assert_string_equal(b->bridge_id, "b");
    assert_string_equal(b->config_file_path, "/b.yaml");
    assert_int_equal(b->topology, GB_TOPOLOGY_SINGLE);
    assert_false(b->worker);
    assert_int_equal(b->poll_interval_ns, GB_SEC);
    assert_null(b->member_id);
    assert_null(b->instance_id);
    gb_bootstrap_free(b);
}

static void poll_interval_that_is_none_is_the_default(void **state)
{
    (void)state;
    static const struct {
        const char *written;
        int64_t ns;
    } rows[] = {{"", GB_SEC},   {"soon", GB_SEC}, {"-1s", GB_SEC},
                {"0s", GB_SEC}, {"1ns", 1},       {"5s", 5 * GB_SEC}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct gb_str text = {0};
        gb_str_appendf(&text, "{" BASE ",\"poll_interval\":\"%s\"}", rows[i].written);
        struct gb_bootstrap *b = read_ok(text.data, NULL);
        assert_int_equal(b->poll_interval_ns, rows[i].ns);
        gb_bootstrap_free(b);
        gb_str_deinit(&text);
    }
}

static void high_availability(void **state)
{
    (void)state;
    struct gb_bootstrap *b = read_ok(
        HA(TABLES ",\"dynamodb_ha_config_fingerprint\":\"" HEX "\",\"member_id\":\"c\""), "worker");
    assert_int_equal(b->topology, GB_TOPOLOGY_HA);
    assert_true(b->worker);
    assert_string_equal(b->lease_table, "l");
    assert_string_equal(b->outbox_table, "o");
    assert_string_equal(b->subscriptions_table, "m");
    assert_string_equal(b->fingerprint, HEX);
    assert_string_equal(b->rollout_table, "gobridge-rollouts");
    assert_string_equal(b->member_id, "c");
    gb_bootstrap_free(b);
}

static void borders(void **state)
{
    (void)state;
    static const char *const accepted[] = {
        "{" BASE ",\"rollout_lease_ttl\":\"15003ms\"}",
        "{" BASE ",\"rollout_store_call_timeout\":\"9999ms\"}",
        "{" BASE ",\"dev_mode\":true,\"ssm_endpoint\":\"http://x\"}",
        "{" BASE ",\"member_id\":\"\",\"metrics_exporter\":\"x\"}",
    };
    for (size_t i = 0; i < sizeof accepted / sizeof accepted[0]; i++) {
        struct gb_bootstrap *b = read_ok(accepted[i], NULL);
        assert_null(b->member_id);
        gb_bootstrap_free(b);
    }
    for (size_t size = 4096; size <= 4097; size++) {
        struct gb_str text = {0};
        struct gb_bootstrap *b = NULL;
        gb_str_append_c(&text, "{" BASE ",\"member_id\":\"");
        for (size_t i = 0; i < size; i++) gb_str_append_char(&text, 'x');
        gb_str_append_c(&text, "\"}");
        struct gb_err err = gb_bootstrap_read(gb_str_bytes(&text), NULL, &b);
        assert_int_equal(err.code, size == 4096 ? GB_OK : GB_INVALID_CONFIG);
        gb_bootstrap_free(b);
        gb_str_deinit(&text);
    }
}

static void node_role(void **state)
{
    (void)state;
    struct gb_bootstrap *b = read_ok("{" BASE ",\"node_role\":\"control\"}", "control");
    assert_false(b->worker);
    gb_bootstrap_free(b);
    b = read_ok("{" BASE ",\"node_role\":\"worker\"}", NULL);
    assert_true(b->worker);
    gb_bootstrap_free(b);
}

static const struct {
    const char *text, *role, *says;
} refused_rows[] = {
    {"", NULL, "no JSON object"},
    {"[]", NULL, "no JSON object"},
    {"{" BASE, NULL, "bootstrap: invalid JSON at line 1, column 46: "},
    {"{" BASE "} x", NULL, "bootstrap: invalid JSON at line 1, column 48: "},
    {"{" BASE ",\"dev_mode\":tru}", NULL, "bootstrap: invalid JSON at line 1, column 61: "},
    {"{" BASE ",\"http_sender_api_key_params\":{\"a\"}}", NULL, "invalid JSON at line 1"},
    {"{" BASE ",\"http_sender_api_key_params\":{\"a\":\"b\"]", NULL, "invalid JSON at line 1"},
    {"{" BASE ",\"managed_subscription_baselines\":{\"a\":[\"b\"}}", NULL, "invalid JSON at"},
    {"{" BASE ",\"bridge\":1}", NULL, "unknown key \"bridge\" at line 1, column "},
    {"{" BASE ",\"bridge_id\":\"c\"}", NULL, "bridge_id is written twice; remove one"},
    {"{" BASE ",\"topology\":1}", NULL, "topology is not a text"},
    {"{" BASE ",\"dev_mode\":\"yes\"}", NULL, "dev_mode is not true or false"},
    {"{" BASE ",\"container_memory_bytes\":-1}", NULL, "is not a whole number"},
    {"{" BASE ",\"config_dynamodb\":[]}", NULL, "config_dynamodb is not an object"},
    {"{" BASE ",\"http_sender_api_key_params\":{\"a\":1}}", NULL, "an object of texts"},
    {"{" BASE ",\"managed_subscription_baselines\":{\"a\":[1]}}", NULL, "lists of texts"},
    {"{" BASE ",\"admin_addr\":\"a\\u0001\"}", NULL, "admin_addr holds control characters"},
    {"{" BASE ",\"admin_addr\":\"\\u0001\"}", NULL, "admin_addr holds control characters"},
    {"{\"config_file_path\":\"/b\"}", NULL, "bridge_id is required; write it"},
    {"{\"bridge_id\":\"b\"}", NULL, "config_file_path is required by config_source file"},
    {"{" BASE ",\"config_source\":\"s3\"}", NULL, "\"s3\" is not one of: file, dynamodb"},
    {"{" BASE ",\"config_dynamodb\":{}}", NULL, "beside config_source file"},
    {"{" BASE ",\"config_dynamodb\":{\"x\":1}}", NULL, "unknown key \"x\""},
    {"{" BASE ",\"config_source\":\"dynamodb\"}", NULL, "beside config_source dynamodb"},
    {"{\"bridge_id\":\"b\",\"config_source\":\"dynamodb\"}", NULL, "table_name is required"},
    {"{\"bridge_id\":\"b\",\"config_source\":\"dynamodb\",\"config_dynamodb\":{\"table_name\":"
     "\"t\"}}",
     NULL, "\"dynamodb\" is not supported yet by this release; use file"},
    {"{\"bridge_id\":\"b\",\"config_source\":\"dynamodb\",\"topology\":\"filesystem_replicated\"}",
     NULL, "does not go with topology filesystem_replicated"},
    {"{" BASE ",\"topology\":\"x\u20ac\u20ac\u20ac\u20ac\u20ac\u20ac\u20ac\u20ac\u20ac\u20ac\u20ac"
     "\u20ac\u20ac\u20ac\u20ac\u20ac\u20ac\u20ac\u20ac\u20ac\u20ac\"}",
     NULL, "\u20ac...\" is not one of: single, "},
    {"{" BASE ",\"topology\":\"ha\"}", NULL, "\"ha\" is not one of: single, "},
    {"{" BASE ",\"node_role\":\"boss\"}", NULL, "\"boss\" is not one of: control, worker"},
    {"{" BASE "}", "boss", "\"boss\" is not one of: control, worker"},
    {"{" BASE ",\"node_role\":\"worker\"}", "control", "differs from the environment's"},
    {HA("\"dynamodb_ha_lease_table_name\":\"l\""), NULL, "dynamodb_ha_outbox_table_name is req"},
    {HA("\"dynamodb_ha_lease_table_name\":\"l\",\"dynamodb_ha_outbox_table_name\":\"l\","
        "\"dynamodb_ha_managed_subscriptions_table_name\":\"m\""),
     NULL, "are both \"l\""},
    {HA(TABLES), NULL, "dynamodb_ha_config_fingerprint is required"},
    {HA(TABLES ",\"dynamodb_ha_config_fingerprint\":\"ABC\""), NULL, "64 lower-case hex digits"},
    {HA(TABLES ",\"dynamodb_ha_config_fingerprint\":\"" HEX
               "\",\"dynamodb_ha_baseline_config_digest\":\"x\""),
     NULL, "baseline_config_digest \"x\" is not 64"},
    {"{" BASE ",\"rollout_lease_ttl\":\"15s\"}", NULL, "a third of rollout_lease_ttl"},
    {"{" BASE ",\"rollout_store_call_timeout\":\"10s\"}", NULL, "a third of rollout_lease_ttl"},
    {"{\"bridge_id\":\"\",\"config_file_path\":\"/b\"}", NULL, "bridge_id is required; write it"},
    {HA("\"dynamodb_ha_lease_table_name\":\"l\",\"dynamodb_ha_outbox_table_name\":\"o\""), NULL,
     "dynamodb_ha_managed_subscriptions_table_name is req"},
    {HA("\"dynamodb_ha_outbox_table_name\":\"o\""), NULL, "dynamodb_ha_lease_table_name is req"},
    {HA("\"dynamodb_ha_lease_table_name\":\"l\",\"dynamodb_ha_outbox_table_name\":\"o\","
        "\"dynamodb_ha_managed_subscriptions_table_name\":\"l\""),
     NULL, "are both \"l\""},
    {HA(TABLES ",\"dynamodb_ha_config_fingerprint\":\"" HEX "0\""), NULL, "64 lower-case hex"},
    {HA(TABLES ",\"dynamodb_ha_config_fingerprint\":\"X" HEX "\""), NULL, "64 lower-case hex"},
    {HA(TABLES ",\"dynamodb_ha_config_fingerprint\":"
               "\"g123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\""),
     NULL, "64 lower-case hex"},
    {"{" BASE ",\"dev_mode\":false,\"ssm_endpoint\":\"http://x\"}", NULL, "write dev_mode: true"},
    {"{" BASE ",\"ssm_endpoint\":\"http://x\"}", NULL, "write dev_mode: true"},
    {"{" BASE ",\"managed_subscription_baselines\":{}}", NULL, "not supported yet"},
};

static void refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refused_rows / sizeof refused_rows[0]; i++) {
        struct gb_bootstrap *b = NULL;
        struct gb_err err =
            gb_bootstrap_read(gb_bytes_c(refused_rows[i].text), refused_rows[i].role, &b);
        assert_null(b);
        assert_int_equal(err.code, GB_INVALID_CONFIG);
        if (strstr(err.message, refused_rows[i].says) == NULL)
            fail_msg("row %zu (%s): %s", i, refused_rows[i].text, err.message);
        assert_int_equal(strncmp(err.message, "bootstrap: ", 11), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults),
        cmocka_unit_test(poll_interval_that_is_none_is_the_default),
        cmocka_unit_test(high_availability),
        cmocka_unit_test(borders),
        cmocka_unit_test(node_role),
        cmocka_unit_test(refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
