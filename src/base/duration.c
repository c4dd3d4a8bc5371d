#include "base/duration.h"

#include <stdio.h>

#include "base/str.h"

enum { SHOWN_MAX = 52, FRACTION_DIGITS_MAX = 18 };

/* The magnitude of INT64_MIN: one more than that of the largest duration. */
#define MAGNITUDE_MAX ((uint64_t)INT64_MAX + 1)

/* f * unit reaches 10^18 * 3.6 * 10^12, which no standard type holds. */
__extension__ typedef unsigned __int128 wide;

/* "ms" before "m": the first name that fits is taken. */
static const struct unit {
    char name[3];
    size_t size;
    uint64_t ns;
} units[] = {
    {"ns", 2, 1},
    {"us", 2, 1000},
    {"ms", 2, (uint64_t)GB_MS},
    {"s", 1, (uint64_t)GB_SEC},
    {"m", 1, (uint64_t)GB_MINUTE},
    {"h", 1, (uint64_t)GB_HOUR},
};

enum verdict { VERDICT_OK, VERDICT_MALFORMED, VERDICT_NO_UNIT, VERDICT_TOO_LONG };

static bool is_digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}

static const struct unit *unit_at(struct gb_bytes text, size_t at)
{
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (text.size - at >= units[i].size &&
            memcmp(text.data + at, units[i].name, units[i].size) == 0) {
            return &units[i];
        }
    }
    return NULL;
}

/* Adds one <decimal><unit> at `*at` to `*sum`. Digits of the fraction past 10^-18 can't matter. */
static enum verdict parse_part(struct gb_bytes text, size_t *at, uint64_t *sum)
{
    size_t i = *at;
    size_t digits = 0;
    uint64_t whole = 0;
    for (; i < text.size && is_digit(text.data[i]); i++, digits++) {
        /* Saturates, so that a missing unit is still reported as such. */
        uint64_t digit = (uint64_t)(text.data[i] - '0');
        whole = whole > MAGNITUDE_MAX / 10 ? UINT64_MAX : whole * 10 + digit;
    }
    uint64_t fraction = 0;
    uint64_t scale = 1;
    if (i < text.size && text.data[i] == '.') {
        size_t start = ++i;
        for (; i < text.size && is_digit(text.data[i]); i++, digits++) {
            if (i - start >= FRACTION_DIGITS_MAX) continue;
            fraction = fraction * 10 + (uint64_t)(text.data[i] - '0');
            scale *= 10;
        }
    }
    if (digits == 0) return VERDICT_MALFORMED;
    if (i == text.size) return VERDICT_NO_UNIT;
    const struct unit *unit = unit_at(text, i);
    if (unit == NULL) return VERDICT_MALFORMED;
    wide value = (wide)whole * unit->ns + (wide)fraction * unit->ns / scale + *sum;
    if (value > MAGNITUDE_MAX) return VERDICT_TOO_LONG;
    *sum = (uint64_t)value;
    *at = i + unit->size;
    return VERDICT_OK;
}

static enum verdict parse(struct gb_bytes text, int64_t *out_ns)
{
    size_t at = 0;
    bool negative = false;
    if (text.size > 0 && (text.data[0] == '-' || text.data[0] == '+')) {
        negative = text.data[0] == '-';
        at = 1;
    }
    if (text.size == at) return VERDICT_MALFORMED;
    uint64_t sum = 0;
    /* "0" is the one number that needs no unit (spec 01 §2). */
    if (text.size - at == 1 && text.data[at] == '0') at++;
    while (at < text.size) {
        enum verdict verdict = parse_part(text, &at, &sum);
        if (verdict != VERDICT_OK) return verdict;
    }
    if (!negative && sum == MAGNITUDE_MAX) return VERDICT_TOO_LONG;
    if (!negative) {
        *out_ns = (int64_t)sum;
    } else {
        *out_ns = sum == MAGNITUDE_MAX ? INT64_MIN : -(int64_t)sum;
    }
    return VERDICT_OK;
}

