#include "blueprint/decode.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* Every key of every table is tried with every kind of value: the tables are the rows. */

enum { ARENA = 1 << 20, TEXT_MAX = 512 };

struct attempt {
    struct gb_arena *arena;
    struct gb_findings findings;
    unsigned char *out;
    size_t refused; /* findings but for missing keys */
};

/* Decodes `<key>: <value>` as a whole block. */
static void attempt(struct attempt *a, const struct gb_block *block, const char *key,
                    const char *value)
{
    char text[TEXT_MAX];
    int size = snprintf(text, sizeof text, "\"%s\": %s\n", key, value);
    assert_true(size > 0 && (size_t)size < sizeof text);
    *a = (struct attempt){.arena = gb_arena_new(ARENA), .out = calloc(1, block->size)};
    assert_non_null(a->arena);
    assert_non_null(a->out);
    const struct gb_node *root = NULL;
    assert_true(gb_document_yaml(gb_bytes_c(text), 0, a->arena, &a->findings, &root));
    struct gb_decode d = {.arena = a->arena, .findings = &a->findings};
    gb_decode_block(&d, block, root, a->out);
    assert_int_equal(d.key_size, 0);
    for (size_t i = 0; i < a->findings.count; i++) {
        const struct gb_finding *f = &a->findings.items[i];
        if (strstr(f->text, " is required") != NULL) continue;
        assert_int_equal(f->line, 1);
        assert_true(f->column >= 1);
        a->refused++;
    }
}

static void done(struct attempt *a)
{
    gb_findings_deinit(&a->findings);
    gb_arena_free(a->arena);
    free(a->out);
}

static void refuses(const struct gb_block *block, const char *key, const char *value)
{
    struct attempt a;
    attempt(&a, block, key, value);
    if (a.refused != 1) {
        fail_msg("%s.%s: %s has %zu findings, not one", block->name, key, value, a.refused);
    }
    const char *text = "";
    for (size_t i = 0; i < a.findings.count; i++) {
        if (strstr(a.findings.items[i].text, " is required") == NULL) {
            text = a.findings.items[i].text;
        }
    }
    if (strstr(text, key) == NULL) fail_msg("%s.%s is not named in: %s", block->name, key, text);
    done(&a);
}

/* Leaves the attempt open when `a` is not NULL. */
static void accepts(const struct gb_block *block, const char *key, const char *value,
                    struct attempt *a)
{
    struct attempt own;
    struct attempt *at = a == NULL ? &own : a;
    attempt(at, block, key, value);
    if (at->refused != 0) {
        fail_msg("%s.%s: %s is refused: %s", block->name, key, value, at->findings.items[0].text);
    }
    if (a == NULL) done(&own);
}

static void check_text(const struct gb_block *b, const struct gb_field *f)
{
    static const char *const wrong[] = {"[a]", "{a: b}", "12", "-1.5e3", ".5"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) refuses(b, f->key, wrong[i]);
    static const struct {
        const char *written, *want;
    } right[] = {
        {"abc", "abc"}, {"\"12\"", "12"}, {"yes", "yes"}, {"true", "true"}, {"1.2.3", "1.2.3"}};
    for (size_t i = 0; i < sizeof right / sizeof right[0]; i++) {
        struct attempt a;
        accepts(b, f->key, right[i].written, &a);
        assert_string_equal(*(char **)(void *)(a.out + f->offset), right[i].want);
        done(&a);
    }
    struct attempt a;
    accepts(b, f->key, "\"\"", &a);
    const char *text = *(char **)(void *)(a.out + f->offset);
    if (f->text_def == NULL) assert_null(text);
    if (f->text_def != NULL) assert_string_equal(text, f->text_def);
    done(&a);
}

static void check_bool(const struct gb_block *b, const struct gb_field *f)
{
    static const char *const wrong[] = {"yes", "off", "True", "\"true\"", "1", "[true]"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) refuses(b, f->key, wrong[i]);
    for (int i = 0; i < 2; i++) {
        struct attempt a;
        accepts(b, f->key, i == 1 ? "true" : "false", &a);
        const struct gb_opt_bool *out = (void *)(a.out + f->offset);
        assert_true(out->given);
        assert_int_equal(out->value, i);
        done(&a);
    }
}

