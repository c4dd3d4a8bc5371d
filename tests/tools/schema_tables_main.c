#include <stdio.h>

#include "base/assert.h"
#include "base/json_write.h"
#include "blueprint/decode.h"

/* Prints the tables of blueprint/schema.h and the rules as one JSON value, from which
 * scripts/reference/generate.py writes docs/gobridge.schema.json and docs/configuration.md. */

static const char *const type_names[] = {
    [GB_FIELD_TEXT] = "text",     [GB_FIELD_BOOL] = "bool",           [GB_FIELD_INT] = "int",
    [GB_FIELD_NUMBER] = "number", [GB_FIELD_DURATION] = "duration",   [GB_FIELD_WORD] = "word",
    [GB_FIELD_TEXTS] = "texts",   [GB_FIELD_TEXT_MAP] = "text_map",   [GB_FIELD_BLOCK] = "block",
    [GB_FIELD_BLOCKS] = "blocks", [GB_FIELD_BLOCK_MAP] = "block_map", [GB_FIELD_RAW] = "raw",
};
static const struct {
    unsigned flag;
    const char *name;
} flag_names[] = {
    {GB_FIELD_REQUIRED, "required"},         {GB_FIELD_SECRET, "secret"},
    {GB_FIELD_ZERO_DEFAULT, "zero_default"}, {GB_FIELD_OFF, "off"},
    {GB_FIELD_ANY_CASE, "any_case"},         {GB_FIELD_COMMAS, "commas"},
};

static void put_text(struct gb_json_writer *w, const char *key, const char *text)
{
    gb_json_w_key(w, key);
    gb_json_w_string_c(w, text);
}

static void put_int(struct gb_json_writer *w, const char *key, int64_t value)
{
    gb_json_w_key(w, key);
    gb_json_w_i64(w, value);
}

static void put_number(struct gb_json_writer *w, const char *key, double value)
{
    char text[32];
    int size = snprintf(text, sizeof text, "%.17g", value);
    GB_ASSERT(size > 0 && (size_t)size < sizeof text);
    gb_json_w_key(w, key);
    gb_json_w_raw(w, gb_bytes_c(text));
}

static void put_words(struct gb_json_writer *w, const struct gb_word *words)
{
    gb_json_w_key(w, "words");
    gb_json_w_array(w);
    for (; words->name != NULL; words++) {
        gb_json_w_object(w);
        put_text(w, "name", words->name);
        put_int(w, "value", words->value);
        gb_json_w_object_end(w);
    }
    gb_json_w_array_end(w);
}

static void put_block(struct gb_json_writer *w, const struct gb_block *block);

static void put_field(struct gb_json_writer *w, const struct gb_field *f)
{
    gb_json_w_object(w);
    put_text(w, "key", f->key);
    put_text(w, "type", type_names[f->type]);
    for (size_t i = 0; i < sizeof flag_names / sizeof flag_names[0]; i++) {
        gb_json_w_key(w, flag_names[i].name);
        gb_json_w_bool(w, (f->flags & flag_names[i].flag) != 0);
    }
    bool bounded = f->min != 0 || f->max != 0;
    put_int(w, "min", bounded ? f->min : INT64_MIN);
    put_int(w, "max", bounded ? f->max : INT64_MAX);
    put_int(w, "def", f->def);
    put_number(w, "num_min", f->num_min);
    put_number(w, "num_max", f->num_max);
    put_number(w, "num_def", f->num_def);
    if (f->text_def != NULL) put_text(w, "text_def", f->text_def);
    if (f->words != NULL) put_words(w, f->words);
    if (f->block != NULL) {
        gb_json_w_key(w, "block");
        put_block(w, f->block);
    }
    gb_json_w_object_end(w);
}

/* The tables are a tree, a few levels deep. */
static void put_block(struct gb_json_writer *w, const struct gb_block *block)
{
    gb_json_w_object(w);
    gb_json_w_key(w, "camel");
    gb_json_w_bool(w, block->camel);
    gb_json_w_key(w, "fields");
    gb_json_w_array(w);
    for (size_t i = 0; i < block->count; i++) put_field(w, &block->fields[i]);
    gb_json_w_array_end(w);
    gb_json_w_object_end(w);
}

/* A block of options: what it belongs to, and the value of the word that selects it. */
static void put_options(struct gb_json_writer *w, const char *owner, int selector,
                        const struct gb_block *block)
{
    if (block == NULL) return;
    gb_json_w_object(w);
    put_text(w, "owner", owner);
    put_int(w, "selector", selector);
    gb_json_w_key(w, "block");
    put_block(w, block);
    gb_json_w_object_end(w);
}

static void put_all_options(struct gb_json_writer *w)
{
    char owner[64];
    gb_json_w_key(w, "options");
    gb_json_w_array(w);
    for (int role = 0; role < GB_BP_ROLE_COUNT; role++) {
        for (int type = GB_BP_MEMORY; type <= GB_BP_DYNAMODB; type++) {
            (void)snprintf(owner, sizeof owner, "stores.%s",
                           gb_schema_role_name((enum gb_bp_role)role));
            put_options(
                w, owner, type,
                gb_schema_store_options((enum gb_bp_role)role, (enum gb_bp_store_type)type));
        }
    }
    put_options(w, "sessions[]", GB_BP_MQTT, &gb_schema_mqtt_session_options);
    put_options(w, "receivers[]", GB_BP_MQTT, &gb_schema_mqtt_receiver_options);
    put_options(w, "receivers[].topics[]", GB_BP_MQTT, &gb_schema_mqtt_topic_options);
    put_options(w, "receivers[]", GB_BP_SQS, &gb_schema_sqs_receiver);
    put_options(w, "receivers[]", GB_BP_HTTP, &gb_schema_http_receiver);
    put_options(w, "senders[]", GB_BP_MQTT, &gb_schema_mqtt_sender_options);
    put_options(w, "senders[]", GB_BP_SQS, &gb_schema_sqs_sender);
    put_options(w, "senders[]", GB_BP_HTTP, &gb_schema_http_sender);
    for (int type = GB_BP_FILTER; type <= GB_BP_TENANT; type++) {
        put_options(w, "processors.<name>", type,
                    gb_schema_processor_config((enum gb_bp_processor_type)type));
    }
    gb_json_w_array_end(w);
}

int main(void)
{
    struct gb_str out = {0};
    struct gb_json_writer w;
    gb_json_w_init(&w, &out);
    gb_json_w_object(&w);
    put_int(&w, "list_max", GB_DECODE_LIST_MAX);
    gb_json_w_key(&w, "root");
    put_block(&w, &gb_schema_root);
    put_all_options(&w);
    gb_json_w_key(&w, "rules");
    gb_json_w_array(&w);
    for (int rule = GB_RULE_NONE + 1; rule < GB_RULE_COUNT; rule++) {
        gb_json_w_object(&w);
        put_text(&w, "name", gb_rule_name((enum gb_rule)rule));
        put_text(&w, "asks", gb_rule_asks((enum gb_rule)rule));
        gb_json_w_object_end(&w);
    }
    gb_json_w_array_end(&w);
    gb_json_w_object_end(&w);
    bool ok = !out.failed && puts(out.data) >= 0;
    gb_str_deinit(&out);
    return ok ? 0 : 1;
}
