#include "base/err.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"

struct code_row {
    const char *name;
    enum gb_class class_;
};

static const struct code_row codes[GB_CODE_COUNT] = {[GB_OK] = {"OK", GB_CLASS_NONE},
                                                     [GB_CANCELLED] = {"CANCELLED", GB_CLASS_NONE},
#define CODE_ROW(name, class_suffix) [GB_##name] = {#name, GB_CLASS_##class_suffix},
                                                     GB_CODES(CODE_ROW)
#undef CODE_ROW
};

/* The longest prefix of text[0..size) that does not end inside a UTF-8 sequence. */
static size_t utf8_border(const char *text, size_t size)
{
    size_t lead = size;
    while (lead > 0 && size - lead < 3 && ((unsigned char)text[lead - 1] & 0xC0) == 0x80) lead--;
    if (lead == 0) return size;
    unsigned char first = (unsigned char)text[lead - 1];
    size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : first >= 0xC0 ? 2 : 1;
    return size - (lead - 1) < length ? lead - 1 : size;
}

/* Finishes a message after an snprintf that wanted `wanted` bytes. */
static void finish_message(char message[GB_ERR_MESSAGE_MAX], int wanted)
{
    if (wanted < 0) {
        message[0] = '\0';
    } else if (wanted >= GB_ERR_MESSAGE_MAX) {
        message[utf8_border(message, GB_ERR_MESSAGE_MAX - 1)] = '\0';
    }
}

struct gb_err gb_err_v(enum gb_code code, const char *format, va_list args)
{
    struct gb_err err = {.code = code, .class_ = gb_code_class(code)};
    finish_message(err.message, vsnprintf(err.message, sizeof err.message, format, args));
    return err;
}

struct gb_err gb_err(enum gb_code code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    struct gb_err err = gb_err_v(code, format, args);
    va_end(args);
    return err;
}

struct gb_err gb_err_in(struct gb_err err, const char *format, ...)
{
    char context[GB_ERR_MESSAGE_MAX];
    va_list args;
    va_start(args, format);
    finish_message(context, vsnprintf(context, sizeof context, format, args));
    va_end(args);

    struct gb_err out = err;
    int wanted = snprintf(out.message, sizeof out.message, "%s: %s", context, err.message);
    finish_message(out.message, wanted);
    return out;
}

struct gb_err gb_err_no_memory(const char *what)
{
    return gb_err(GB_UNAVAILABLE, "out of memory while building %s", what);
}

const char *gb_code_name(enum gb_code code)
{
    GB_ASSERT((unsigned)code < GB_CODE_COUNT);
    return codes[code].name;
}

enum gb_class gb_code_class(enum gb_code code)
{
    GB_ASSERT((unsigned)code < GB_CODE_COUNT);
    return codes[code].class_;
}

const char *gb_class_name(enum gb_class class_)
{
    switch (class_) {
    case GB_CLASS_TRANSIENT:
        return "transient";
    case GB_CLASS_PERMANENT:
        return "permanent";
    case GB_CLASS_REJECTED:
        return "rejected";
    case GB_CLASS_EXPIRED:
        return "expired";
    case GB_CLASS_NONE:
        break;
    }
    return "unknown";
}

bool gb_code_parse(const char *name, enum gb_code *out)
{
    for (unsigned code = 0; code < GB_CODE_COUNT; code++) {
        if (strcmp(codes[code].name, name) == 0) {
            *out = (enum gb_code)code;
            return true;
        }
    }
    return false;
}

bool gb_err_is_transient(const struct gb_err *err)
{
    if (err->code == GB_OK || err->code == GB_CANCELLED) return false;
    return err->class_ == GB_CLASS_TRANSIENT || err->class_ == GB_CLASS_NONE;
}
