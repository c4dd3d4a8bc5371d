#include "domain/address.h"

#include <string.h>

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
    bool open = false;
    size_t opened_at = 0;
    for (size_t i = 0; i < address.size; i++) {
        char c = (char)address.data[i];
        if (c == '{') {
            if (open)
                return gb_err(GB_INVALID_CONFIG, "address has a { inside the { at byte %zu",
                              opened_at);
            open = true;
            opened_at = i;
        } else if (c == '}') {
            if (!open)
                return gb_err(GB_INVALID_CONFIG, "address has a } without a { at byte %zu", i);
            if (i == opened_at + 1)
                return gb_err(GB_INVALID_CONFIG,
                              "address has an empty {} at byte %zu; name a header in it",
                              opened_at);
            open = false;
        }
    }
    if (open)
        return gb_err(GB_INVALID_CONFIG, "address has a { without a } at byte %zu", opened_at);
    return gb_ok();
}

static const struct gb_value *find_header(const struct gb_envelope *e, struct gb_bytes name)
{
    for (size_t i = 0; i < e->header_count; i++)
        if (gb_bytes_equal(e->headers[i].name, name)) return &e->headers[i].value;
    return NULL;
}

struct gb_err gb_address_expand(struct gb_bytes address, const struct gb_envelope *e,
                                struct gb_str *out)
{
    size_t at = 0;
    while (at < address.size) {
        size_t open = find_char(address, at, '{');
        gb_str_append(out, gb_bytes(address.data + at, open - at));
        if (open == address.size) break;
        size_t close = find_char(address, open, '}');
        if (close == address.size)
            return gb_err(GB_ADDRESS_TEMPLATE, "address template has a { without a }");
        struct gb_bytes name = gb_bytes(address.data + open + 1, close - open - 1);
        const struct gb_value *v = find_header(e, name);
        if (v == NULL || v->kind != GB_VALUE_TEXT || v->text.size == 0)
            return gb_err(GB_ADDRESS_TEMPLATE,
                          "address template needs the text header %.*s, which the message lacks",
                          (int)(name.size > 100 ? 100 : name.size), (const char *)name.data);
        gb_str_append(out, v->text);
        at = close + 1;
    }
    struct gb_err err = gb_str_check(out, "address");
    if (gb_failed(err)) return err;
    return out->size == 0 ? gb_err(GB_ADDRESS_TEMPLATE, "address template gives an empty address")
                          : gb_ok();
}
