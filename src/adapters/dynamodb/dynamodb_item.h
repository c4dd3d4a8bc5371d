#ifndef GB_ADAPTERS_DYNAMODB_DYNAMODB_ITEM_H
#define GB_ADAPTERS_DYNAMODB_DYNAMODB_ITEM_H

#include "base/json_read.h"
#include "base/json_write.h"

/* Attribute values of DynamoDB: written straight into a request, read from an answer (spec 05
 * §9.4). An item, a key, the values of an expression and the inside of a map have one form, a JSON
 * object {"name":{"S":"text"},...}; here all of them are called items.
 * Owns:   nothing. Views of what was read point into the answer or into `scratch`.
 * Thread: any. Pure.
 * Errors: GB_UNAVAILABLE: the answer is no JSON of DynamoDB's form, or out of memory.
 *         GB_INVALID_CONFIG: an attribute is missing, of another type or out of range; the text
 *         names table, operation and attribute. Writers: the buffer's `failed`. */

enum {
    GB_DYNAMODB_ITEM_BYTES_MAX = 400 * 1024,
    GB_DYNAMODB_DIGITS_MAX = 38, /* of a number, without leading and trailing zeros */
    GB_DYNAMODB_DEPTH_MAX = 32   /* lists and maps in each other */
};

enum gb_dynamodb_type {
    GB_DYNAMODB_S = 0,
    GB_DYNAMODB_N,
    GB_DYNAMODB_B,
    GB_DYNAMODB_BOOL,
    GB_DYNAMODB_NULL,
    GB_DYNAMODB_SS,
    GB_DYNAMODB_NS,
    GB_DYNAMODB_BS,
    GB_DYNAMODB_L,
    GB_DYNAMODB_M,
};
const char *gb_dynamodb_type_name(enum gb_dynamodb_type type); /* "BOOL" */

/* --- writing: one attribute of the item that is open in `w`; `name` is NULL in a list --- */

void gb_dynamodb_w_s(struct gb_json_writer *w, const char *name, struct gb_bytes text);
void gb_dynamodb_w_s_c(struct gb_json_writer *w, const char *name, const char *text);
void gb_dynamodb_w_i64(struct gb_json_writer *w, const char *name, int64_t value);
void gb_dynamodb_w_u64(struct gb_json_writer *w, const char *name, uint64_t value);
void gb_dynamodb_w_n(struct gb_json_writer *w, const char *name, struct gb_bytes digits);
void gb_dynamodb_w_b(struct gb_json_writer *w, const char *name, struct gb_bytes bytes);
void gb_dynamodb_w_bool(struct gb_json_writer *w, const char *name, bool value);
void gb_dynamodb_w_null(struct gb_json_writer *w, const char *name);
/* DynamoDB knows no empty set: `count` 0 writes nothing. The texts must differ. */
void gb_dynamodb_w_ss(struct gb_json_writer *w, const char *name, const struct gb_bytes *texts,
                      size_t count);
void gb_dynamodb_w_map(struct gb_json_writer *w, const char *name);
void gb_dynamodb_w_map_end(struct gb_json_writer *w);
void gb_dynamodb_w_list(struct gb_json_writer *w, const char *name);
void gb_dynamodb_w_list_end(struct gb_json_writer *w);

/* --- reading one value after the other: items, the inside of maps and lists, sets --- */

struct gb_dynamodb_value {
    struct gb_bytes name; /* of an attribute; empty in lists and sets */
    enum gb_dynamodb_type type;
    /* S: the text. N: as written, it is a number of the JSON grammar. B: the bytes. SS, NS, BS, L,
     * M: JSON for a cursor of its own. */
    struct gb_bytes text;
    bool boolean; /* BOOL */
};
struct gb_dynamodb_cursor {
    struct gb_err err; /* why `next` was false; GB_OK at the end */
    /* private */
    struct gb_json_reader reader;
    struct gb_str *scratch;
    enum gb_dynamodb_type element; /* of a set */
    bool is_set, ended;
};
/* `type`: M for an item or the inside of a map, L, SS, NS or BS. Room for all that has to be
 * unescaped or decoded is made in `scratch` now, so that views stay when more is appended; cursors
 * over different parts of one item share its scratch, and none is read twice with the same. */
void gb_dynamodb_cursor_init(struct gb_dynamodb_cursor *c, enum gb_dynamodb_type type,
                             struct gb_bytes json, struct gb_str *scratch);
bool gb_dynamodb_next(struct gb_dynamodb_cursor *c, struct gb_dynamodb_value *out);

/* Items of a page: `json` is the array of an answer. False at the end, and for a malformed array
 * (which the client has refused before). */
struct gb_dynamodb_items {
    struct gb_json_reader reader; /* private */
    bool begun;
};
void gb_dynamodb_items_init(struct gb_dynamodb_items *i, struct gb_bytes json);
bool gb_dynamodb_items_next(struct gb_dynamodb_items *i, struct gb_bytes *item);

/* N exactly: no fraction, no exponent, in range. */
bool gb_dynamodb_parse_i64(struct gb_bytes digits, int64_t *out);
bool gb_dynamodb_parse_u64(struct gb_bytes digits, uint64_t *out);

/* --- reading the fields that are known, in one pass --- */

enum gb_dynamodb_field_kind {
    GB_DYNAMODB_FIELD_S,    /* struct gb_bytes */
    GB_DYNAMODB_FIELD_I64,  /* int64_t */
    GB_DYNAMODB_FIELD_U64,  /* uint64_t */
    GB_DYNAMODB_FIELD_N,    /* struct gb_bytes: the digits */
    GB_DYNAMODB_FIELD_B,    /* struct gb_bytes */
    GB_DYNAMODB_FIELD_BOOL, /* bool */
    GB_DYNAMODB_FIELD_SS,   /* struct gb_bytes: JSON for a cursor */
    GB_DYNAMODB_FIELD_L,    /* the same */
    GB_DYNAMODB_FIELD_M,    /* the same */
};
struct gb_dynamodb_field {
    const char *name;
    enum gb_dynamodb_field_kind kind;
    bool required;
    void *to;     /* of the kind's type; untouched when the attribute is absent */
    bool present; /* out */
};
/* Where an item came from, for error texts. */
struct gb_dynamodb_source {
    const char *table, *operation;
};
/* Attributes without a field are passed over. An error names the first that does not fit; the
 * others are read all the same, wherever they stand in the item. */
struct gb_err gb_dynamodb_item_read(const struct gb_dynamodb_source *from, struct gb_bytes item,
                                    struct gb_str *scratch, struct gb_dynamodb_field *fields,
                                    size_t count);

/* The bytes of an item as AWS counts them, for limits and capacity ("DynamoDB item sizes and
 * formats"): names and texts in UTF-8, binary as raw bytes, numbers a byte for two digits, before
 * and after the point, and one more (two when negative), lists and maps three and one for each
 * element. GB_UNAVAILABLE when `item` is none. */
struct gb_err gb_dynamodb_item_size(struct gb_bytes item, size_t *out);
/* Of a value that is no set, list or map, without its name. */
size_t gb_dynamodb_scalar_size(const struct gb_dynamodb_value *v);

#endif