struct gb_err gb_duration_parse(struct gb_bytes text, int64_t *out_ns)
{
    char shown[SHOWN_MAX];
    int64_t ns = 0;
    enum verdict verdict = parse(text, &ns);
    if (verdict == VERDICT_OK) {
        *out_ns = ns;
        return gb_ok();
    }
    gb_bytes_show(text, shown, sizeof shown);
    if (verdict == VERDICT_NO_UNIT) {
        return gb_err(GB_INVALID_CONFIG,
                      "invalid duration \"%s\": a number needs a unit (ns, us, ms, s, m, h), for "
                      "example \"30s\"",
                      shown);
    }
    if (verdict == VERDICT_TOO_LONG) {
        return gb_err(GB_INVALID_CONFIG,
                      "invalid duration \"%s\": the longest is 2562047h47m16.854775807s, use a "
                      "shorter one",
                      shown);
    }
    return gb_err(GB_INVALID_CONFIG,
                  "invalid duration \"%s\": write numbers with a unit (ns, us, ms, s, m, h), for "
                  "example \"30s\" or \"1m30s\"",
                  shown);
}

/* Prints magnitude / unit with the fraction it needs, without trailing zeros. */
static int print_decimal(char *out, size_t room, uint64_t magnitude, uint64_t unit,
                         const char *name)
{
    uint64_t whole = magnitude / unit;
    uint64_t rest = magnitude % unit;
    if (rest == 0) return snprintf(out, room, "%llu%s", (unsigned long long)whole, name);
    int digits = 0;
    for (uint64_t scale = unit; scale > 1; scale /= 10) digits++;
    for (; rest % 10 == 0; rest /= 10) digits--;
    return snprintf(out, room, "%llu.%0*llu%s", (unsigned long long)whole, digits,
                    (unsigned long long)rest, name);
}

void gb_duration_print(int64_t ns, char out[GB_DURATION_TEXT_MAX])
{
    /* Negated as unsigned: -INT64_MIN has no signed value. */
    uint64_t left = ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns;
    const uint64_t second = (uint64_t)GB_SEC;
    size_t at = 0;
    if (ns < 0) out[at++] = '-';
    if (left > 0 && left < second) {
        const struct unit *unit = left < 1000 ? &units[0] : left < 1000000 ? &units[1] : &units[2];
        (void)print_decimal(out + at, GB_DURATION_TEXT_MAX - at, left, unit->ns, unit->name);
        return;
    }
    uint64_t hours = left / (uint64_t)GB_HOUR;
    uint64_t minutes = left / (uint64_t)GB_MINUTE;
    size_t room = GB_DURATION_TEXT_MAX;
    if (hours > 0) {
        at += (size_t)snprintf(out + at, room - at, "%lluh", (unsigned long long)hours);
    }
    if (minutes > 0) {
        at += (size_t)snprintf(out + at, room - at, "%um", (unsigned)(minutes % 60));
    }
    (void)print_decimal(out + at, room - at, left % (uint64_t)GB_MINUTE, second, "s");
}

bool gb_add_i64(int64_t a, int64_t b, int64_t *out)
{
    int64_t sum = 0;
    if (__builtin_add_overflow(a, b, &sum)) return false;
    *out = sum;
    return true;
}

bool gb_mul_i64(int64_t a, int64_t b, int64_t *out)
{
    int64_t product = 0;
    if (__builtin_mul_overflow(a, b, &product)) return false;
    *out = product;
    return true;
}

int64_t gb_add_sat_i64(int64_t a, int64_t b)
{
    int64_t sum = 0;
    if (gb_add_i64(a, b, &sum)) return sum;
    return a < 0 ? INT64_MIN : INT64_MAX;
}

int64_t gb_mul_sat_i64(int64_t a, int64_t b)
{
    int64_t product = 0;
    if (gb_mul_i64(a, b, &product)) return product;
    return (a < 0) != (b < 0) ? INT64_MIN : INT64_MAX;
}
