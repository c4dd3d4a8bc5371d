#include "base/duration.h"

/* Times without the C library's: no time zone, no locale, no limits of time_t (rules of core, which
 * may not use time.h). The calendar is the proleptic Gregorian one, years 0000 to 9999. */

enum { DAY_MS = 86400000, HOUR_MS = 3600000, MINUTE_MS = 60000 };
enum { ZONE_MINUTES = 60, ERA_DAYS = 146097 };

/* 0000-01-01T00:00:00.000Z and 9999-12-31T23:59:59.999Z. */
#define EPOCH_MS_MIN INT64_C(-62167219200000)
#define EPOCH_MS_MAX INT64_C(253402300799999)

struct civil {
    unsigned year, month, day, hour, minute, second, ms;
};

struct cursor {
    const uint8_t *pos, *end;
    bool failed; /* sticky: the caller checks once */
};

static const char months[12][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                   "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
static const char weekdays[7][4] = {"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"};

/* Days since 1970-01-01. Years start in March, so that the leap day is the last of its year. */
static int64_t days_of(const struct civil *c)
{
    int64_t year = (int64_t)c->year - (c->month <= 2 ? 1 : 0);
    int64_t era = (year >= 0 ? year : year - 399) / 400;
    int64_t year_of_era = year - era * 400;
    int64_t month = (c->month + 9) % 12;
    int64_t day_of_year = (153 * month + 2) / 5 + c->day - 1;
    int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    return era * ERA_DAYS + day_of_era - 719468;
}

static struct civil civil_of(int64_t epoch_ms)
{
    if (epoch_ms < EPOCH_MS_MIN) epoch_ms = EPOCH_MS_MIN;
    if (epoch_ms > EPOCH_MS_MAX) epoch_ms = EPOCH_MS_MAX;
    int64_t days = epoch_ms / DAY_MS;
    int64_t of_day = epoch_ms % DAY_MS;
    if (of_day < 0) {
        of_day += DAY_MS;
        days--;
    }
    days += 719468; /* since 0000-03-01 */
    int64_t era = (days >= 0 ? days : days - (ERA_DAYS - 1)) / ERA_DAYS;
    int64_t day_of_era = days - era * ERA_DAYS;
    int64_t year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / (ERA_DAYS - 1)) / 365;
    int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int64_t month = (5 * day_of_year + 2) / 153;
    struct civil c = {
        .month = (unsigned)(month < 10 ? month + 3 : month - 9),
        .day = (unsigned)(day_of_year - (153 * month + 2) / 5 + 1),
        .hour = (unsigned)(of_day / HOUR_MS),
        .minute = (unsigned)(of_day / MINUTE_MS % 60),
        .second = (unsigned)(of_day / 1000 % 60),
        .ms = (unsigned)(of_day % 1000),
    };
    c.year = (unsigned)(year_of_era + era * 400 + (c.month <= 2 ? 1 : 0));
    return c;
}

static unsigned month_days(unsigned year, unsigned month)
{
    static const uint8_t days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return month == 2 && leap ? 29 : days[month - 1];
}

/* False for a date or a time that does not exist. Second 60 is a leap second, which RFC 3339 §5.6
 * allows; it reads as the first of the next minute. */
static bool epoch_of(const struct civil *c, int64_t *out_epoch_ms)
{
    if (c->month < 1 || c->month > 12 || c->day < 1) return false;
    if (c->day > month_days(c->year, c->month)) return false;
    if (c->hour > 23 || c->minute > 59 || c->second > 60) return false;
    int64_t of_day = (int64_t)c->hour * HOUR_MS + (int64_t)c->minute * MINUTE_MS +
                     (int64_t)c->second * 1000 + c->ms;
    *out_epoch_ms = days_of(c) * DAY_MS + of_day;
    return true;
}

static char *put_digits(char *at, unsigned value, unsigned digits)
{
    for (unsigned i = digits; i > 0; i--) {
        at[i - 1] = (char)('0' + value % 10);
        value /= 10;
    }
    return at + digits;
}

static char *put_char(char *at, char c)
{
    *at = c;
    return at + 1;
}

void gb_time_print(int64_t epoch_ms, char out[GB_TIME_TEXT_MAX])
{
    struct civil c = civil_of(epoch_ms);
    char *at = put_char(put_digits(out, c.year, 4), '-');
    at = put_char(put_digits(at, c.month, 2), '-');
    at = put_char(put_digits(at, c.day, 2), 'T');
    at = put_char(put_digits(at, c.hour, 2), ':');
    at = put_char(put_digits(at, c.minute, 2), ':');
    at = put_char(put_digits(at, c.second, 2), '.');
    at = put_char(put_digits(at, c.ms, 3), 'Z');
    *at = '\0';
}

