#include "blueprint/rule_rows.h"
#include "support/oom.h"

/* Repeats a load with its n-th allocation failing until it succeeds: out of memory is an error
 * value, never a crash, a leak or a wrong answer. */

enum { LADDER_MAX = 5000 };

static void climb(const char *text, enum gb_blueprint_format format, enum gb_code want)
{
    enum gb_code code = GB_UNAVAILABLE;
    unsigned failures = 0;
    for (unsigned n = 1; n < LADDER_MAX; n++) {
        struct gb_findings findings = {0};
        struct gb_blueprint *b = NULL;
        gb_oom_fail_at(n);
        struct gb_err err = gb_blueprint_load(gb_bytes_c(text), "doc", format, &findings, &b);
        bool reached = gb_oom_count() >= n;
        gb_oom_off();
        code = err.code;
        if (reached) failures++;
        assert_int_equal(b != NULL, code == GB_OK);
        gb_blueprint_free(b);
        gb_findings_deinit(&findings);
        if (!reached) break;
        /* A failure that a smaller step survives is possible, a wrong verdict is not. */
        assert_true(code == GB_UNAVAILABLE || code == want);
    }
    assert_int_equal(code, want);
    assert_true(failures > 3);
}

static void valid_documents(void **state)
{
    (void)state;
    static const char *const files[] = {"standalone", "direct", "cluster"};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        char path[128];
        (void)snprintf(path, sizeof path, DOCUMENTS "%s.yaml", files[i]);
        char *text = read_document(path);
        climb(text, GB_BLUEPRINT_YAML, GB_OK);
        free(text);
    }
}

static void refused_documents(void **state)
{
    (void)state;
    climb("{\"bridge\":{\"idd\":\"a\\n\"},\"routes\":[{\"bindings\":[1]}],"
          "\"a\":1,\"b\":1,\"c\":1,\"d\":1,\"e\":1,\"f\":1,\"g\":1,\"h\":1,\"i\":1,\"j\":1,"
          "\"k\":1,\"l\":1,\"m\":1,\"n\":1,\"o\":1,\"p\":1,\"a\":2}",
          GB_BLUEPRINT_JSON, GB_INVALID_CONFIG);
    climb("a: &x [b]\nc: *x\n", GB_BLUEPRINT_YAML, GB_INVALID_CONFIG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(valid_documents),
        cmocka_unit_test(refused_documents),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
