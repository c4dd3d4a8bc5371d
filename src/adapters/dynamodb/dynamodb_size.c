#include "adapters/dynamodb/dynamodb_item.h"

enum { CONTAINER_BYTES = 3, ELEMENT_BYTES = 1 };

static bool is_digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}

/* The power of ten behind an 'e'; what is too long to matter is cut. */
static int64_t exponent_of(struct gb_bytes digits, size_t at)
{
    int64_t value = 0;
    if (at >= digits.size) return 0;
    bool negative = digits.data[++at] == '-';
    for (; at < digits.size && value < 100000; at++) {
        if (is_digit(digits.data[at])) value = value * 10 + (digits.data[at] - '0');
    }
    return negative ? -value : value;
}

/* A byte for two significant digits, those before and those after the point each for themselves,
 * one more, and one for the sign. */
static size_t number_bytes(struct gb_bytes digits)
{
    int64_t seen = 0;            /* digits so far */
    int64_t first = 0, last = 0; /* places of the first and last one that is not 0; 1-based */
    int64_t point = -1;          /* digits before the point */
    size_t i = 0;
    for (; i < digits.size && digits.data[i] != 'e' && digits.data[i] != 'E'; i++) {
        if (digits.data[i] == '.') point = seen;
        if (!is_digit(digits.data[i])) continue;
        seen++;
        if (digits.data[i] == '0') continue;
        if (first == 0) first = seen;
        last = seen;
    }
    if (first == 0) return 1;
    if (point < 0) point = seen;
    point += exponent_of(digits, i);
    int64_t before = point < first - 1 ? 0 : (point > last ? last : point) - first + 1;
    int64_t after = last - first + 1 - before;
    return (size_t)((before + 1) / 2 + (after + 1) / 2 + 1 + (digits.data[0] == '-' ? 1 : 0));
}

size_t gb_dynamodb_scalar_size(const struct gb_dynamodb_value *v)
{
    if (v->type == GB_DYNAMODB_N) return number_bytes(v->text);
    return v->type == GB_DYNAMODB_S || v->type == GB_DYNAMODB_B ? v->text.size : 1;
}

struct walk {
    struct gb_str scratch;
    struct gb_dynamodb_cursor open[GB_DYNAMODB_DEPTH_MAX];
    size_t depth;
    size_t bytes;
    bool too_deep;
};

static bool is_container(enum gb_dynamodb_type type)
{
    return type != GB_DYNAMODB_S && type != GB_DYNAMODB_N && type != GB_DYNAMODB_B &&
           type != GB_DYNAMODB_BOOL && type != GB_DYNAMODB_NULL;
}

static void enter(struct walk *k, const struct gb_dynamodb_value *v)
{
    if (v->type == GB_DYNAMODB_L || v->type == GB_DYNAMODB_M) k->bytes += CONTAINER_BYTES;
    k->too_deep = k->depth == GB_DYNAMODB_DEPTH_MAX;
    if (!k->too_deep) gb_dynamodb_cursor_init(&k->open[k->depth++], v->type, v->text, &k->scratch);
}

static void count(struct walk *k, const struct gb_dynamodb_value *v)
{
    /* The elements of sets are scalars without overhead, those of the item itself, too. */
    if (k->depth > 1 && !k->open[k->depth - 1].is_set) k->bytes += ELEMENT_BYTES;
    k->bytes += v->name.size;
    if (is_container(v->type)) {
        enter(k, v);
    } else {
        k->bytes += gb_dynamodb_scalar_size(v);
    }
}

struct gb_err gb_dynamodb_item_size(struct gb_bytes item, size_t *out)
{
    struct walk k = {0};
    struct gb_dynamodb_value v;
    struct gb_err err = gb_ok();
    gb_dynamodb_cursor_init(&k.open[k.depth++], GB_DYNAMODB_M, item, &k.scratch);
    while (k.depth > 0 && !gb_failed(err) && !k.too_deep) {
        struct gb_dynamodb_cursor *c = &k.open[k.depth - 1];
        if (gb_dynamodb_next(c, &v)) {
            count(&k, &v);
        } else {
            err = c->err;
            k.depth--;
        }
    }
    gb_str_deinit(&k.scratch);
    if (k.too_deep) {
        err = gb_err(GB_UNAVAILABLE, "an item is nested deeper than %d levels",
                     GB_DYNAMODB_DEPTH_MAX);
    }
    if (!gb_failed(err)) *out = k.bytes;
    return err;
}
