#include "adapters/dynamodb/dynamodb_table.h"

#include <string.h>

static const char *const projection_names[] = {
    [GB_DYNAMODB_KEYS_ONLY] = "KEYS_ONLY",
    [GB_DYNAMODB_INCLUDE] = "INCLUDE",
    [GB_DYNAMODB_ALL] = "ALL",
};
enum { PROJECTIONS = sizeof projection_names / sizeof projection_names[0] };

const char *gb_dynamodb_projection_name(enum gb_dynamodb_projection p)
{
    return projection_names[p];
}

/* --- writing --- */

static void write_definition(struct gb_json_writer *w, const struct gb_dynamodb_key *key)
{
    gb_json_w_object(w);
    gb_json_w_key(w, "AttributeName");
    gb_json_w_string_c(w, key->name);
    gb_json_w_key(w, "AttributeType");
    gb_json_w_string_c(w, gb_dynamodb_type_name(key->type));
    gb_json_w_object_end(w);
}

/* The keys of table and indexes in order; NULL for one that does not exist. */
static const struct gb_dynamodb_key *key_at(const struct gb_dynamodb_table *t, size_t i)
{
    const struct gb_dynamodb_key *hash = i < 2 ? &t->hash : &t->indexes[i / 2 - 1].hash;
    const struct gb_dynamodb_key *range = i < 2 ? &t->range : &t->indexes[i / 2 - 1].range;
    const struct gb_dynamodb_key *key = i % 2 == 0 ? hash : range;
    return key->name == NULL ? NULL : key;
}

static bool is_defined_before(const struct gb_dynamodb_table *t, size_t i)
{
    for (size_t j = 0; j < i; j++) {
        const struct gb_dynamodb_key *key = key_at(t, j);
        if (key != NULL && strcmp(key->name, key_at(t, i)->name) == 0) return true;
    }
    return false;
}

static void write_element(struct gb_json_writer *w, const struct gb_dynamodb_key *key,
                          const char *type)
{
    if (key->name == NULL) return;
    gb_json_w_object(w);
    gb_json_w_key(w, "AttributeName");
    gb_json_w_string_c(w, key->name);
    gb_json_w_key(w, "KeyType");
    gb_json_w_string_c(w, type);
    gb_json_w_object_end(w);
}

static void write_keys(struct gb_json_writer *w, const struct gb_dynamodb_key *hash,
                       const struct gb_dynamodb_key *range)
{
    gb_json_w_key(w, "KeySchema");
    gb_json_w_array(w);
    write_element(w, hash, "HASH");
    write_element(w, range, "RANGE");
    gb_json_w_array_end(w);
}

static void write_index(struct gb_json_writer *w, const struct gb_dynamodb_index *index)
{
    gb_json_w_object(w);
    gb_json_w_key(w, "IndexName");
    gb_json_w_string_c(w, index->name);
    write_keys(w, &index->hash, &index->range);
    gb_json_w_key(w, "Projection");
    gb_json_w_object(w);
    gb_json_w_key(w, "ProjectionType");
    gb_json_w_string_c(w, projection_names[index->projection]);
    gb_json_w_object_end(w);
    gb_json_w_object_end(w);
}

void gb_dynamodb_w_table(struct gb_json_writer *w, const struct gb_dynamodb_table *table)
{
    gb_json_w_key(w, "AttributeDefinitions");
    gb_json_w_array(w);
    for (size_t i = 0; i < 2 * (table->index_count + 1); i++) {
        const struct gb_dynamodb_key *key = key_at(table, i);
        if (key != NULL && !is_defined_before(table, i)) write_definition(w, key);
    }
    gb_json_w_array_end(w);
    write_keys(w, &table->hash, &table->range);
    if (table->index_count > 0) {
        gb_json_w_key(w, "GlobalSecondaryIndexes");
        gb_json_w_array(w);
        for (size_t i = 0; i < table->index_count; i++) write_index(w, &table->indexes[i]);
        gb_json_w_array_end(w);
    }
    gb_json_w_key(w, "BillingMode");
    gb_json_w_string_c(w, "PAY_PER_REQUEST");
}

/* --- reading --- */

/* A named member of an object: as JSON, empty when it is absent or null. */
static struct gb_bytes member(struct gb_bytes json, const char *name)
{
    struct gb_json_reader r;
    struct gb_bytes value = {0};
    gb_json_init(&r, json);
    if (gb_json_next(&r) != GB_JSON_OBJECT_BEGIN) return value;
    while (gb_json_next(&r) == GB_JSON_KEY) {
        bool wanted = gb_json_text_is(&r, name);
        bool null = gb_json_next(&r) == GB_JSON_NULL;
        struct gb_bytes text = {0};
        if (!gb_json_skip_text(&r, &text)) break;
        if (wanted && !null) value = text;
    }
    return value;
}