static void check_int(const struct gb_block *b, const struct gb_field *f)
{
    static const char *const wrong[] = {"1.0",
                                        "1e1",
                                        "\"1\"",
                                        "abc",
                                        "[1]",
                                        "0x1",
                                        "01",
                                        "1_0",
                                        "9223372036854775808",
                                        "-9223372036854775809"};
    char text[32];
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) refuses(b, f->key, wrong[i]);
    const int64_t bounds[] = {f->min, f->max};
    for (size_t i = 0; i < 2; i++) {
        struct attempt a;
        (void)snprintf(text, sizeof text, "%" PRId64, bounds[i]);
        accepts(b, f->key, text, &a);
        const struct gb_opt_int *out = (void *)(a.out + f->offset);
        assert_true(out->given);
        bool zero = bounds[i] == 0 && (f->flags & GB_FIELD_ZERO_DEFAULT) != 0;
        assert_int_equal(out->value, zero ? f->def : bounds[i]);
        done(&a);
    }
    (void)snprintf(text, sizeof text, "%" PRId64, f->min - 1);
    refuses(b, f->key, text);
    if (f->max == INT64_MAX) return;
    (void)snprintf(text, sizeof text, "%" PRId64, f->max + 1);
    refuses(b, f->key, text);
}

static void check_number(const struct gb_block *b, const struct gb_field *f)
{
    static const char *const wrong[] = {"\"1\"", "abc", "[1]", ".nan", ".inf", "1e999"};
    char text[32];
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) refuses(b, f->key, wrong[i]);
    const double bounds[] = {f->num_min, f->num_max};
    for (size_t i = 0; i < 2; i++) {
        struct attempt a;
        (void)snprintf(text, sizeof text, "%g", bounds[i]);
        accepts(b, f->key, text, &a);
        const struct gb_opt_num *out = (void *)(a.out + f->offset);
        assert_true(out->given);
        assert_true(out->value == bounds[i]);
        done(&a);
    }
    (void)snprintf(text, sizeof text, "%g", f->num_min - 0.01);
    refuses(b, f->key, text);
    (void)snprintf(text, sizeof text, "%.9g", f->num_max + 1);
    refuses(b, f->key, text);
}

static void check_duration(const struct gb_block *b, const struct gb_field *f)
{
    static const char *const wrong[] = {
        "30", "1.5", "1x", "soon", "[1s]", "true", "9223372036854775808ns"};
    char text[32];
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) refuses(b, f->key, wrong[i]);
    const int64_t bounds[] = {f->min, f->max};
    for (size_t i = 0; i < 2; i++) {
        struct attempt a;
        (void)snprintf(text, sizeof text, "%" PRId64 "ns", bounds[i]);
        accepts(b, f->key, text, &a);
        const struct gb_opt_ns *out = (void *)(a.out + f->offset);
        assert_true(out->given);
        bool zero = bounds[i] == 0 && (f->flags & GB_FIELD_ZERO_DEFAULT) != 0;
        assert_int_equal(out->ns, zero ? f->def : bounds[i]);
        done(&a);
    }
    if (f->min != INT64_MIN) {
        (void)snprintf(text, sizeof text, "%" PRId64 "ns", f->min - 1);
        refuses(b, f->key, text);
    }
    if (f->max != INT64_MAX) {
        (void)snprintf(text, sizeof text, "%" PRId64 "ns", f->max + 1);
        refuses(b, f->key, text);
    }
    if ((f->flags & GB_FIELD_OFF) == 0) refuses(b, f->key, "off");
}

static void check_words(const struct gb_block *b, const struct gb_field *f)
{
    refuses(b, f->key, "nonsense");
    refuses(b, f->key, "12");
    refuses(b, f->key, "[a]");
    for (const struct gb_word *w = f->words; w->name != NULL; w++) {
        struct attempt a;
        accepts(b, f->key, w->name, &a);
        const struct gb_opt_word *out = (void *)(a.out + f->offset);
        assert_true(out->given);
        assert_int_equal(out->value, w->value);
        done(&a);
        char upper[TEXT_MAX];
        (void)snprintf(upper, sizeof upper, "%s", w->name);
        upper[0] = (char)(upper[0] - 'a' + 'A');
        if ((f->flags & GB_FIELD_ANY_CASE) != 0) accepts(b, f->key, upper, NULL);
        if ((f->flags & GB_FIELD_ANY_CASE) == 0) refuses(b, f->key, upper);
    }
}

