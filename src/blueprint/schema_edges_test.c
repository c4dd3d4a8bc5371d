#include "blueprint/schema.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "blueprint/document.h"

/* Every key of the document with its bounds and default, once more, as the specification has them
 * (spec 01 §3): a table that is changed by mistake differs from its row in a text file. A new key
 * needs its row there. */

#define ROWS "tests/support/blueprint_keys.txt"

struct walk {
    char path[128];
    FILE *rows;
    size_t row;
};

static void put_duration(struct gb_str *out, int64_t ns)
{
    char text[GB_DURATION_TEXT_MAX];
    gb_duration_print(ns, text);
    gb_str_append_c(out, text);
}

static void put_bound(struct gb_str *out, const struct gb_field *f, int64_t bound)
{
    if (bound == INT64_MAX) return;
    if (f->type == GB_FIELD_DURATION) {
        put_duration(out, bound);
    } else {
        gb_str_appendf(out, "%" PRId64, bound);
    }
}

static void put_bounds(struct gb_str *out, const struct gb_field *f)
{
    if (f->type == GB_FIELD_NUMBER) {
        gb_str_appendf(out, " %g..%g = %g", f->num_min, f->num_max, f->num_def);
        return;
    }
    if (f->type != GB_FIELD_INT && f->type != GB_FIELD_DURATION) return;
    gb_str_append_char(out, ' ');
    if (f->min != 0 || f->max != 0) {
        put_bound(out, f, f->min);
        gb_str_append_c(out, "..");
        put_bound(out, f, f->max);
    }
    gb_str_append_c(out, " = ");
    put_bound(out, f, f->def);
}

static void put_flags(struct gb_str *out, unsigned flags)
{
    static const struct {
        unsigned flag;
        const char *name;
    } names[] = {{GB_FIELD_REQUIRED, "required"},
                 {GB_FIELD_SECRET, "secret"},
                 {GB_FIELD_ZERO_DEFAULT, "zero means default"},
                 {GB_FIELD_OFF, "or off"},
                 {GB_FIELD_ANY_CASE, "any case"},
                 {GB_FIELD_COMMAS, "or with commas"}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if ((flags & names[i].flag) != 0) gb_str_appendf(out, ", %s", names[i].name);
    }
}

static void put_field(struct gb_str *out, const char *path, const struct gb_field *f)
{
    static const char *const types[] = {[GB_FIELD_TEXT] = "text",
                                        [GB_FIELD_BOOL] = "bool",
                                        [GB_FIELD_INT] = "integer",
                                        [GB_FIELD_NUMBER] = "number",
                                        [GB_FIELD_DURATION] = "duration",
                                        [GB_FIELD_WORD] = "word",
                                        [GB_FIELD_TEXTS] = "texts",
                                        [GB_FIELD_TEXT_MAP] = "map of texts",
                                        [GB_FIELD_BLOCK] = "block",
                                        [GB_FIELD_BLOCKS] = "list of blocks",
                                        [GB_FIELD_BLOCK_MAP] = "map of blocks",
                                        [GB_FIELD_RAW] = "options"};
    gb_str_appendf(out, "%s: %s", path, types[f->type]);
    put_bounds(out, f);
    if (f->type == GB_FIELD_BOOL && f->def != 0) gb_str_append_c(out, " = true");
    if (f->text_def != NULL) gb_str_appendf(out, " = %s", f->text_def);
    for (const struct gb_word *w = f->words; w != NULL && w->name != NULL; w++) {
        gb_str_appendf(out, " %s%s", w->name, w->value == f->def ? "*" : "");
    }
    put_flags(out, f->flags);
}

static void check_block(struct walk *w, const struct gb_block *block)
{
    for (size_t i = 0; i < block->count; i++) {
        const struct gb_field *f = &block->fields[i];
        size_t size = strlen(w->path);
        (void)snprintf(w->path + size, sizeof w->path - size, "%s%s", size > 0 ? "." : "", f->key);
        struct gb_str got = {0};
        put_field(&got, w->path, f);
        gb_str_append_char(&got, '\n');
        char want[256] = "";
        bool more = fgets(want, sizeof want, w->rows) != NULL;
        w->row++;
        if (!more || strcmp(got.data, want) != 0)
            fail_msg(ROWS ":%zu says\n%sbut the table says\n%s", w->row, want, got.data);
        gb_str_deinit(&got);
        if (f->block != NULL) check_block(w, f->block);
        w->path[size] = '\0';
    }
}

