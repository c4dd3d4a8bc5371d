#ifndef GB_TESTS_FUZZ_DYNAMODB_ROW_ITEMS_H
#define GB_TESTS_FUZZ_DYNAMODB_ROW_ITEMS_H

#include <stdint.h>
#include <string.h>

#include "adapters/dynamodb/dynamodb_item.h"
#include "base/assert.h"

/* Items that a target builds from its input: well-formed JSON with the attributes of a store, each
 * absent, of another type, or with a value at an edge, so that what lies behind the JSON reader is
 * reached by every input.
 * Owns:   nothing.
 * Thread: one.
 * Errors: none; input that has run out reads as zeros. */

struct row_attribute {
    const char *name;
    const char *form; /* see row_write_form */
};

struct row_input {
    struct gb_bytes rest;
};

static inline uint8_t row_byte(struct row_input *in)
{
    if (in->rest.size == 0) return 0;
    uint8_t byte = in->rest.data[0];
    in->rest = gb_bytes(in->rest.data + 1, in->rest.size - 1);
    return byte;
}

/* A text of at most 15 bytes; every fourth is one that all share, so that some agree. */
static inline struct gb_bytes row_text(struct row_input *in)
{
    uint8_t control = row_byte(in);
    size_t size = control >> 4;
    if (control % 4 == 0) return gb_bytes_c("e");
    if (size > in->rest.size) size = in->rest.size;
    struct gb_bytes text = gb_bytes(in->rest.data, size);
    in->rest = gb_bytes(in->rest.data + size, in->rest.size - size);
    return text;
}

static inline void row_write_number(struct gb_json_writer *w, const char *name,
                                    struct row_input *in)
{
    static const char *const edges[] = {"0",
                                        "1",
                                        "2",
                                        "-1",
                                        "1700000000000",
                                        "1700000006000",
                                        "4294967296",
                                        "9223372036854775807",
                                        "-9223372036854775808",
                                        "9223372036854775808",
                                        "18446744073709551614",
                                        "18446744073709551615",
                                        "18446744073709551616",
                                        "5.5",
                                        "1e3",
                                        "-0"};
    uint8_t control = row_byte(in);
    if (control < 128) {
        gb_dynamodb_w_n(w, name, gb_bytes_c(edges[control % 16]));
    } else {
        gb_dynamodb_w_i64(w, name, (int64_t)((uint64_t)row_byte(in) << (control % 56)));
    }
}

static inline void row_write_joined(struct gb_json_writer *w, const char *name, const char *before,
                                    struct gb_bytes text, const char *after)
{
    struct gb_str joined = {0};
    gb_str_append_c(&joined, before);
    gb_str_append(&joined, text);
    gb_str_append_c(&joined, after);
    gb_dynamodb_w_s(w, name, gb_str_bytes(&joined));
    gb_str_deinit(&joined);
}

static inline void row_write_set(struct gb_json_writer *w, const char *name, struct row_input *in)
{
    struct gb_bytes texts[8];
    size_t count = row_byte(in) % 9U;
    for (size_t i = 0; i < count; i++) texts[i] = row_text(in);
    gb_dynamodb_w_ss(w, name, texts, count);
}

/* Up to 70 entries: some more than a lease has room for. */
static inline void row_write_map(struct gb_json_writer *w, const char *name, struct row_input *in)
{
    size_t count = row_byte(in) % 71U;
    gb_dynamodb_w_map(w, name);
    for (size_t i = 0; i < count; i++) {
        char key[16] = {0};
        struct gb_bytes text = row_text(in);
        if (text.size > 0) memcpy(key, text.data, text.size);
        gb_dynamodb_w_s(w, key, row_text(in));
    }
    gb_dynamodb_w_map_end(w);
}

/* "S" text, "N" number, "B" bytes, "BOOL", "SS", "M"; "E" an envelope; "X#" a text behind a prefix;
 * "?" a status of the outbox. */
static inline void row_write_form(struct gb_json_writer *w, const struct row_attribute *a,
                                  struct row_input *in)
{
    if (strcmp(a->form, "S") == 0) {
        gb_dynamodb_w_s(w, a->name, row_text(in));
    } else if (strcmp(a->form, "N") == 0) {
        row_write_number(w, a->name, in);
    } else if (strcmp(a->form, "B") == 0) {
        gb_dynamodb_w_b(w, a->name, row_text(in));
    } else if (strcmp(a->form, "BOOL") == 0) {
        gb_dynamodb_w_bool(w, a->name, row_byte(in) % 4 != 3);
    } else if (strcmp(a->form, "SS") == 0) {
        row_write_set(w, a->name, in);
    } else if (strcmp(a->form, "M") == 0) {
        row_write_map(w, a->name, in);
    } else if (strcmp(a->form, "E") == 0) {
        struct gb_str id = {0};
        gb_json_escape(&id, row_text(in));
        row_write_joined(w, a->name, "{\"id\":\"", gb_str_bytes(&id),
                         row_byte(in) % 4 == 3 ? "\",\"payload\":\"p\"" : "\",\"payload\":\"p\"}");
        gb_str_deinit(&id);
    } else if (strcmp(a->form, "?") == 0) {
        static const char *const statuses[] = {"pending", "claimed", "completed", "expired", "no"};
        gb_dynamodb_w_s_c(w, a->name, statuses[row_byte(in) % 5]);
    } else {
        GB_ASSERT(strchr(a->form, '#') != NULL);
        row_write_joined(w, a->name, a->form, row_text(in), "");
    }
}

/* `rest` of the input becomes an item with these attributes. */
static inline void row_build(struct gb_str *out, struct gb_bytes rest,
                             const struct row_attribute *attributes, size_t count)
{
    static const char *const others[] = {"S", "N", "B", "BOOL", "SS", "M"};
    struct row_input in = {rest};
    struct gb_json_writer w;
    gb_json_w_init(&w, out);
    gb_json_w_object(&w);
    for (size_t i = 0; i < count; i++) {
        struct row_attribute a = attributes[i];
        uint8_t control = row_byte(&in);
        if (control >= 250) continue; /* absent */
        if (control >= 240) a.form = others[control % 6];
        row_write_form(&w, &a, &in);
        if (control == 239) row_write_form(&w, &a, &in); /* twice */
    }
    gb_json_w_object_end(&w);
    GB_ASSERT(!out->failed);
}

#endif
