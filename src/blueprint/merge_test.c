#include "blueprint/merge.h"

#include "blueprint/tree_rows.h"

enum { ARENA_MAX = 64 << 20 };

static const struct merge_row {
    const char *name;
    const char *base, *overlay, *want;
} rows[] = {
    {"empty overlay", "{bridge: {id: b}}", "", "{bridge: {id: b}}"},
    {"empty map as overlay", "{bridge: {id: b}}", "{}", "{bridge: {id: b}}"},
    {"empty base", "", "{bridge: {id: b}}", "{bridge: {id: b}}"},
    {"version: the overlay's", "version: 3", "version: 4", "{version: 4}"},
    {"version: unless 0", "version: 3", "version: 0", "{version: 3}"},
    {"version: unless -0", "version: 3", "version: -0", "{version: 3}"},
    {"version: not in the base", "{}", "version: 0", "{version: 0}"},
    {"bridge per field (check 29: only instance_id)", "bridge: {id: b, log_level: info}",
     "bridge: {instance_id: i-1}", "{bridge: {id: b, log_level: info, instance_id: i-1}}"},
    {"bridge field replaced, in its place", "bridge: {log_level: info, id: b}",
     "bridge: {log_level: debug}", "{bridge: {log_level: debug, id: b}}"},
    {"bridge: the empty text is given", "bridge: {id: b, instance_id: i}",
     "bridge: {instance_id: \"\"}", "{bridge: {id: b, instance_id: \"\"}}"},
    {"bridge.cluster whole", "bridge: {id: b, cluster: {rollout: refuse, members: [a]}}",
     "bridge: {cluster: {members: [b]}}", "{bridge: {id: b, cluster: {members: [b]}}}"},
    {"null is not given", "{bridge: {id: b, log_level: info}, routes: [{id: r}]}",
     "{bridge: {log_level: ~}, routes: }", "{bridge: {id: b, log_level: info}, routes: [{id: r}]}"},
    {"null in the base is filled", "bridge: ~", "bridge: {id: b}", "{bridge: {id: b}}"},
    {"config_watch whole", "config_watch: {mode: poll, debounce: 1s}",
     "config_watch: {mode: notify}", "{config_watch: {mode: notify}}"},
    {"telemetry whole", "telemetry: {metrics: {exporter: otlp}}", "telemetry: {tracing: {}}",
     "{telemetry: {tracing: {}}}"},
    {"stores per role, a role whole",
     "stores: {lease: {type: memory, options: {a: 1}}, dlq: {type: sqlite}}",
     "stores: {lease: {type: sqlite}, outbox: {type: memory}}",
     "{stores: {lease: {type: sqlite}, dlq: {type: sqlite}, outbox: {type: memory}}}"},
    {"a new id is appended", "senders: [{id: a}]", "senders: [{id: b}, {id: c}]",
     "{senders: [{id: a}, {id: b}, {id: c}]}"},
    {"a known id per field, in its place", "senders: [{id: a, transport: sqs}, {id: b}]",
     "senders: [{id: b, session_id: s}, {id: a, session_id: t}]",
     "{senders: [{id: a, transport: sqs, session_id: t}, {id: b, session_id: s}]}"},
    {"a list is replaced, also by an empty one", "receivers: [{id: a, topics: [{topic: x}]}]",
     "receivers: [{id: a, topics: []}]", "{receivers: [{id: a, topics: []}]}"},
    {"base options stay (check 29)",
     "sessions: [{id: s, transport: mqtt, options: {session: {client_id: c}}}]",
     "sessions: [{id: s, session_mode: persistent}]",
     "{sessions: [{id: s, transport: mqtt, options: {session: {client_id: c}}, "
     "session_mode: persistent}]}"},
    {"given options replace all", "sessions: [{id: s, options: {session: {client_id: c}, x: 1}}]",
     "sessions: [{id: s, options: {session: {keep_alive: 5}}}]",
     "{sessions: [{id: s, options: {session: {keep_alive: 5}}}]}"},
    {"options: null keeps them", "sessions: [{id: s, options: {x: 1}}]",
     "sessions: [{id: s, options: ~}]", "{sessions: [{id: s, options: {x: 1}}]}"},
    {"options: {} replaces them", "sessions: [{id: s, options: {x: 1}}]",
     "sessions: [{id: s, options: {}}]", "{sessions: [{id: s, options: {}}]}"},
    {"another kind drops them", "senders: [{id: a, transport: sqs, options: {x: 1}}]",
     "senders: [{id: a, transport: http}]", "{senders: [{id: a, transport: http}]}"},
    {"also of a session", "sessions: [{id: s, transport: mqtt, options: {x: 1}}]",
     "sessions: [{id: s, transport: sqs}]", "{sessions: [{id: s, transport: sqs}]}"},
    {"another kind with options", "senders: [{id: a, transport: sqs, options: {x: 1}}]",
     "senders: [{id: a, transport: http, options: {y: 1}}]",
     "{senders: [{id: a, transport: http, options: {y: 1}}]}"},
    {"an alias is the same kind", "senders: [{id: a, transport: mqtt, options: {x: 1}}]",
     "senders: [{id: a, transport: mqtt.paho}]",
     "{senders: [{id: a, transport: mqtt.paho, options: {x: 1}}]}"},
    {"the inherited kind, written out, is the same",
     "{sessions: [{id: s, transport: mqtt}], receivers: [{id: r, session_id: s, options: {x: 1}}]}",
     "receivers: [{id: r, transport: mqtt}]",
     "{sessions: [{id: s, transport: mqtt}], "
     "receivers: [{id: r, session_id: s, options: {x: 1}, transport: mqtt}]}"},
    {"another kind than the inherited one",
     "{sessions: [{id: s, transport: mqtt}], receivers: [{id: r, session_id: s, options: {x: 1}}]}",
     "receivers: [{id: r, transport: sqs}]",
     "{sessions: [{id: s, transport: mqtt}], receivers: [{id: r, session_id: s, transport: sqs}]}"},
    {"a kind that was unknown does not change",
     "receivers: [{id: r, session_id: s, options: {x: 1}}]", "sessions: [{id: s, transport: mqtt}]",
     "{receivers: [{id: r, session_id: s, options: {x: 1}}], "
     "sessions: [{id: s, transport: mqtt}]}"},
    {"a binding loses options with its sender's kind",
     "{senders: [{id: a, transport: sqs}], bindings: [{id: b, sender_id: a, options: {x: 1}}, "
     "{id: c, sender_id: z, session_id: s, options: {y: 1}}]}",
     "senders: [{id: a, transport: http}]",
     "{senders: [{id: a, transport: http}], bindings: [{id: b, sender_id: a}, "
     "{id: c, sender_id: z, session_id: s, options: {y: 1}}]}"},
    {"a binding moves to a sender of another kind",
     "{senders: [{id: a, transport: sqs}, {id: b, transport: http}], "
     "bindings: [{id: x, sender_id: a, options: {y: 1}}]}",
     "bindings: [{id: x, sender_id: b}]",
     "{senders: [{id: a, transport: sqs}, {id: b, transport: http}], "
     "bindings: [{id: x, sender_id: b}]}"},
    {"routes whole (check 29)",
     "routes: [{id: r, receiver_id: a, policy: {max_in_flight: 1}}, {id: s}]",
     "routes: [{id: r, receiver_id: b}, {id: t}]",
     "{routes: [{id: r, receiver_id: b}, {id: s}, {id: t}]}"},
    {"processors whole", "processors: {a: {type: filter, config: {x: 1}}, b: {type: tenant}}",
     "processors: {c: {type: filter}, a: {type: transform}}",
     "{processors: {a: {type: transform}, b: {type: tenant}, c: {type: filter}}}"},
    {"http per field", "http: {admin_addr: a, cors_origins: [x]}",
     "http: {monitor_addr: b, cors_origins: []}",
     "{http: {admin_addr: a, cors_origins: [], monitor_addr: b}}"},
    {"http: a marker keeps the secret (check 29)", "http: {admin_api_key: k, monitor_api_key: m}",
     "http: {admin_api_key: \"[REDACTED]\", monitor_api_key: \"\"}",
     "{http: {admin_api_key: k, monitor_api_key: m}}"},
    {"http: another one in quotes too", "http: {admin_api_key: k}", "http: {admin_api_key: \"n\"}",
     "{http: {admin_api_key: n}}"},
    {"http: another secret replaces it", "http: {admin_api_key: k}", "http: {admin_api_key: n}",
     "{http: {admin_api_key: n}}"},
    {"http: a marker with nothing to keep stays", "http: {admin_api_key: \"\"}",
     "http: {admin_api_key: \"[REDACTED]\", monitor_api_key: \"[REDACTED]\"}",
     "{http: {admin_api_key: [REDACTED], monitor_api_key: [REDACTED]}}"},
    {"http: other texts know no marker", "http: {admin_addr: a}", "http: {admin_addr: \"\"}",
     "{http: {admin_addr: \"\"}}"},
    {"other secrets know no marker", "sessions: [{id: s, options: {session: {password: p}}}]",
     "sessions: [{id: s, options: {session: {password: \"[REDACTED]\"}}}]",
     "{sessions: [{id: s, options: {session: {password: [REDACTED]}}}]}"},
    {"an id twice in the overlay stays twice", "senders: [{id: a}]",
     "senders: [{id: a, x: 1}, {id: a, x: 2}, {id: b}, {id: b}]",
     "{senders: [{id: a, x: 1}, {id: a, x: 2}, {id: b}, {id: b}]}"},
    {"an id twice in the base stays twice", "senders: [{id: a}, {id: a}]",
     "senders: [{id: a, x: 1}]", "{senders: [{id: a, x: 1}, {id: a}]}"},
    {"an id twice: the first gives its kind",
     "{senders: [{id: a, transport: sqs}, {id: a, transport: http}], "
     "bindings: [{id: b, sender_id: a, options: {x: 1}}]}",
     "senders: [{id: a, transport: http}]",
     "{senders: [{id: a, transport: http}, {id: a, transport: http}], "
     "bindings: [{id: b, sender_id: a}]}"},
    {"without an id: an empty one is none", "senders: [{id: \"\", x: 1}]",
     "senders: [{id: \"\", x: 2}]", "{senders: [{id: \"\", x: 1}, {id: \"\", x: 2}]}"},
    {"entries without an id are appended", "senders: [{x: 1}]", "senders: [{x: 2}]",
     "{senders: [{x: 1}, {x: 2}]}"},
};