/* True when `json` is the string `text`. */
static bool is_text(struct gb_bytes json, const char *text)
{
    struct gb_json_reader r;
    gb_json_init(&r, json);
    return json.size > 0 && gb_json_next(&r) == GB_JSON_STRING && gb_json_text_is(&r, text);
}

/* A terminated copy; NULL when `json` is no string. */
static const char *keep(struct gb_str *s, struct gb_bytes json)
{
    struct gb_json_reader r;
    size_t start = s->size;
    gb_json_init(&r, json);
    if (json.size == 0 || gb_json_next(&r) != GB_JSON_STRING) return NULL;
    (void)gb_json_string(&r, s, NULL);
    gb_str_append_char(s, '\0');
    return s->failed ? NULL : s->data + start;
}

static bool type_of(struct gb_bytes definitions, const char *name, enum gb_dynamodb_type *out)
{
    static const enum gb_dynamodb_type types[] = {GB_DYNAMODB_S, GB_DYNAMODB_N, GB_DYNAMODB_B};
    struct gb_dynamodb_items i;
    struct gb_bytes definition;
    gb_dynamodb_items_init(&i, definitions);
    while (gb_dynamodb_items_next(&i, &definition)) {
        if (!is_text(member(definition, "AttributeName"), name)) continue;
        struct gb_bytes type = member(definition, "AttributeType");
        for (size_t t = 0; t < sizeof types / sizeof types[0]; t++) {
            *out = types[t];
            if (is_text(type, gb_dynamodb_type_name(types[t]))) return true;
        }
    }
    return false;
}

static bool read_keys(struct gb_bytes schema, struct gb_bytes definitions, struct gb_str *scratch,
                      struct gb_dynamodb_key *hash, struct gb_dynamodb_key *range)
{
    struct gb_dynamodb_items i;
    struct gb_bytes element;
    gb_dynamodb_items_init(&i, schema);
    while (gb_dynamodb_items_next(&i, &element)) {
        bool is_hash = is_text(member(element, "KeyType"), "HASH");
        struct gb_dynamodb_key *key = is_hash ? hash : range;
        key->name = keep(scratch, member(element, "AttributeName"));
        if (key->name == NULL || !type_of(definitions, key->name, &key->type)) return false;
    }
    return hash->name != NULL;
}

static bool read_index(struct gb_bytes json, struct gb_bytes definitions, struct gb_str *scratch,
                       struct gb_dynamodb_index *out)
{
    struct gb_bytes projection = member(member(json, "Projection"), "ProjectionType");
    size_t p = 0;
    while (p < PROJECTIONS && !is_text(projection, projection_names[p])) p++;
    if (p == PROJECTIONS) return false;
    out->projection = (enum gb_dynamodb_projection)p;
    out->name = keep(scratch, member(json, "IndexName"));
    return out->name != NULL &&
           read_keys(member(json, "KeySchema"), definitions, scratch, &out->hash, &out->range);
}

static size_t count(struct gb_bytes array)
{
    struct gb_dynamodb_items i;
    struct gb_bytes element;
    size_t n = 0;
    gb_dynamodb_items_init(&i, array);
    while (gb_dynamodb_items_next(&i, &element)) n++;
    return n;
}

static bool read_table(struct gb_bytes json, struct gb_str *scratch, struct gb_dynamodb_table *out)
{
    struct gb_bytes definitions = member(json, "AttributeDefinitions");
    struct gb_bytes status = member(json, "TableStatus");
    struct gb_dynamodb_items i;
    struct gb_bytes index;
    out->status = status.size == 0 ? "" : keep(scratch, status);
    out->local_index_count = count(member(json, "LocalSecondaryIndexes"));
    out->attribute_count = count(definitions);
    if (out->status == NULL ||
        !read_keys(member(json, "KeySchema"), definitions, scratch, &out->hash, &out->range))
        return false;
    gb_dynamodb_items_init(&i, member(json, "GlobalSecondaryIndexes"));
    while (gb_dynamodb_items_next(&i, &index)) {
        if (out->index_count == GB_DYNAMODB_INDEXES_MAX ||
            !read_index(index, definitions, scratch, &out->indexes[out->index_count]))
            return false;
        out->index_count++;
    }
    return true;
}

struct gb_err gb_dynamodb_table_read(struct gb_bytes json, struct gb_str *scratch,
                                     struct gb_dynamodb_table *out)
{
    struct gb_dynamodb_table table = {0};
    /* A copy with its end is no longer than the text in its quotes, so none of them moves. */
    if (gb_str_reserve(scratch, json.size + 1) == NULL)
        return gb_err_no_memory("table description");
    if (!read_table(json, scratch, &table)) {
        if (scratch->failed) return gb_err_no_memory("table description");
        return gb_err(GB_UNAVAILABLE, "malformed description of a table");
    }
    *out = table;
    return gb_ok();
}
