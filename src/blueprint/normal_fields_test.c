#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "blueprint/decoded.h"

/* Spec 01 §9.1, over every field of every table: another value is another content, a value is
 * another content than none, and YAML and JSON agree. Documents hold the one field in its place. */

struct place {
    const struct place *outer;
    const char *before, *after;
};

enum { FIELDS_MIN = 430 };

struct counts {
    size_t fields, options;
};

static void append_before(struct gb_str *s, const struct place *p)
{
    if (p->outer != NULL) append_before(s, p->outer);
    gb_str_append_c(s, p->before);
}

static char *document(const struct place *place, const char *key, const char *value)
{
    struct gb_str s = {0};
    append_before(&s, place);
    if (value != NULL) gb_str_appendf(&s, "\"%s\":%s", key, value);
    for (const struct place *p = place; p != NULL; p = p->outer) gb_str_append_c(&s, p->after);
    char *text = gb_str_take(&s);
    assert_non_null(text);
    return text;
}

static char *normal(const struct place *place, const char *key, const char *value)
{
    struct gb_err err;
    char *text = document(place, key, value);
    char *got = gb_decoded_normal(text, GB_BLUEPRINT_JSON, &err);
    assert_string_equal(err.message, "");
    char *as_yaml = gb_decoded_normal(text, GB_BLUEPRINT_YAML, &err);
    assert_string_equal(as_yaml, got);
    free(as_yaml);
    free(text);
    return got;
}

static void check_values(const struct place *place, const struct gb_field *f, const char *a,
                         const char *b, struct counts *counts)
{
    char *none = normal(place, f->key, NULL);
    char *first = normal(place, f->key, a);
    char *second = normal(place, f->key, b);
    char *text = document(place, f->key, a);
    bool content = (f->flags & GB_FIELD_NO_CONTENT) == 0;
    if ((strcmp(first, second) != 0) != content || (strcmp(first, none) != 0) != content) {
        fail_msg("%s\n-> %s\n   %s\n   %s", text, first, second, none);
    }
    counts->fields++;
    free(text);
    free(none);
    free(first);
    free(second);
}

static void check_words(const struct place *place, const struct gb_field *f, struct counts *counts)
{
    for (const struct gb_word *w = f->words; w->name != NULL; w++) {
        char a[64];
        (void)snprintf(a, sizeof a, "\"%s\"", w->name);
        bool alias = (f->flags & GB_FIELD_KIND) != 0 && w != f->words && w->value == w[-1].value;
        check_values(place, f, a, w == f->words || alias ? "\"sqs\"" : "\"mqtt\"", counts);
        if (!alias) continue;
        char *first = normal(place, f->key, a);
        (void)snprintf(a, sizeof a, "\"%s\"", w[-1].name);
        char *second = normal(place, f->key, a);
        assert_string_equal(first, second);
        free(first);
        free(second);
    }
}

static void check_block(const struct place *place, const struct gb_block *block,
                        struct counts *counts);

/* As deep as the tables. */
static void check_inside(const struct place *place, const struct gb_field *f, const char *open,
                         const char *close, struct counts *counts)
{
    char before[64];
    (void)snprintf(before, sizeof before, "\"%s\":%s", f->key, open);
    struct place inner = {.outer = place, .before = before, .after = close};
    check_block(&inner, f->block, counts);
}

static void check_field(const struct place *place, const struct gb_field *f, struct counts *counts)
{
    switch (f->type) {
    case GB_FIELD_TEXT:
        check_values(place, f, "\"a\"", "\"b\"", counts);
        break;
    case GB_FIELD_BOOL:
        check_values(place, f, "true", "false", counts);
        break;
    case GB_FIELD_INT:
        check_values(place, f, "9007199254740992", "9007199254740993", counts);
        check_values(place, f, "0", "-1", counts);
        break;
    case GB_FIELD_NUMBER:
        check_values(place, f, "1", "1.5", counts);
        break;
    case GB_FIELD_DURATION:
        check_values(place, f, "\"1s\"", "\"1000000001ns\"", counts);
        break;
    case GB_FIELD_WORD:
        check_words(place, f, counts);
        break;
    case GB_FIELD_TEXTS:
        check_values(place, f, "[\"a\"]", "[\"a\",\"b\"]", counts);
        break;
    case GB_FIELD_TEXT_MAP:
        check_values(place, f, "{\"k\":\"a\"}", "{\"k\":\"b\"}", counts);
        check_values(place, f, "{\"k\":\"\"}", "{\"l\":\"\"}", counts);
        break;
    case GB_FIELD_BLOCK:
        check_inside(place, f, "{", "}", counts);
        break;
    case GB_FIELD_BLOCKS:
        check_inside(place, f, "[{", "}]", counts);
        check_values(place, f, "[{}]", "[{},{}]", counts);
        break;
    case GB_FIELD_BLOCK_MAP:
        check_inside(place, f, "{\"n\":{", "}}", counts);
        check_values(place, f, "{\"a\":{}}", "{\"b\":{}}", counts);
        break;
    case GB_FIELD_RAW: /* options: tables below */
        if (f->options_of == NULL) {
            check_values(place, f, "1", "\"1\"", counts);
            check_values(place, f, "[]", "{}", counts);
        }
        break;
    }
}