static char *merged_text(const char *base, const char *overlay)
{
    struct gb_arena *arena = gb_arena_new(ARENA_MAX);
    const struct gb_node *low = tree_of(arena, base, 0);
    const struct gb_node *high = tree_of(arena, overlay, 1);
    char *low_before = tree_text(low);
    char *high_before = tree_text(high);
    const struct gb_node *merged = gb_merge_layers(arena, low, high);
    assert_non_null(merged);
    char *low_after = tree_text(low);
    char *high_after = tree_text(high);
    assert_string_equal(low_before, low_after); /* inputs stay */
    assert_string_equal(high_before, high_after);
    free(low_before);
    free(high_before);
    free(low_after);
    free(high_after);
    char *text = tree_text(merged);
    gb_arena_free(arena);
    return text;
}

static void table_of_sections(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char *text = merged_text(rows[i].base, rows[i].overlay);
        if (strcmp(text, rows[i].want) != 0)
            fail_msg("%s:\n     %s\nnot: %s", rows[i].name, text, rows[i].want);
        free(text);
    }
}

static void check_identity(const char *document)
{
    struct gb_arena *arena = gb_arena_new(ARENA_MAX);
    char *want = tree_text(tree_of(arena, document, 0));
    char *self = merged_text(document, document);
    char *under_nothing = merged_text(document, "");
    char *over_nothing = merged_text("", document);
    assert_string_equal(self, want);
    assert_string_equal(under_nothing, want);
    assert_string_equal(over_nothing, want);
    free(want);
    free(self);
    free(under_nothing);
    free(over_nothing);
    gb_arena_free(arena);
}

