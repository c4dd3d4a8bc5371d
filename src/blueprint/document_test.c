#include "blueprint/document.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define ARENA ((size_t)256 << 20)

/* The tree on one line: {key@line:column=value}. */
static void dump(const struct gb_node *n, struct gb_str *out)
{
    static const char marks[] = {
        [GB_NODE_NULL] = '~', [GB_NODE_PLAIN] = 'p', [GB_NODE_STRING] = 's', [GB_NODE_NUMBER] = 'n',
        [GB_NODE_BOOL] = 'b', [GB_NODE_LIST] = 'L',  [GB_NODE_MAP] = 'M'};
    gb_str_append_char(out, marks[n->kind]);
    gb_str_appendf(out, "%u:%u", n->line, n->column);
    if (n->kind != GB_NODE_LIST && n->kind != GB_NODE_MAP) {
        gb_str_appendf(out, "=%s", n->text);
        return;
    }
    gb_str_append_char(out, '(');
    for (const struct gb_node *c = n->first; c != NULL; c = c->next) {
        if (c->key != NULL) gb_str_appendf(out, "%s@%u:%u ", c->key, c->key_line, c->key_column);
        dump(c, out);
        if (c->next != NULL) gb_str_append_char(out, ' ');
    }
    gb_str_append_char(out, ')');
}

struct result {
    struct gb_arena *arena;
    struct gb_findings findings;
    const struct gb_node *root;
    bool ok;
};

static struct result read(struct gb_bytes bytes, bool json)
{
    struct result r = {.arena = gb_arena_new(ARENA)};
    assert_non_null(r.arena);
    r.ok = json ? gb_document_json(bytes, 0, r.arena, &r.findings, &r.root)
                : gb_document_yaml(bytes, 0, r.arena, &r.findings, &r.root);
    assert_false(r.findings.failed);
    assert_true(r.ok == (r.root != NULL));
    if (!r.ok) assert_true(r.findings.error_count > 0);
    return r;
}

static void done(struct result *r)
{
    gb_findings_deinit(&r->findings);
    gb_arena_free(r->arena);
}