static void check_texts(const struct gb_block *b, const struct gb_field *f)
{
    refuses(b, f->key, "{a: b}");
    refuses(b, f->key, "[a, 12]");
    refuses(b, f->key, "[a, [b]]");
    refuses(b, f->key, "[\"\"]");
    struct attempt a;
    accepts(b, f->key, "[a, \"b c\"]", &a);
    const struct gb_bp_strings *out = (void *)(a.out + f->offset);
    assert_int_equal(out->count, 2);
    assert_string_equal(out->items[1], "b c");
    done(&a);
    if ((f->flags & GB_FIELD_COMMAS) == 0) {
        refuses(b, f->key, "a");
        return;
    }
    accepts(b, f->key, "a , b", &a);
    out = (void *)(a.out + f->offset);
    assert_int_equal(out->count, 2);
    assert_string_equal(out->items[0], "a");
    assert_string_equal(out->items[1], "b");
    done(&a);
}

static void check_text_map(const struct gb_block *b, const struct gb_field *f)
{
    refuses(b, f->key, "a");
    refuses(b, f->key, "[a]");
    refuses(b, f->key, "{a: [b]}");
    refuses(b, f->key, "{a: 1}");
    struct attempt a;
    accepts(b, f->key, "{x: y, z: \"1\"}", &a);
    const struct gb_bp_map *out = (void *)(a.out + f->offset);
    assert_int_equal(out->count, 2);
    assert_string_equal(out->items[1].key, "z");
    assert_string_equal(out->items[1].value, "1");
    done(&a);
}

/* An entry with nothing in it lacks all that an entry needs. */
static void check_empty_entry(const struct gb_block *b, const struct gb_field *f)
{
    struct attempt a;
    attempt(&a, b, f->key, f->type == GB_FIELD_BLOCKS ? "[~]" : "{x: ~}");
    size_t required = 0;
    size_t missing = 0;
    for (size_t i = 0; i < f->block->count; i++) {
        required += (f->block->fields[i].flags & GB_FIELD_REQUIRED) != 0;
    }
    for (size_t i = 0; i < a.findings.count; i++) { /* the block itself may lack keys, too */
        const struct gb_finding *missed = &a.findings.items[i];
        missing += strchr(missed->text, '.') != NULL || missed->path[0] != '\0';
    }
    assert_int_equal(a.refused, 0);
    assert_int_equal(missing, required);
    done(&a);
}

static void check_block(const struct gb_block *b);

static void check_field(const struct gb_block *b, const struct gb_field *f)
{
    switch (f->type) {
    case GB_FIELD_TEXT:
        check_text(b, f);
        break;
    case GB_FIELD_BOOL:
        check_bool(b, f);
        break;
    case GB_FIELD_INT:
        check_int(b, f);
        break;
    case GB_FIELD_NUMBER:
        check_number(b, f);
        break;
    case GB_FIELD_DURATION:
        check_duration(b, f);
        break;
    case GB_FIELD_WORD:
        check_words(b, f);
        break;
    case GB_FIELD_TEXTS:
        check_texts(b, f);
        break;
    case GB_FIELD_TEXT_MAP:
        check_text_map(b, f);
        break;
    case GB_FIELD_BLOCK:
        refuses(b, f->key, "[a]");
        refuses(b, f->key, "a");
        check_block(f->block);
        break;
    case GB_FIELD_BLOCKS:
        refuses(b, f->key, "{a: b}");
        refuses(b, f->key, "a");
        check_empty_entry(b, f);
        check_block(f->block);
        break;
    case GB_FIELD_BLOCK_MAP:
        refuses(b, f->key, "[a]");
        check_empty_entry(b, f);
        check_block(f->block);
        break;
    case GB_FIELD_RAW:
        accepts(b, f->key, "[a, {b: 1}]", NULL);
        break;
    }
    /* Null is as if absent, for every type. */
    struct attempt a;
    accepts(b, f->key, "~", &a);
    if (f->type == GB_FIELD_INT) {
        const struct gb_opt_int *out = (void *)(a.out + f->offset);
        assert_false(out->given);
        assert_int_equal(out->value, f->def);
    }
    done(&a);
}

