#include "blueprint/identity.h"

#include "blueprint/diff.h"
#include "blueprint/inspect.h"
#include "blueprint/rule_rows.h"
#include "support/oom.h"

/* Repeats an operation on loaded documents with its n-th allocation failing until it succeeds: the
 * answer is an error or the right one, never half of it. */

enum { LADDER_MAX = 5000 };

struct subject {
    struct gb_blueprint *before, *after;
    char answer[16384]; /* of the last success */
};

static void keep(struct subject *s, const struct gb_str *text)
{
    assert_true(text->size < sizeof s->answer);
    memcpy(s->answer, text->data, text->size + 1);
}

static struct gb_err digest(struct subject *s)
{
    return gb_blueprint_digest(s->before, s->answer);
}

static struct gb_err fingerprint(struct subject *s)
{
    return gb_blueprint_fingerprint(s->before, s->answer);
}

static struct gb_err inspect(struct subject *s)
{
    const char *name = "doc";
    struct gb_findings findings = {0};
    struct gb_inspection of = {gb_bytes_c("x"), &findings, &name, s->before};
    struct gb_str text = {0};
    struct gb_err err = gb_inspect(&of, &text);
    if (!gb_failed(err)) keep(s, &text);
    gb_str_deinit(&text);
    return err;
}

static struct gb_err diff(struct subject *s)
{
    struct gb_diff d = {0};
    struct gb_str text = {0};
    struct gb_err err = gb_diff_init(&d, s->before, s->after);
    if (!gb_failed(err)) err = gb_diff_print(&d, &text);
    if (!gb_failed(err)) keep(s, &text);
    gb_str_deinit(&text);
    gb_diff_deinit(&d);
    return err;
}

static void climb(struct subject *s, struct gb_err (*run)(struct subject *s))
{
    char want[sizeof s->answer];
    gb_oom_off();
    assert_int_equal(run(s).code, GB_OK);
    memcpy(want, s->answer, sizeof want);
    unsigned failures = 0;
    for (unsigned n = 1; n < LADDER_MAX; n++) {
        (void)strcpy(s->answer, "untouched");
        gb_oom_fail_at(n);
        struct gb_err err = run(s);
        bool reached = gb_oom_count() >= n;
        gb_oom_off();
        assert_true(err.code == GB_OK || err.code == GB_UNAVAILABLE);
        assert_string_equal(s->answer, err.code == GB_OK ? want : "untouched");
        if (!reached) {
            assert_int_equal(err.code, GB_OK);
            break;
        }
        assert_int_equal(err.code, GB_UNAVAILABLE);
        failures++;
    }
    assert_true(failures >= 3);
}

static struct gb_blueprint *load(const char *file)
{
    char path[128];
    struct gb_findings findings = {0};
    struct gb_blueprint *b = NULL;
    (void)snprintf(path, sizeof path, DOCUMENTS "%s", file);
    char *text = read_document(path);
    struct gb_err err = gb_blueprint_load(gb_bytes_c(text), path, GB_BLUEPRINT_YAML, &findings, &b);
    assert_int_equal(err.code, GB_OK);
    gb_findings_deinit(&findings);
    free(text);
    return b;
}

static void ladders(void **state)
{
    (void)state;
    struct subject s = {.before = load("tenants.yaml"), .after = load("cluster.yaml")};
    climb(&s, digest);
    climb(&s, fingerprint);
    climb(&s, inspect);
    climb(&s, diff);
    gb_blueprint_free(s.before);
    gb_blueprint_free(s.after);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(ladders)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