static void check_block(const struct place *place, const struct gb_block *block,
                        struct counts *counts)
{
    for (size_t i = 0; i < block->count; i++) check_field(place, &block->fields[i], counts);
}

static void check_options(const char *before, const char *after, const struct gb_block *block,
                          struct counts *counts)
{
    struct place place = {.before = before, .after = after};
    check_block(&place, block, counts);
    counts->options++;
}

static void check_stores(struct counts *counts)
{
    static const char *const types[] = {
        [GB_BP_MEMORY] = "memory", [GB_BP_SQLITE] = "sqlite", [GB_BP_DYNAMODB] = "dynamodb"};
    for (int role = 0; role < GB_BP_ROLE_COUNT; role++) {
        for (int type = GB_BP_MEMORY; type <= GB_BP_DYNAMODB; type++) {
            const struct gb_block *block =
                gb_schema_store_options((enum gb_bp_role)role, (enum gb_bp_store_type)type);
            if (block == NULL) continue;
            char *before = gb_asprintf("{\"stores\":{\"%s\":{\"type\":\"%s\",\"options\":{",
                                       gb_schema_role_name((enum gb_bp_role)role), types[type]);
            assert_non_null(before);
            check_options(before, "}}}}", block, counts);
            free(before);
        }
    }
}

static void check_processors(struct counts *counts)
{
    static const char *const types[] = {[GB_BP_FILTER] = "filter",
                                        [GB_BP_TRANSFORM] = "transform",
                                        [GB_BP_CIRCUITBREAKER] = "circuitbreaker",
                                        [GB_BP_TENANT] = "tenant"};
    for (int type = GB_BP_FILTER; type <= GB_BP_TENANT; type++) {
        char *before =
            gb_asprintf("{\"processors\":{\"p\":{\"type\":\"%s\",\"config\":{", types[type]);
        assert_non_null(before);
        check_options(before, "}}}}", gb_schema_processor_config((enum gb_bp_processor_type)type),
                      counts);
        free(before);
    }
}

static void every_field_counts(void **state)
{
    (void)state;
    static const struct {
        const char *before, *after;
        const struct gb_block *block;
    } kinds[] = {
        {"{\"sessions\":[{\"transport\":\"mqtt\",\"options\":{", "}}]}",
         &gb_schema_mqtt_session_options},
        {"{\"receivers\":[{\"transport\":\"mqtt\",\"topics\":[{\"options\":{", "}}]}]}",
         &gb_schema_mqtt_topic_options},
        {"{\"receivers\":[{\"transport\":\"mqtt\",\"options\":{", "}}]}",
         &gb_schema_mqtt_receiver_options},
        {"{\"receivers\":[{\"transport\":\"sqs\",\"options\":{", "}}]}", &gb_schema_sqs_receiver},
        {"{\"receivers\":[{\"transport\":\"http\",\"options\":{", "}}]}", &gb_schema_http_receiver},
        {"{\"senders\":[{\"transport\":\"mqtt\",\"options\":{", "}}]}",
         &gb_schema_mqtt_sender_options},
        {"{\"senders\":[{\"transport\":\"sqs\",\"options\":{", "}}]}", &gb_schema_sqs_sender},
        {"{\"senders\":[{\"transport\":\"http\",\"options\":{", "}}]}", &gb_schema_http_sender},
        {"{\"senders\":[{\"id\":\"s\",\"transport\":\"sqs\"}],\"bindings\":[{\"sender_id\":\"s\","
         "\"options\":{",
         "}}]}", &gb_schema_sqs_sender},
    };
    struct counts counts = {0};
    struct place root = {.before = "{", .after = "}"};
    check_block(&root, &gb_schema_root, &counts);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        check_options(kinds[i].before, kinds[i].after, kinds[i].block, &counts);
    }
    check_stores(&counts);
    check_processors(&counts);
    print_message("  %zu fields, %zu tables of options\n", counts.fields, counts.options);
    assert_true(counts.fields >= FIELDS_MIN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_field_counts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