static void check_block(const struct gb_block *b)
{
    for (size_t i = 0; i < b->count; i++) {
        char unknown[TEXT_MAX];
        (void)snprintf(unknown, sizeof unknown, "%s_", b->fields[i].key);
        refuses(b, unknown, "1");
        check_field(b, &b->fields[i]);
        for (size_t j = 0; j < i; j++) {
            assert_string_not_equal(b->fields[i].key, b->fields[j].key);
        }
    }
}

static void every_key_of_the_document(void **state)
{
    (void)state;
    check_block(&gb_schema_root);
}

static void every_key_of_the_options(void **state)
{
    (void)state;
    static const struct gb_block *const blocks[] = {
        &gb_schema_mqtt_session_options,  &gb_schema_mqtt_topic_options,
        &gb_schema_mqtt_receiver_options, &gb_schema_mqtt_sender_options,
        &gb_schema_sqs_receiver,          &gb_schema_sqs_sender,
        &gb_schema_http_receiver,         &gb_schema_http_sender};
    for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++) check_block(blocks[i]);
    for (int role = 0; role < GB_BP_ROLE_COUNT; role++) {
        for (int type = GB_BP_MEMORY; type <= GB_BP_DYNAMODB; type++) {
            const struct gb_block *b =
                gb_schema_store_options((enum gb_bp_role)role, (enum gb_bp_store_type)type);
            assert_true((b == NULL) == (role == GB_BP_SUBSCRIPTIONS && type == GB_BP_MEMORY));
            if (b != NULL) check_block(b);
        }
    }
    for (int type = GB_BP_FILTER; type <= GB_BP_TENANT; type++) {
        check_block(gb_schema_processor_config((enum gb_bp_processor_type)type));
    }
}

static const struct suggest_row {
    const char *key, *want;
} suggest_rows[] = {
    {"rotues", "routes"},
    {"route", "routes"},
    {"Bridge", "bridge"},
    {"sesions", "sessions"},
    {"htp", "http"},
    {"x", NULL},
    {"", NULL},
    {"versions", "version"},
    {"something", NULL},
    {"bindings_", "bindings"},
    {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", NULL},
};

static void an_empty_mqtt_session_is_missing(void **state)
{
    (void)state;
    static const char text[] = "sessions: [{id: a, transport: mqtt, options: {session: ~}}]";
    struct gb_findings findings = {0};
    struct gb_arena *arena = gb_arena_new(ARENA);
    assert_non_null(arena);
    const struct gb_node *root = NULL;
    assert_true(gb_document_yaml(gb_bytes_c(text), 0, arena, &findings, &root));
    struct gb_blueprint *b = gb_arena_alloc(arena, sizeof *b);
    assert_non_null(b);
    struct gb_decode d = {.arena = arena, .findings = &findings};
    gb_decode_document(&d, root, b);
    assert_int_equal(findings.count, 1);
    assert_int_equal(findings.items[0].rule, GB_RULE_K2);
    assert_non_null(strstr(findings.items[0].text, "options.session is required"));
    gb_findings_deinit(&findings);
    gb_arena_free(arena);
}

static void close_keys_are_suggested(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof suggest_rows / sizeof suggest_rows[0]; i++) {
        const char *got = gb_decode_suggest(&gb_schema_root, suggest_rows[i].key);
        const char *want = suggest_rows[i].want;
        if (want == NULL ? got != NULL : got == NULL || strcmp(got, want) != 0) {
            fail_msg("\"%s\": \"%s\", not \"%s\"", suggest_rows[i].key, got, want);
        }
    }
}

static void words_print_as_they_are_written(void **state)
{
    (void)state;
    assert_string_equal(gb_schema_word_name(gb_schema_kinds, GB_BP_MQTT), "mqtt");
    assert_string_equal(gb_schema_word_name(gb_schema_kinds, GB_BP_HTTP), "http");
    assert_string_equal(gb_schema_role_name(GB_BP_SUBSCRIPTIONS), "managed_subscriptions");
    assert_string_equal(gb_schema_role_name(GB_BP_LEASE), "lease");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_key_of_the_document),
        cmocka_unit_test(every_key_of_the_options),
        cmocka_unit_test(an_empty_mqtt_session_is_missing),
        cmocka_unit_test(close_keys_are_suggested),
        cmocka_unit_test(words_print_as_they_are_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
