#include "blueprint/override.h"

#include "blueprint/tree_rows.h"

enum { ARENA_MAX = 64 << 20 };

#define BASE                                                                                       \
    "{bridge: {id: b, log_level: info}, sessions: [{id: mqtt-conn, options: {session: "            \
    "{keep_alive: 30}}}, {id: \"a.b[c]\"}, {id: \"0\"}], "                                         \
    "receivers: [{id: r, topics: [{topic: x}, {topic: y}]}], processors: {my.proc: {type: a}}, "   \
    "empty: ~, list: [], texts: [a, b, c, d, e, f, g, h, i, j, k], "                               \
    "eight: [{id: k0}, {id: k1}, {id: k2}, {id: k3}, {id: k4}, {id: k5}, {id: k6}, {id: k7}], "    \
    "nine: [{id: k0}, {id: k1}, {id: k2}, {id: k3}, {id: k4}, {id: k5}, {id: k6}, {id: k7}, "      \
    "{id: k8}]}"

static const struct override_row {
    const char *name;
    const char *path, *value;
    const char *at, *want; /* the tree there; or with `at` NULL what the finding says */
} rows[] = {
    {"a key", "bridge.log_level", "debug", "bridge", "{id: b, log_level: debug}"},
    {"a new key", "bridge.instance_id", "i", "bridge", "{id: b, log_level: info, instance_id: i}"},
    {"a whole block", "bridge", "{id: c}", "bridge", "{id: c}"},
    {"nothing at all", "bridge", "", "bridge", "~"},
    {"an entry by id", "sessions[mqtt-conn].options.session.keep_alive", "5", "sessions[0]",
     "{id: mqtt-conn, options: {session: {keep_alive: 5}}}"},
    {"an id with dots and brackets", "sessions[a.b[c]].x", "1", "sessions[1]",
     "{id: a.b[c], x: 1}"},
    {"an id that looks like an index", "sessions[0].x", "1", "sessions[2]", "{id: 0, x: 1}"},
    {"an entry as a whole", "sessions[mqtt-conn]", "{id: n}", "sessions[0]", "{id: n}"},
    {"its neighbours stay", "sessions[a.b[c]]", "{id: n}", "sessions",
     "[{id: mqtt-conn, options: {session: {keep_alive: 30}}}, {id: n}, {id: 0}]"},
    {"an entry without id by index", "receivers[r].topics[1].topic", "z", "receivers[0]",
     "{id: r, topics: [{topic: x}, {topic: z}]}"},
    {"a text of a list", "texts[0]", "z", "texts", "[z, b, c, d, e, f, g, h, i, j, k]"},
    {"the last of many", "texts[10]", "z", "texts", "[a, b, c, d, e, f, g, h, i, j, z]"},
    {"bracket behind bracket", "sessions[mqtt-conn][options].session", "1", "sessions[0]",
     "{id: mqtt-conn, options: {session: 1}}"},
    {"a list", "receivers[r].topics", "[{topic: q, qos: 1}]", "receivers[0].topics",
     "[{topic: q, qos: 1}]"},
    {"maps on the way are made", "http.a.b", "1", "http", "{a: {b: 1}}"},
    {"below null", "empty.a", "1", "empty", "{a: 1}"},
    {"a key in brackets", "processors[my.proc].type", "b", "processors", "{my.proc: {type: b}}"},
    {"a new key in brackets", "processors[new.one]", "{}", "processors",
     "{my.proc: {type: a}, new.one: {}}"},
    {"quotes make a text", "bridge.id", "\"5\"", "bridge.id", "5"},
    {"a comma is part of a plain text", "http.cors_origins", "https://a,https://b",
     "http.cors_origins", "https://a,https://b"},

    {"unknown id, close", "sessions[mqtt-con].x", "1", NULL,
     "sessions has no entry \"mqtt-con\"; did you mean \"mqtt-conn\"?; known: mqtt-conn, a.b[c], "
     "0"},
    {"unknown id", "sessions[zzz].x", "1", NULL,
     "sessions has no entry \"zzz\"; known: mqtt-conn, a.b[c], 0"},
    {"index where there are ids", "sessions[1].x", "1", NULL, "sessions has no entry \"1\""},
    {"index past the end", "receivers[r].topics[2]", "1", NULL,
     "receivers[r].topics has no entry \"2\"; it has 2 entries, which count from 0; correct the "
     "number"},
    {"huge index", "texts[99999999999999999999999999]", "1", NULL, "texts has no entry \"9999"},
    {"index with a zero in front", "texts[01]", "1", NULL, "texts has no entry \"01\""},
    {"eight are known", "eight[zz]", "1", NULL,
     "eight has no entry \"zz\"; known: k0, k1, k2, k3, k4, k5, k6, k7"},
    {"nine are too many", "nine[zz]", "1", NULL,
     "nine has no entry \"zz\"; known: k0, k1, k2, k3, k4, k5, k6, k7, and 1 more"},
    {"empty bracket, then another", "sessions[][mqtt-conn]", "1", NULL,
     "PATH is not well-formed after its first 8 characters"},
    {"no index", "texts[x]", "1", NULL, "texts has no entry \"x\""},
    {"empty list", "list[0]", "1", NULL, "list has no entry \"0\"; it has 0 entries"},
    {"key of a list", "sessions.options", "1", NULL, "sessions has no entry \"options\"; known: "},
    {"key of a text", "bridge.id.x", "1", NULL,
     "bridge.id is a text and has no keys; end PATH here, or correct it"},
    {"entry of a text", "bridge.id[0]", "1", NULL,
     "bridge.id is a text and has no keys; end PATH here, or correct it"},
    {"no path", "", "1", NULL, "PATH is not well-formed after its first 0 characters"},
    {"no name before a dot", ".a", "1", NULL, "PATH is not well-formed after its first 0"},
    {"no name between dots", "a..b", "1", NULL, "PATH is not well-formed after its first 2"},
    {"no name behind a dot", "a.", "1", NULL, "PATH is not well-formed after its first 2"},
    {"bracket first", "[0]", "1", NULL, "PATH is not well-formed after its first 0"},
    {"bracket left open", "sessions[mqtt", "1", NULL, "PATH is not well-formed after its first 8"},
    {"empty bracket", "sessions[].x", "1", NULL, "PATH is not well-formed after its first 8"},
    {"value is no YAML", "bridge.id", "[a", NULL, "VALUE is not accepted at line 2, column 1: "},
    {"value has a key twice", "bridge", "{hidden: 1, hidden: 2}", NULL,
     "VALUE is not accepted at line 1, column 13: a map has no key twice"},
    {"value is an alias", "bridge.id", "*hidden", NULL, "VALUE is not accepted at line 1"},
    {"value is a tag", "bridge.id", "!hidden x", NULL, "VALUE is not accepted at line 1"},
    {"value is two documents", "bridge.id", "a\n---\nhidden", NULL, "VALUE is not accepted at"},
};