static void check_options(struct walk *w, const char *of, const struct gb_block *block)
{
    if (block == NULL) return;
    (void)snprintf(w->path, sizeof w->path, "%s", of);
    check_block(w, block);
}

static void each_key_has_the_bounds_of_the_specification(void **state)
{
    (void)state;
    struct walk w = {.rows = fopen(ROWS, "r")};
    assert_non_null(w.rows);
    check_block(&w, &gb_schema_root);
    for (int role = 0; role < GB_BP_ROLE_COUNT; role++) {
        for (int type = GB_BP_MEMORY; type <= GB_BP_DYNAMODB; type++) {
            char of[64];
            (void)snprintf(of, sizeof of, "<%s %d>", gb_schema_role_name((enum gb_bp_role)role),
                           type);
            check_options(
                &w, of,
                gb_schema_store_options((enum gb_bp_role)role, (enum gb_bp_store_type)type));
        }
    }
    check_options(&w, "<mqtt session>", &gb_schema_mqtt_session_options);
    check_options(&w, "<mqtt receiver>", &gb_schema_mqtt_receiver_options);
    check_options(&w, "<mqtt topic>", &gb_schema_mqtt_topic_options);
    check_options(&w, "<mqtt sender>", &gb_schema_mqtt_sender_options);
    check_options(&w, "<sqs receiver>", &gb_schema_sqs_receiver);
    check_options(&w, "<sqs sender>", &gb_schema_sqs_sender);
    check_options(&w, "<http receiver>", &gb_schema_http_receiver);
    check_options(&w, "<http sender>", &gb_schema_http_sender);
    for (int type = GB_BP_FILTER; type <= GB_BP_TENANT; type++) {
        char of[32];
        (void)snprintf(of, sizeof of, "<processor %d>", type);
        check_options(&w, of, gb_schema_processor_config((enum gb_bp_processor_type)type));
    }
    assert_int_equal(fgetc(w.rows), EOF);
    assert_int_equal(fclose(w.rows), 0);
}

static void camel_case_is_found_in_snake_case(void **state)
{
    (void)state;
    static const struct gb_field fields[] = {{.key = "anAnt"}, {.key = "aZoo"}};
    static const struct gb_block block = {.fields = fields, .count = 2, .camel = true};
    static const struct gb_block plain = {.fields = fields, .count = 2};
    assert_ptr_equal(gb_schema_field(&block, "an_ant"), &fields[0]);
    assert_ptr_equal(gb_schema_field(&block, "anAnt"), &fields[0]);
    assert_ptr_equal(gb_schema_field(&block, "a_zoo"), &fields[1]);
    assert_null(gb_schema_field(&block, "an-ant"));
    assert_null(gb_schema_field(&block, "an_an"));
    assert_null(gb_schema_field(&block, "an_ants"));
    assert_null(gb_schema_field(&plain, "an_ant"));
}

static void options_are_read_by_role_and_kind(void **state)
{
    (void)state;
    for (int role = 0; role < GB_BP_ROLE_COUNT; role++) {
        struct gb_node node = {.key = gb_schema_role_name((enum gb_bp_role)role)};
        struct gb_bp_store s = {.node = &node, .type = {.value = GB_BP_SQLITE}};
        assert_non_null(gb_schema_options_of_store(&s));
        assert_ptr_equal(gb_schema_options_of_store(&s),
                         gb_schema_store_options((enum gb_bp_role)role, GB_BP_SQLITE));
    }
    struct gb_bp_session session = {.transport = {.value = GB_BP_KIND_NONE}};
    assert_null(gb_schema_options_of_session(&session));
    session.transport.value = GB_BP_MQTT;
    assert_ptr_equal(gb_schema_options_of_session(&session), &gb_schema_mqtt_session_options);
    struct gb_bp_sender sender = {.transport = {.value = GB_BP_SQS}};
    struct gb_bp_binding binding = {0};
    assert_null(gb_schema_options_of_binding(&binding));
    binding.sender = &sender;
    assert_ptr_equal(gb_schema_options_of_binding(&binding), &gb_schema_sqs_sender);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_key_has_the_bounds_of_the_specification),
        cmocka_unit_test(camel_case_is_found_in_snake_case),
        cmocka_unit_test(options_are_read_by_role_and_kind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