void gb_time_print_basic(int64_t epoch_ms, char out[GB_TIME_TEXT_MAX])
{
    struct civil c = civil_of(epoch_ms);
    char *at = put_digits(put_digits(put_digits(out, c.year, 4), c.month, 2), c.day, 2);
    at = put_char(at, 'T');
    at = put_digits(put_digits(put_digits(at, c.hour, 2), c.minute, 2), c.second, 2);
    at = put_char(at, 'Z');
    *at = '\0';
}

static bool at_digit(const struct cursor *c)
{
    return c->pos < c->end && *c->pos >= '0' && *c->pos <= '9';
}

static unsigned read_digits(struct cursor *c, unsigned digits)
{
    unsigned value = 0;
    for (unsigned i = 0; i < digits; i++) {
        if (!at_digit(c)) {
            c->failed = true;
            return 0;
        }
        value = value * 10 + (unsigned)(*c->pos++ - '0');
    }
    return value;
}

/* Passes over any one of `set`; answers which, NUL when none is there. */
static char read_one_of(struct cursor *c, const char *set)
{
    if (c->pos < c->end && *c->pos != '\0' && strchr(set, *c->pos) != NULL) {
        return (char)*c->pos++;
    }
    c->failed = true;
    return '\0';
}

/* Answers the index of the name found, 0 when none is. */
static unsigned read_name(struct cursor *c, const char names[][4], unsigned count)
{
    for (unsigned i = 0; i < count && c->end - c->pos >= 3; i++) {
        if (memcmp(c->pos, names[i], 3) != 0) continue;
        c->pos += 3;
        return i;
    }
    c->failed = true;
    return 0;
}

static unsigned read_fraction_ms(struct cursor *c)
{
    if (c->pos == c->end || *c->pos != '.') return 0;
    c->pos++;
    if (!at_digit(c)) c->failed = true;
    unsigned ms = 0;
    for (unsigned weight = 100; at_digit(c); weight /= 10) {
        ms += weight * (unsigned)(*c->pos++ - '0');
    }
    return ms;
}

/* Minutes east of UTC. */
static int read_zone(struct cursor *c)
{
    char sign = read_one_of(c, "Zz+-");
    if (sign != '+' && sign != '-') return 0;
    unsigned hours = read_digits(c, 2);
    (void)read_one_of(c, ":");
    unsigned minutes = read_digits(c, 2);
    if (hours > 23 || minutes > 59) c->failed = true;
    int east = (int)(hours * ZONE_MINUTES + minutes);
    return sign == '-' ? -east : east;
}

static void read_clock(struct cursor *c, struct civil *civil)
{
    civil->hour = read_digits(c, 2);
    (void)read_one_of(c, ":");
    civil->minute = read_digits(c, 2);
    (void)read_one_of(c, ":");
    civil->second = read_digits(c, 2);
}

bool gb_time_parse(struct gb_bytes text, int64_t *out_epoch_ms)
{
    if (text.size == 0) return false;
    struct cursor c = {text.data, text.data + text.size, false};
    struct civil civil = {0};
    civil.year = read_digits(&c, 4);
    (void)read_one_of(&c, "-");
    civil.month = read_digits(&c, 2);
    (void)read_one_of(&c, "-");
    civil.day = read_digits(&c, 2);
    (void)read_one_of(&c, "Tt");
    read_clock(&c, &civil);
    civil.ms = read_fraction_ms(&c);
    int zone = read_zone(&c);
    int64_t local = 0;
    if (c.failed || c.pos != c.end || !epoch_of(&civil, &local)) return false;
    *out_epoch_ms = local - (int64_t)zone * MINUTE_MS;
    return true;
}

bool gb_http_date_parse(struct gb_bytes text, int64_t *out_epoch_ms)
{
    if (text.size == 0) return false;
    struct cursor c = {text.data, text.data + text.size, false};
    struct civil civil = {0};
    (void)read_name(&c, weekdays, 7);
    (void)read_one_of(&c, ",");
    (void)read_one_of(&c, " ");
    civil.day = read_digits(&c, 2);
    (void)read_one_of(&c, " ");
    civil.month = read_name(&c, months, 12) + 1;
    (void)read_one_of(&c, " ");
    civil.year = read_digits(&c, 4);
    (void)read_one_of(&c, " ");
    read_clock(&c, &civil);
    if (c.failed || c.end - c.pos != 4 || memcmp(c.pos, " GMT", 4) != 0) return false;
    return epoch_of(&civil, out_epoch_ms);
}
