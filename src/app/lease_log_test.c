#include "app/lease_log.h"

#include "base/log.h"
#include "blueprint/patched_document.h"

static void keep(void *arg, enum gb_log_level level, const char *line, size_t size)
{
    struct gb_str *lines = arg;
    assert_int_equal(level, GB_LOG_INFO);
    const char *from = strstr(line, "\"msg\":"); /* without the time */
    assert_true(from != NULL && from < line + size);
    gb_str_append(lines, gb_bytes(from, size - (size_t)(from - line)));
}

/* What the build of a document logs; to be freed. */
static char *logged(const char *text)
{
    struct gb_findings findings = {0};
    struct gb_blueprint *b = NULL;
    struct gb_str lines = {0};
    gb_str_append_c(&lines, "");
    struct gb_err err =
        gb_blueprint_load(gb_bytes_c(text), "doc", GB_BLUEPRINT_YAML, &findings, &b);
    assert_int_equal(err.code, GB_OK);
    gb_log_set_sink(keep, &lines);
    assert_int_equal(gb_lease_log(b).code, GB_OK);
    gb_log_set_sink(NULL, NULL);
    gb_findings_deinit(&findings);
    gb_blueprint_free(b);
    return gb_str_take(&lines);
}

static const struct log_row {
    const char *name, *document, *find, *replace, *want;
} rows[] = {
#define LINE(id, budget, ttl, activation, startup, path)                                           \
    "\"msg\":\"worst-case failover budget\",\"session_id\":\"" id                                  \
    "\",\"failover_budget\":\"" budget "\",\"lease_ttl\":\"" ttl                                   \
    "\",\"post_takeover_activation\":\"" activation "\",\"startup_allowance\":\"" startup          \
    "\",\"broker_path_failover\":\"" path "\"}\n"
    {"seed", "cluster.yaml",
     "bridge:", "bridge:", LINE("mqtt-conn", "16m7.5s", "5m0s", "4m0s", "10s", "off")},
    {"01 check 4", "cluster.yaml", "broker_health_step_down: off", "broker_health_step_down: 30s",
     LINE("mqtt-conn", "16m7.5s", "5m0s", "4m0s", "10s", "6m52.499999999s")},
    {"06 check 15, no objective", "cluster.yaml",
     "      failover_slo: 980s\n      startup_allowance: 10s\n"
     "      broker_health_step_down: off\n",
     "", LINE("mqtt-conn", "15m57.5s", "5m0s", "4m0s", "0s", "undecided")},
    {"unknown, in the order of ids", "leases.yaml", "bridge:", "bridge:",
     LINE("by-binding", "18m17.5s", "6m0s", "4m0s", "0s", "undecided")
         LINE("ephemeral", "unknown", "6m0s", "unknown", "0s", "undecided")},
    {"the path alone is unknown", "cluster.yaml",
     "      failover_slo: 980s\n      startup_allowance: 10s\n"
     "      broker_health_step_down: off\n",
     "      broker_health_step_down: 2562047h47m\n",
     LINE("mqtt-conn", "15m57.5s", "5m0s", "4m0s", "0s", "unknown")},
    {"no lease", "standalone.yaml", "bridge:", "bridge:", ""},
};

static void budgets_of_lease_managed_sessions(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char path[128];
        (void)snprintf(path, sizeof path, DOCUMENTS "%s", rows[i].document);
        char *base = read_text(path);
        char *text = with_change(base, rows[i].find, rows[i].replace);
        char *got = logged(text);
        if (strcmp(got, rows[i].want) != 0) {
            fail_msg("%s: expected\n%sgot\n%s", rows[i].name, rows[i].want, got);
        }
        free(got);
        free(text);
        free(base);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(budgets_of_lease_managed_sessions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