static const struct tree_row {
    const char *name;
    bool json;
    const char *text;
    const char *want; /* the tree, or "line:column text" of the first finding */
} tree_rows[] = {
    {"block map", false, "a: 1\nb: 'x'\n", "M1:1(a@1:1 p1:4=1 b@2:1 s2:4=x)"},
    {"nested", false, "a:\n  - x\n  - {y: ~}\n", "M1:1(a@1:1 L2:3(p2:5=x M3:5(y@3:6 ~3:9=)))"},
    {"nothing", false, "", "~1:1="},
    {"comment only", false, "# nothing\n", "~1:1="},
    {"empty value", false, "a:\nb: null\n", "M1:1(a@1:1 ~1:3= b@2:1 ~2:4=)"},
    {"quoted null", false, "a: 'null'", "M1:1(a@1:1 s1:4=null)"},
    {"off and yes are plain", false, "a: off\nyes: y", "M1:1(a@1:1 p1:4=off yes@2:1 p2:6=y)"},
    {"literal", false, "a: |\n  x\n  y\n", "M1:1(a@1:1 s1:4=x\ny\n)"},
    {"windows line ends", false, "a: 1\r\nb: 2\r\n", "M1:1(a@1:1 p1:4=1 b@2:1 p2:4=2)"},
    {"byte order mark", false,
     "\xEF\xBB\xBF"
     "a: 1",
     "M1:1(a@1:1 p1:4=1)"},
    {"umlaut counts as one column", false, "ä: ö", "M1:1(ä@1:1 p1:4=ö)"},
    {"alias", false, "a: &x {b: 1}\nc: *x\n",
     "M1:1(a@1:1 M1:4(b@1:8 p1:11=1) c@2:1 M1:4(b@1:8 p1:11=1))"},
    {"alias of a scalar", false, "a: &x 1\nb: [*x, *x]",
     "M1:1(a@1:1 p1:4=1 b@2:1 L2:4(p1:4=1 p1:4=1))"},
    {"anchor again", false, "a: &x 1\nb: &x 2\nc: *x",
     "M1:1(a@1:1 p1:4=1 b@2:1 p2:4=2 c@3:1 p2:4=2)"},
    {"alias inside its anchor", false, "a: &x [*x]", "1:8 alias \"x\" has no anchor"},
    {"unknown alias", false, "a: *x", "1:4 alias \"x\" has no anchor"},
    {"alias as key", false, "a: &x b\n*x : 1", "2:1 alias \"x\" as a key"},
    {"map as key", false, "? {a: 1}\n: b", "1:3 a key must be a text"},
    {"list as key", false, "? [a]\n: b", "1:3 a key must be a text"},
    {"tag", false, "a: !!str 1", "1:4 tag \"tag:yaml.org,2002:str\" is not accepted"},
    {"tag on a map", false, "!x {a: 1}", "1:1 tag \"!x\" is not accepted"},
    {"duplicate key", false, "a: 1\nb: 2\na: 3\n",
     "3:1 duplicate key \"a\"; it was already written at line 1"},
    {"second document", false, "a: 1\n---\nb: 2", "2:1 a second document"},
    {"end marker", false, "a: 1\n...\n", "M1:1(a@1:1 p1:4=1)"},
    {"text after the end", false, "a: 1\n...\nb: 2\n", "3:1 "},
    {"tab", false, "a:\n\tb: 1", "2:1 invalid YAML"},
    {"open quote", false, "a: \"x", "1:6 invalid YAML"},
    {"not UTF-8", false, "a: 1\nb: \xFF\n", "2:4 byte 0xFF is not UTF-8"},
    {"cut sequence", false, "a: \xC3", "1:4 byte 0xC3 is not UTF-8"},
    {"control character", false, "a: \x01",
     "1:4 invalid YAML: control characters are not allowed; remove U+0001 here"},
    {"control character behind what is read ahead", false, "a: 1\r\nb: 2\rä:\xC2\x85  ö\x7F",
     "4:4 invalid YAML: control characters are not allowed; remove U+007F here"},
    {"no character", false, "\xEF\xBB\xBFä: x\n\xE2\x80\xA8 \xEF\xBF\xBE",
     "3:2 invalid YAML: control characters are not allowed; remove U+FFFE here"},
    {"NUL by escape", false, "a: \"\\0\"", "1:4 a text holds a NUL"},
    {"json", true, "{\"a\": [1, true, null, \"x\\n\"],\n \"b\": {}}",
     "M1:1(a@1:2 L1:7(n1:8=1 b1:11=true ~1:17= s1:23=x\n) b@2:2 M2:7())"},
    {"json, nothing", true, " ", "~1:1="},
    {"json, byte order mark", true, "\xEF\xBB\xBF{}", "M1:1()"},
    {"json, duplicate", true, "{\"a\":1,\"\\u0061\":2}", "1:8 duplicate key \"a\""},
    {"json, trailing", true, "{} x", "1:4 invalid JSON"},
    {"json, comment", true, "{} // x", "1:4 invalid JSON"},
    {"json, not UTF-8", true, "{\"a\":\"\xC0\x80\"}", "1:7 byte 0xC0 is not UTF-8"},
    {"json, NUL in a key", true, "{\"a\\u0000\":1}", "1:2 a key holds a NUL"},
};

static void trees_and_positions(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof tree_rows / sizeof tree_rows[0]; i++) {
        const struct tree_row *row = &tree_rows[i];
        struct result r = read(gb_bytes_c(row->text), row->json);
        struct gb_str got = {0};
        if (r.findings.count > 0) {
            const struct gb_finding *f = &r.findings.items[0];
            gb_str_appendf(&got, "%u:%u %s", f->line, f->column, f->text);
        } else {
            dump(r.root, &got);
        }
        bool tree = strchr("MLpsn~b", row->want[0]) != NULL;
        bool same = tree ? strcmp(got.data, row->want) == 0
                         : strncmp(got.data, row->want, strlen(row->want)) == 0;
        if (!same) fail_msg("%s: expected\n%s, got\n%s", row->name, row->want, got.data);
        gb_str_deinit(&got);
        done(&r);
    }
}

static void many_duplicates_are_found_by_sorting(void **state)
{
    (void)state;
    struct gb_str s = {0};
    for (int i = 0; i < 100; i++) gb_str_appendf(&s, "k%d: 1\n", i % 90);
    struct result r = read(gb_str_bytes(&s), false);
    assert_true(r.ok);
    assert_int_equal(r.findings.error_count, 10);
    gb_findings_sort(&r.findings);
    assert_int_equal(r.findings.items[0].line, 91);
    assert_string_equal(r.findings.items[0].text,
                        "duplicate key \"k0\"; it was already written at line 1 and a map takes it "
                        "once, remove one of the two");
    done(&r);
    gb_str_deinit(&s);
}

