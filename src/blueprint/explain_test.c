#include "blueprint/explain.h"

#include "blueprint/patched_document.h"

/* The vectors stand beside the documents: read them as an operator would. */

#define VECTORS "tests/vectors/explain/"

/* To be freed. */
static char *explained(const char *text,
                       struct gb_err (*form)(const struct gb_explanation *of, struct gb_str *out))
{
    static const char *const names[] = {"doc"};
    struct gb_findings findings = {0};
    struct gb_blueprint *b = NULL;
    struct gb_str out = {0};
    struct gb_err err =
        gb_blueprint_load(gb_bytes_c(text), "doc", GB_BLUEPRINT_YAML, &findings, &b);
    assert_int_equal(gb_failed(err), b == NULL);
    const struct gb_explanation of = {b, &findings, names};
    for (size_t i = 0; i < findings.count; i++) { /* their texts are not this test's matter */
        if (findings.items[i].rule != GB_RULE_P1) findings.items[i].text[0] = '\0';
    }
    gb_str_append_c(&out, "");
    assert_int_equal(form(&of, &out).code, GB_OK);
    gb_findings_deinit(&findings);
    gb_blueprint_free(b);
    char *taken = gb_str_take(&out);
    assert_non_null(taken);
    return taken;
}

static const struct vector_row {
    const char *name; /* of the vector */
    const char *document;
    const char *find, *replace; /* NULL: as it is */
} rows[] = {
    {"cluster", "cluster.yaml", NULL, NULL},
    {"mixed", "mixed.yaml", NULL, NULL},
    {"standalone", "standalone.yaml", NULL, NULL},
    {"leases", "leases.yaml", NULL, NULL},
    {"baseline", "cluster.yaml",
     "      lease_ttl: 300s\n      step_down_grace: 20s\n      max_renew_fails: 3\n", ""},
    {"shortened", "cluster.yaml", "      lease_ttl: 300s\n",
     "      lease_ttl: 20s\n      renew_interval: 4s\n      lease_renew_jitter: 10s\n"
     "      acquire_poll_interval: 3s\n"},
    {"unknown", "mixed.yaml",
     "      lease_ttl: 300s\n      step_down_grace: 20s\n      failover_slo: 1000s\n"
     "      startup_allowance: 10s\n      broker_health_step_down: 60s\n",
     "      lease_ttl: 9223372036s\n      broker_health_step_down: 2562047h47m\n"},
    {"refused", "cluster.yaml", "failover_slo: 980s", "failover_slo: 967499999999ns"},
};

static void check(const struct vector_row *row, const char *extension,
                  struct gb_err (*form)(const struct gb_explanation *of, struct gb_str *out))
{
    char path[128];
    (void)snprintf(path, sizeof path, DOCUMENTS "%s", row->document);
    char *base = read_text(path);
    char *text = row->find == NULL ? gb_strdup(base) : with_change(base, row->find, row->replace);
    assert_non_null(text);
    char *got = explained(text, form);
    (void)snprintf(path, sizeof path, VECTORS "%s.%s", row->name, extension);
    char *want = read_text(path);
    if (strcmp(got, want) != 0) fail_msg("%s: expected\n%s\ngot\n%s", path, want, got);
    free(want);
    free(got);
    free(text);
    free(base);
}

static void as_text(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (strcmp(rows[i].name, "refused") != 0) check(&rows[i], "txt", gb_explain_text);
    }
    char *got = explained("bridge: {}\n", gb_explain_text);
    assert_string_equal(got, ""); /* the findings say it all */
    free(got);
}

static void as_json(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        check(&rows[i], "json", gb_explain_json);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_text),
        cmocka_unit_test(as_json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
