#include "blueprint/explain.h"
#include "blueprint/patched_document.h"
#include "support/oom.h"

/* Repeats an explanation with its n-th allocation failing until it succeeds. */

enum { LADDER_MAX = 500 };

static void climb(const struct gb_explanation *of,
                  struct gb_err (*form)(const struct gb_explanation *of, struct gb_str *out))
{
    unsigned failures = 0;
    for (unsigned n = 1; n < LADDER_MAX; n++) {
        struct gb_str out = {0};
        gb_oom_fail_at(n);
        struct gb_err err = form(of, &out);
        bool reached = gb_oom_count() >= n;
        gb_oom_off();
        gb_str_deinit(&out);
        assert_int_equal(err.code, reached ? GB_UNAVAILABLE : GB_OK);
        if (!reached) break;
        failures++;
    }
    assert_true(failures > 3 && failures < LADDER_MAX - 1);
}

static void explanations(void **state)
{
    (void)state;
    static const char *const names[] = {"doc"};
    char *text = read_text(DOCUMENTS "cluster.yaml");
    struct gb_findings findings = {0};
    struct gb_blueprint *b = NULL;
    struct gb_err err =
        gb_blueprint_load(gb_bytes_c(text), "doc", GB_BLUEPRINT_YAML, &findings, &b);
    assert_int_equal(err.code, GB_OK);
    const struct gb_explanation of = {b, &findings, names};
    climb(&of, gb_explain_text);
    climb(&of, gb_explain_json);
    gb_findings_deinit(&findings);
    gb_blueprint_free(b);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(explanations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