static void check_refused(const struct override_row *row, const struct gb_node *top,
                          const struct gb_findings *f)
{
    if (top != NULL || f->count != 1) fail_msg("%s: it is accepted", row->name);
    const struct gb_finding *item = &f->items[0];
    bool whole = strstr(row->want, "known: k0") != NULL;
    bool same = whole ? strcmp(item->text, row->want) == 0
                      : strncmp(item->text, row->want, strlen(row->want)) == 0;
    if (!same || strstr(item->text, "hidden") != NULL) fail_msg("%s: %s", row->name, item->text);
    assert_int_equal(item->layer, 7);
    assert_int_equal(item->line, 0);
    assert_int_not_equal(item->rule, GB_RULE_NONE);
    bool value = strncmp(item->text, "VALUE", 5) == 0;
    if (value) assert_non_null(strstr(item->text, gb_rule_asks(item->rule)));
}

static void check_row(const struct override_row *row)
{
    struct gb_arena *arena = gb_arena_new(ARENA_MAX);
    struct gb_findings findings = {0};
    const struct gb_node *base = tree_of(arena, BASE, 0);
    char *before = tree_text(base);
    const struct gb_blueprint_override set = {"-set 1", row->path, gb_bytes_c(row->value)};
    const struct gb_node *top = gb_override_apply(arena, &findings, base, 7, &set);
    char *after = tree_text(base);
    assert_string_equal(before, after);
    if (row->at == NULL) {
        check_refused(row, top, &findings);
    } else if (top == NULL) {
        fail_msg("%s: %s", row->name, findings.items[0].text);
    } else {
        char *text = tree_text(gb_node_locate(top, row->at));
        if (strcmp(text, row->want) != 0) fail_msg("%s: %s", row->name, text);
        free(text);
        free(tree_text(top)); /* every count in it holds */
    }
    free(before);
    free(after);
    gb_findings_deinit(&findings);
    gb_arena_free(arena);
}

static void paths_and_values(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) check_row(&rows[i]);
}

static void values_have_no_place_in_a_file(void **state)
{
    (void)state;
    struct gb_arena *arena = gb_arena_new(ARENA_MAX);
    struct gb_findings findings = {0};
    const struct gb_blueprint_override set = {"-set 1", "bridge.cluster",
                                              gb_bytes_c("{members: [a, b]}")};
    const struct gb_node *top =
        gb_override_apply(arena, &findings, tree_of(arena, BASE, 0), 7, &set);
    static const char *const paths[] = {"bridge.cluster", "bridge.cluster.members",
                                        "bridge.cluster.members[1]"};
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        struct gb_finding_at at = {0};
        gb_node_position(gb_node_locate(top, paths[i]), &at);
        assert_int_equal(at.layer, 7);
        assert_int_equal(at.line, 0);
        assert_int_equal(at.column, 0);
    }
    gb_findings_deinit(&findings);
    gb_arena_free(arena);
}

static void depth_is_bounded(void **state)
{
    (void)state;
    struct gb_str path = {0};
    for (int keys = 98; keys <= 101; keys++) {
        gb_str_clear(&path);
        for (int i = 0; i < keys; i++) gb_str_append_c(&path, i == 0 ? "a" : ".a");
        struct gb_arena *arena = gb_arena_new(ARENA_MAX);
        struct gb_findings findings = {0};
        const struct gb_blueprint_override set = {"-set 1", path.data, gb_bytes_c("1")};
        const struct gb_node *top =
            gb_override_apply(arena, &findings, tree_of(arena, "", 0), 1, &set);
        assert_int_equal(top != NULL, keys < GB_DOCUMENT_DEPTH_MAX);
        gb_findings_deinit(&findings);
        gb_arena_free(arena);
    }
    gb_str_deinit(&path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_and_values),
        cmocka_unit_test(values_have_no_place_in_a_file),
        cmocka_unit_test(depth_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