/* But for entries that no id tells apart. */
static void nothing_and_itself_change_nothing(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        bool ids = strstr(rows[i].name, "twice") == NULL && strstr(rows[i].name, "without") == NULL;
        if (!ids) continue;
        check_identity(rows[i].base);
        check_identity(rows[i].want);
    }
}

/* a + b, then c, is a, then b + c: where kinds stay and no marker meets a missing secret. */
static void order_of_merging_does_not_matter(void **state)
{
    (void)state;
    static const char *const docs[] = {
        "{version: 1, bridge: {id: a, log_level: info}, senders: [{id: x, transport: sqs, "
        "options: {a: 1}}], routes: [{id: r, p: 1}], http: {admin_api_key: k}}",
        "{version: 0, bridge: {instance_id: b}, senders: [{id: x, session_id: s}, {id: y}], "
        "routes: [{id: q}], stores: {dlq: {type: memory}}, processors: {p: {type: filter}}}",
        "{bridge: {log_level: debug}, senders: [{id: y, options: {b: 1}}, {id: z}], "
        "routes: [{id: r, p: 2}], stores: {lease: {type: memory}}, http: {admin_api_key: l}}",
        "{config_watch: {mode: poll}, processors: {p: {type: tenant}, q: {type: filter}}}",
        "{}",
    };
    enum { DOCS = sizeof docs / sizeof docs[0] };
    struct gb_arena *arena = gb_arena_new(ARENA_MAX);
    const struct gb_node *trees[DOCS];
    for (size_t i = 0; i < DOCS; i++) trees[i] = tree_of(arena, docs[i], (uint32_t)i);
    for (size_t n = 0; n < (size_t)DOCS * DOCS * DOCS; n++) {
        const struct gb_node *a = trees[n % DOCS];
        const struct gb_node *b = trees[n / DOCS % DOCS];
        const struct gb_node *c = trees[n / DOCS / DOCS];
        char *left = tree_text(gb_merge_layers(arena, gb_merge_layers(arena, a, b), c));
        char *right = tree_text(gb_merge_layers(arena, a, gb_merge_layers(arena, b, c)));
        assert_string_equal(left, right);
        free(left);
        free(right);
    }
    gb_arena_free(arena);
}

