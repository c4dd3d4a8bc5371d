#include "adapters/dynamodb/dynamodb_item.h"

/* --- writing --- */

static void begin_value(struct gb_json_writer *w, const char *name, enum gb_dynamodb_type type)
{
    if (name != NULL) gb_json_w_key_bytes(w, gb_bytes_c(name));
    gb_json_w_object(w);
    gb_json_w_key(w, gb_dynamodb_type_name(type));
}

void gb_dynamodb_w_s(struct gb_json_writer *w, const char *name, struct gb_bytes text)
{
    begin_value(w, name, GB_DYNAMODB_S);
    gb_json_w_string(w, text);
    gb_json_w_object_end(w);
}

void gb_dynamodb_w_s_c(struct gb_json_writer *w, const char *name, const char *text)
{
    gb_dynamodb_w_s(w, name, gb_bytes_c(text));
}

void gb_dynamodb_w_n(struct gb_json_writer *w, const char *name, struct gb_bytes digits)
{
    begin_value(w, name, GB_DYNAMODB_N);
    gb_json_w_string(w, digits);
    gb_json_w_object_end(w);
}

enum { NUMBER_TEXT = 24 };

void gb_dynamodb_w_i64(struct gb_json_writer *w, const char *name, int64_t value)
{
    char memory[NUMBER_TEXT];
    struct gb_str text = gb_str_over(memory, sizeof memory);
    gb_str_append_i64(&text, value);
    gb_dynamodb_w_n(w, name, gb_str_bytes(&text));
}

void gb_dynamodb_w_u64(struct gb_json_writer *w, const char *name, uint64_t value)
{
    char memory[NUMBER_TEXT];
    struct gb_str text = gb_str_over(memory, sizeof memory);
    gb_str_append_u64(&text, value);
    gb_dynamodb_w_n(w, name, gb_str_bytes(&text));
}

void gb_dynamodb_w_b(struct gb_json_writer *w, const char *name, struct gb_bytes bytes)
{
    begin_value(w, name, GB_DYNAMODB_B);
    gb_json_w_base64(w, bytes);
    gb_json_w_object_end(w);
}

void gb_dynamodb_w_bool(struct gb_json_writer *w, const char *name, bool value)
{
    begin_value(w, name, GB_DYNAMODB_BOOL);
    gb_json_w_bool(w, value);
    gb_json_w_object_end(w);
}

void gb_dynamodb_w_null(struct gb_json_writer *w, const char *name)
{
    begin_value(w, name, GB_DYNAMODB_NULL);
    gb_json_w_bool(w, true);
    gb_json_w_object_end(w);
}

void gb_dynamodb_w_ss(struct gb_json_writer *w, const char *name, const struct gb_bytes *texts,
                      size_t count)
{
    if (count == 0) return;
    begin_value(w, name, GB_DYNAMODB_SS);
    gb_json_w_array(w);
    for (size_t i = 0; i < count; i++) gb_json_w_string(w, texts[i]);
    gb_json_w_array_end(w);
    gb_json_w_object_end(w);
}

void gb_dynamodb_w_map(struct gb_json_writer *w, const char *name)
{
    begin_value(w, name, GB_DYNAMODB_M);
    gb_json_w_object(w);
}

void gb_dynamodb_w_map_end(struct gb_json_writer *w)
{
    gb_json_w_object_end(w);
    gb_json_w_object_end(w);
}

void gb_dynamodb_w_list(struct gb_json_writer *w, const char *name)
{
    begin_value(w, name, GB_DYNAMODB_L);
    gb_json_w_array(w);
}

void gb_dynamodb_w_list_end(struct gb_json_writer *w)
{
    gb_json_w_array_end(w);
    gb_json_w_object_end(w);
}

/* --- known fields --- */

