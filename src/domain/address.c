#include "domain/address.h"

enum { NAME_SHOWN_MAX = 100 };

/* Where `c` is in `text` from `from` on, or its size. */
static size_t find_char(struct gb_bytes text, size_t from, char c)
{
    if (from >= text.size) return text.size;
    const uint8_t *p = memchr(text.data + from, c, text.size - from);
    return p == NULL ? text.size : (size_t)(p - text.data);
}

bool gb_address_has_placeholders(struct gb_bytes address)
{
    return find_char(address, 0, '{') < address.size;
}

struct gb_err gb_address_check(struct gb_bytes address)
{
    size_t at = 0;
    while (at < address.size) {
        size_t open = find_char(address, at, '{');
        size_t stray = find_char(address, at, '}');
        if (stray < open) {
            return gb_err(GB_INVALID_CONFIG, "'}' at byte %zu closes no '{'", stray);
        }
        if (open == address.size) break;
        size_t close = stray;
        if (close == address.size) {
            return gb_err(GB_INVALID_CONFIG, "'{' at byte %zu is not closed", open);
        }
        if (find_char(address, open + 1, '{') < close) {
            return gb_err(GB_INVALID_CONFIG, "'{' at byte %zu holds another '{'", open);
        }
        if (close == open + 1) {
            return gb_err(GB_INVALID_CONFIG, "'{}' at byte %zu names no header", open);
        }
        at = close + 1;
    }
    return gb_ok();
}

static struct gb_err missing(struct gb_bytes name)
{
    char shown[NAME_SHOWN_MAX];
    gb_bytes_show(name, shown, sizeof shown);
    return gb_err(GB_ADDRESS_TEMPLATE,
                  "the address needs the header %s, which the message has not as a text that is "
                  "not empty",
                  shown);
}

struct gb_err gb_address_expand(struct gb_bytes address, const struct gb_envelope *e,
                                struct gb_str *out)
{
    size_t size_before = out->size;
    size_t at = 0;
    while (at < address.size) {
        size_t open = find_char(address, at, '{');
        gb_str_append(out, gb_bytes(address.data + at, open - at));
        if (open == address.size) break;
        size_t close = find_char(address, open, '}');
        if (close == address.size) {
            return gb_err(GB_ADDRESS_TEMPLATE, "'{' at byte %zu of the address is not closed",
                          open);
        }
        struct gb_bytes name = gb_bytes(address.data + open + 1, close - open - 1);
        const struct gb_value *v = gb_envelope_find(e, name);
        if (v == NULL || v->kind != GB_VALUE_TEXT || v->text.size == 0) return missing(name);
        gb_str_append(out, v->text);
        at = close + 1;
    }
    struct gb_err err = gb_str_check(out, "address");
    if (gb_failed(err)) return err;
    if (out->size == size_before) return gb_err(GB_ADDRESS_TEMPLATE, "the address is empty");
    return gb_ok();
}