static void positions_are_of_their_layer(void **state)
{
    (void)state;
    struct gb_arena *arena = gb_arena_new(ARENA_MAX);
    const struct gb_node *merged =
        gb_merge_layers(arena, tree_of(arena, "bridge: {id: b}\nroutes:\n  - id: r\n    x: 1\n", 0),
                        tree_of(arena, "\nbridge: {log_level: x}\nroutes:\n  - id: r\n", 1));
    static const struct {
        const char *path;
        uint32_t layer, line;
    } want[] = {
        {"bridge.id", 0, 1}, {"bridge.log_level", 1, 2}, {"bridge", 0, 1},
        {"routes", 0, 2},    {"routes[0].id", 1, 4},
    };
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        struct gb_finding_at at = {0};
        gb_node_position(gb_node_locate(merged, want[i].path), &at);
        if (at.layer != want[i].layer || at.line != want[i].line)
            fail_msg("%s is at %u:%u", want[i].path, at.layer, at.line);
    }
    gb_arena_free(arena);
}

/* Ten thousand entries in each section merge in time that grows with their number. */
static void many_entries(void **state)
{
    (void)state;
    enum { ENTRIES = 10000 };
    struct gb_str low = {0};
    struct gb_str high = {0};
    static const char *const sections[] = {"sessions", "receivers", "senders", "bindings"};
    for (size_t s = 0; s < 4; s++) {
        gb_str_appendf(&low, "%s:\n", sections[s]);
        gb_str_appendf(&high, "%s:\n", sections[s]);
        for (int i = 0; i < ENTRIES; i++) {
            gb_str_appendf(&low, "- {id: e%d, sender_id: e%d, options: {a: 1}}\n", i, i);
            gb_str_appendf(&high, "- {id: e%d, transport: sqs}\n", ENTRIES - 1 - i);
        }
    }
    gb_str_append_c(&low, "processors:\n");
    gb_str_append_c(&high, "processors:\n");
    for (int i = 0; i < ENTRIES; i++) {
        gb_str_appendf(&low, "  p%d: {type: filter}\n", i);
        gb_str_appendf(&high, "  p%d: {type: tenant}\n", i + 1);
    }
    struct gb_arena *arena = gb_arena_new((size_t)512 << 20);
    const struct gb_node *base = tree_of(arena, low.data, 0);
    const struct gb_node *overlay = tree_of(arena, high.data, 1);
    const struct gb_node *merged = gb_merge_layers(arena, base, overlay);
    for (size_t s = 0; s < 4; s++)
        assert_int_equal(gb_node_get(merged, sections[s])->count, ENTRIES);
    assert_int_equal(gb_node_get(merged, "processors")->count, ENTRIES + 1);
    gb_arena_free(arena);
    gb_str_deinit(&low);
    gb_str_deinit(&high);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(table_of_sections),
        cmocka_unit_test(nothing_and_itself_change_nothing),
        cmocka_unit_test(order_of_merging_does_not_matter),
        cmocka_unit_test(positions_are_of_their_layer),
        cmocka_unit_test(many_entries),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
