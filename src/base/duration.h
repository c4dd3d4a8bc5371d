#ifndef GB_BASE_DURATION_H
#define GB_BASE_DURATION_H

#include "base/bytes.h"
#include "base/err.h"

/* Durations of the document (spec 01 §2): signed 64-bit nanoseconds; one or more <decimal><unit>
 * with units ns us ms s m h, optional sign, or "0". Also checked arithmetic and RFC 3339 times.
 * Owns:   nothing.
 * Thread: any. Pure.
 * Errors: GB_INVALID_CONFIG `invalid duration "x"` with a hint for a bare number; overflow is
 *         invalid. */

#define GB_MS INT64_C(1000000)
#define GB_SEC INT64_C(1000000000)
#define GB_MINUTE (60 * GB_SEC)
#define GB_HOUR (60 * GB_MINUTE)

enum { GB_DURATION_TEXT_MAX = 40, GB_TIME_TEXT_MAX = 40 };

struct gb_err gb_duration_parse(struct gb_bytes text, int64_t *out_ns);
/* Printing form: 1m30s, 2h0m0s, 500ms, 1.5s, 0s. */
void gb_duration_print(int64_t ns, char out[GB_DURATION_TEXT_MAX]);

/* Saturating and checked helpers; checked ones answer false on overflow. */
bool gb_add_i64(int64_t a, int64_t b, int64_t *out);
bool gb_mul_i64(int64_t a, int64_t b, int64_t *out);
int64_t gb_add_sat_i64(int64_t a, int64_t b);
int64_t gb_mul_sat_i64(int64_t a, int64_t b);

static inline int64_t gb_min_i64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}
static inline int64_t gb_max_i64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* RFC 3339 UTC with milliseconds: 2026-12-01T10:00:00.000Z, and parsing of RFC 3339 (any offset,
 * further digits of the fraction are dropped) and of HTTP dates in the one form that may be sent
 * ("Tue, 01 Dec 2026 10:00:00 GMT"; the name of the day is not compared with the date). Times are
 * epoch milliseconds; one outside the years 0000 to 9999 is printed as the nearest inside. */
void gb_time_print(int64_t epoch_ms, char out[GB_TIME_TEXT_MAX]);
bool gb_time_parse(struct gb_bytes text, int64_t *out_epoch_ms);
bool gb_http_date_parse(struct gb_bytes text, int64_t *out_epoch_ms);
/* "20261201T100000Z" (SigV4). */
void gb_time_print_basic(int64_t epoch_ms, char out[GB_TIME_TEXT_MAX]);

#endif
