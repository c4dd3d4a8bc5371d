#include "blueprint/identity.h"

#include "blueprint/normal.h"
#include "blueprint/rule_rows.h"

static struct gb_blueprint *load(const char *text, enum gb_blueprint_format format)
{
    struct gb_findings findings = {0};
    struct gb_blueprint *b = NULL;
    struct gb_err err = gb_blueprint_load(gb_bytes_c(text), "doc", format, &findings, &b);
    if (gb_failed(err)) fail_msg("%s: %s: %s", text, err.message, findings.items[0].text);
    gb_findings_deinit(&findings);
    return b;
}

static char *normal_of(const char *text, enum gb_blueprint_format format)
{
    struct gb_str s = {0};
    struct gb_blueprint *b = load(text, format);
    assert_string_equal(gb_normal_document(b, &s).message, "");
    gb_blueprint_free(b);
    char *out = gb_str_take(&s);
    assert_non_null(out);
    return out;
}

static void examples(void **state)
{
    (void)state;
    static const char *const files[] = {"standalone", "direct", "cluster"};
    for (size_t i = 0; i < 3; i++) {
        char path[128];
        (void)snprintf(path, sizeof path, DOCUMENTS "%s.yaml", files[i]);
        char *yaml = read_document(path);
        (void)snprintf(path, sizeof path, DOCUMENTS "%s.json", files[i]);
        char *json = read_document(path);
        char *a = normal_of(yaml, GB_BLUEPRINT_YAML);
        char *b = normal_of(json, GB_BLUEPRINT_JSON);
        assert_string_equal(a, b);
        free(a);
        free(b);
        free(yaml);
        free(json);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(examples),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