static void repeat(struct gb_str *s, const char *text, size_t times)
{
    for (size_t i = 0; i < times; i++) gb_str_append_c(s, text);
}

static void says(const struct gb_str *s, bool json, const char *want)
{
    struct result r = read(gb_str_bytes(s), json);
    if (want == NULL && r.findings.count > 0) fail_msg("%s", r.findings.items[0].text);
    if (want == NULL) {
        assert_true(r.ok);
    } else {
        assert_false(r.ok);
        if (strstr(r.findings.items[0].text, want) == NULL) {
            fail_msg("expected \"%s\", got \"%s\"", want, r.findings.items[0].text);
        }
    }
    done(&r);
}

static void depth_is_limited(void **state)
{
    (void)state;
    static const struct {
        size_t depth;
        const char *want;
    } rows[] = {{100, NULL}, {101, "deeper than 100 levels"}, {10000, "deeper than 100 levels"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        for (int json = 0; json < 2; json++) {
            struct gb_str s = {0};
            repeat(&s, "[", rows[i].depth);
            repeat(&s, "]", rows[i].depth);
            says(&s, json == 1, rows[i].want);
            gb_str_deinit(&s);
        }
    }
    struct gb_str s = {0};
    repeat(&s, "- ", 10000);
    says(&s, false, "deeper than 100 levels");
    gb_str_clear(&s);
    repeat(&s, "{a: ", 10000);
    says(&s, false, "deeper than 100 levels");
    gb_str_clear(&s);
    repeat(&s, "? ", 10000);
    says(&s, false, "a key must be a text");
    gb_str_deinit(&s);
}

static void aliases_are_limited(void **state)
{
    (void)state;
    struct gb_str s = {0};
    gb_str_append_c(&s, "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for (int i = 1; i < 12; i++) {
        gb_str_appendf(&s, "a%d: &a%d [", i, i);
        for (int j = 0; j < 10; j++) gb_str_appendf(&s, "%s*a%d", j == 0 ? "" : ", ", i - 1);
        gb_str_append_c(&s, "]\n");
    }
    says(&s, false, "expand to more than 100000 values");
    /* Each level adds two, so depth is the limit here. */
    gb_str_clear(&s);
    gb_str_append_c(&s, "a0: &a0 [x]\n");
    for (int i = 1; i < 60; i++) gb_str_appendf(&s, "a%d: &a%d [[*a%d]]\n", i, i, i - 1);
    says(&s, false, "deeper than 100 levels");
    gb_str_deinit(&s);
}

static void size_is_limited(void **state)
{
    (void)state;
    struct gb_str s = {.size_max = 5000000};
    gb_str_append_c(&s, "a: 1\n#");
    repeat(&s, "x", GB_DOCUMENT_SIZE_MAX - s.size);
    assert_int_equal(s.size, 4194304);
    says(&s, false, NULL);
    gb_str_append_c(&s, "x");
    says(&s, false, "at most 4194304 (4 MiB) are accepted");
    says(&s, true, "at most 4194304 (4 MiB) are accepted");
    gb_str_deinit(&s);
}

static void values_are_limited(void **state)
{
    (void)state;
    static const struct {
        const char *open, *item, *close;
        bool json;
    } rows[] = {{"[0", ",0", "]", true}, {"", "- 0\n", "", false}, {"", "-\n", "", false}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct gb_str s = {.size_max = 5000000};
        gb_str_append_c(&s, rows[i].open);
        repeat(&s, rows[i].item, 1000000);
        gb_str_append_c(&s, rows[i].close);
        says(&s, rows[i].json, "more than 400000 values");
        gb_str_deinit(&s);
    }
}

/* What is quadratic in libyaml must be refused before it reads. */
static void directives_are_limited(void **state)
{
    (void)state;
    static const char *const breaks[] = {"\n",       "\r",           "\r\n",
                                         "\xC2\x85", "\xE2\x80\xA8", "\xE2\x80\xA9"};
    for (size_t i = 0; i < sizeof breaks / sizeof breaks[0]; i++) {
        struct gb_str s = {0};
        for (int j = 0; j < 100; j++) gb_str_appendf(&s, "%%TAG !a%d! tag:a%s", j, breaks[i]);
        size_t size = s.size;
        gb_str_appendf(&s, "---%s{a: 1}%s", breaks[i], breaks[i]);
        says(&s, false, NULL);
        s.size = size;
        gb_str_appendf(&s, "%%TAG !x! tag:a%s---%s{a: 1}%s", breaks[i], breaks[i], breaks[i]);
        says(&s, false, "more than 100 lines that start with %");
        gb_str_deinit(&s);
    }
    struct gb_str s = {0};
    gb_str_append_c(&s, "a: '100%\n");
    repeat(&s, " % %\n", 200);
    gb_str_append_c(&s, "'");
    says(&s, false, NULL);
    gb_str_deinit(&s);
}

static void anchors_are_limited(void **state)
{
    (void)state;
    struct gb_str s = {0};
    gb_str_append_c(&s, "[");
    for (int i = 0; i < 10000; i++) gb_str_appendf(&s, "&a%d 0,", i);
    size_t size = s.size;
    gb_str_append_c(&s, "0]");
    says(&s, false, NULL);
    s.size = size;
    gb_str_append_c(&s, "&b 0]");
    says(&s, false, "more than 10000 anchors; remove some, and write out the values");
    gb_str_deinit(&s);
}

static void aliases_share_their_texts(void **state)
{
    (void)state;
    struct result r = read(gb_bytes_c("a: &a {k: x}\nb: *a\n"), false);
    const struct gb_node *first = gb_node_locate(r.root, "a.k");
    const struct gb_node *again = gb_node_locate(r.root, "b.k");
    assert_ptr_not_equal(first, again);
    assert_ptr_equal(first->text, again->text);
    assert_ptr_equal(first->key, again->key);
    assert_int_equal(again->size, 1);
    done(&r);
}

static void a_full_arena_is_a_finding(void **state)
{
    (void)state;
    static const struct {
        const char *head, *tail;
    } rows[] = {{"[0,\"", "\"]"}, {"{\"", "\":0}"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct gb_str s = {0};
        gb_str_append_c(&s, rows[i].head);
        repeat(&s, "x", 200000);
        gb_str_append_c(&s, rows[i].tail);
        struct result r = {.arena = gb_arena_new(100000)};
        r.ok = gb_document_json(gb_str_bytes(&s), 0, r.arena, &r.findings, &r.root);
        assert_false(r.ok);
        assert_true(gb_arena_full(r.arena));
        assert_int_equal(r.findings.count, 1);
        assert_non_null(strstr(r.findings.items[0].text, "needs more memory"));
        assert_int_equal(r.findings.items[0].column, i == 0 ? 4 : 2);
        done(&r);
        gb_str_deinit(&s);
    }
}

static void nodes_are_located(void **state)
{
    (void)state;
    struct result r = read(gb_bytes_c("a:\n  b: [x, {c: 1}]\nd: 2\n"), false);
    static const struct {
        const char *path;
        uint32_t line, column;
    } rows[] = {{"a", 1, 1},         {"a.b", 2, 3},    {"a.b[0]", 2, 7}, {"a.b[1].c", 2, 14},
                {"a.b[1].x", 2, 10}, {"a.b[7]", 2, 3}, {"d", 3, 4},      {"d.e", 3, 4},
                {"z", 1, 1},         {"", 1, 1}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct gb_finding_at at = {0};
        gb_node_position(gb_node_locate(r.root, rows[i].path), &at);
        if (at.line != rows[i].line || at.column != rows[i].column) {
            fail_msg("%s is at %u:%u", rows[i].path, at.line, at.column);
        }
    }
    assert_null(gb_node_get(r.root, "x"));
    assert_null(gb_node_get(NULL, "x"));
    done(&r);
}

static void numbers_are_recognised(void **state)
{
    (void)state;
    static const char *const numbers[] = {"0", "-1", "+1", "1.5", ".5", "1.", "1e9", "-1.5E-3"};
    static const char *const texts[] = {"", "-", ".", "1e", "e1", "1.2.3", "0x1", "1 ", "1s", "a"};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        assert_true(gb_node_looks_like_number(numbers[i]));
    }
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        assert_false(gb_node_looks_like_number(texts[i]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trees_and_positions),
        cmocka_unit_test(many_duplicates_are_found_by_sorting),
        cmocka_unit_test(depth_is_limited),
        cmocka_unit_test(aliases_are_limited),
        cmocka_unit_test(size_is_limited),
        cmocka_unit_test(values_are_limited),
        cmocka_unit_test(directives_are_limited),
        cmocka_unit_test(anchors_are_limited),
        cmocka_unit_test(aliases_share_their_texts),
        cmocka_unit_test(a_full_arena_is_a_finding),
        cmocka_unit_test(nodes_are_located),
        cmocka_unit_test(numbers_are_recognised),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