static const struct kind {
    enum gb_dynamodb_type type;
    const char *expected;
} kinds[] = {
    [GB_DYNAMODB_FIELD_S] = {GB_DYNAMODB_S, "S"},
    [GB_DYNAMODB_FIELD_I64] = {GB_DYNAMODB_N, "N, a signed 64-bit integer"},
    [GB_DYNAMODB_FIELD_U64] = {GB_DYNAMODB_N, "N, an unsigned 64-bit integer"},
    [GB_DYNAMODB_FIELD_N] = {GB_DYNAMODB_N, "N"},
    [GB_DYNAMODB_FIELD_B] = {GB_DYNAMODB_B, "B"},
    [GB_DYNAMODB_FIELD_BOOL] = {GB_DYNAMODB_BOOL, "BOOL"},
    [GB_DYNAMODB_FIELD_SS] = {GB_DYNAMODB_SS, "SS"},
    [GB_DYNAMODB_FIELD_L] = {GB_DYNAMODB_L, "L"},
    [GB_DYNAMODB_FIELD_M] = {GB_DYNAMODB_M, "M"},
};

/* False: the value does not fit the field. */
static bool store(const struct gb_dynamodb_field *f, const struct gb_dynamodb_value *v)
{
    if (v->type != kinds[f->kind].type) return false;
    switch (f->kind) {
    case GB_DYNAMODB_FIELD_I64:
        return gb_dynamodb_parse_i64(v->text, f->to);
    case GB_DYNAMODB_FIELD_U64:
        return gb_dynamodb_parse_u64(v->text, f->to);
    case GB_DYNAMODB_FIELD_BOOL:
        *(bool *)f->to = v->boolean;
        return true;
    case GB_DYNAMODB_FIELD_S:
    case GB_DYNAMODB_FIELD_N:
    case GB_DYNAMODB_FIELD_B:
    case GB_DYNAMODB_FIELD_SS:
    case GB_DYNAMODB_FIELD_L:
    case GB_DYNAMODB_FIELD_M:
        *(struct gb_bytes *)f->to = v->text;
        return true;
    }
    return false;
}

static struct gb_dynamodb_field *find(struct gb_dynamodb_field *fields, size_t count,
                                      struct gb_bytes name)
{
    for (size_t i = 0; i < count; i++) {
        if (gb_bytes_equal_c(name, fields[i].name)) return &fields[i];
    }
    return NULL;
}

static struct gb_err mismatch(const struct gb_dynamodb_source *from,
                              const struct gb_dynamodb_field *f, const char *found)
{
    return gb_err(GB_INVALID_CONFIG, "table \"%s\", %s: attribute \"%s\" is %s, expected %s",
                  from->table, from->operation, f->name, found, kinds[f->kind].expected);
}

static struct gb_err take_value(const struct gb_dynamodb_source *from, struct gb_dynamodb_field *f,
                                const struct gb_dynamodb_value *v)
{
    if (f->present) return mismatch(from, f, "there twice");
    f->present = true;
    if (store(f, v)) return gb_ok();
    bool number = v->type == GB_DYNAMODB_N && kinds[f->kind].type == GB_DYNAMODB_N;
    char found[40] = {0};
    if (!number) return mismatch(from, f, gb_dynamodb_type_name(v->type));
    gb_bytes_show(v->text, found, sizeof found);
    return mismatch(from, f, found);
}

struct gb_err gb_dynamodb_item_read(const struct gb_dynamodb_source *from, struct gb_bytes item,
                                    struct gb_str *scratch, struct gb_dynamodb_field *fields,
                                    size_t count)
{
    struct gb_dynamodb_cursor c;
    struct gb_dynamodb_value v;
    struct gb_err first = gb_ok(); /* attributes come in any order: the others are read, too */
    for (size_t i = 0; i < count; i++) fields[i].present = false;
    gb_dynamodb_cursor_init(&c, GB_DYNAMODB_M, item, scratch);
    while (gb_dynamodb_next(&c, &v)) {
        struct gb_dynamodb_field *f = find(fields, count, v.name);
        if (f == NULL) continue;
        struct gb_err err = take_value(from, f, &v);
        if (gb_failed(err) && !gb_failed(first)) first = err;
    }
    if (gb_failed(c.err)) return gb_err_in(c.err, "table \"%s\", %s", from->table, from->operation);
    if (gb_failed(first)) return first;
    for (size_t i = 0; i < count; i++) {
        if (fields[i].required && !fields[i].present) return mismatch(from, &fields[i], "missing");
    }
    return gb_ok();
}
