#include "domain/lease_cadence.h"

static int64_t written_or(int64_t written, int64_t other)
{
    return written > 0 ? written : other;
}

/* value * num / den rounded down for num <= den, without the product of the whole. */
static int64_t part(int64_t value, int64_t num, int64_t den)
{
    return value / den * num + value % den * num / den;
}

static int64_t span_of(const struct gb_lease_cadence *c)
{
    int64_t attempt;
    int64_t span;
    bool ok = gb_add_i64(c->renew_ns, c->jitter_ns / 2, &attempt) &&
              gb_add_i64(attempt, c->call_ns, &attempt) && gb_mul_i64(attempt, c->fails, &span);
    return ok ? span : GB_CADENCE_NO_SPAN;
}

static int64_t derived_renew(const struct gb_lease_cadence *c)
{
    int64_t attempt = part(c->ttl_ns, 3, 4) / c->fails;
    int64_t reserve = gb_min_i64(5 * GB_SEC, attempt / 2);
    return gb_max_i64(GB_MS, part(attempt - reserve, 8, 9));
}

/* Spec 06 §4.2. */
static void clamp(struct gb_lease_cadence *c)
{
    int64_t limit = part(c->ttl_ns, 9, 10) / c->fails;
    /* A limit below two milliseconds leaves no positive call timeout; it is refused anyway. */
    c->call_ns = gb_min_i64(c->call_ns, gb_max_i64(GB_MS, limit - GB_MS));
    int64_t room = limit - c->call_ns;
    if (c->renew_ns <= room) {
        c->jitter_ns = gb_min_i64(c->jitter_ns, 2 * (room - c->renew_ns));
    } else {
        c->jitter_ns = 0;
        c->renew_ns = gb_max_i64(GB_MS, room);
    }
    bool cut = c->renew_ns != c->asked_renew_ns || c->call_ns != c->asked_call_ns;
    c->fit = cut ? GB_CADENCE_CUT : GB_CADENCE_SHED;
    c->span_ns = span_of(c);
}

struct gb_lease_cadence gb_lease_cadence(const struct gb_lease_settings *written)
{
    bool ha = written->clustered && written->ttl_ns <= 0 && written->renew_ns <= 0;
    struct gb_lease_cadence c = {
        .ha_baseline = ha,
        .ttl_ns = written_or(written->ttl_ns, ha ? 45 * GB_SEC : 360 * GB_SEC),
        .fails = written_or(written->fails, 3),
        .grace_ns = written_or(written->grace_ns, ha ? 5 * GB_SEC : 15 * GB_SEC),
    };
    bool derived = !ha && written->renew_ns <= 0;
    c.renew_ns = ha ? 10 * GB_SEC : written_or(written->renew_ns, derived_renew(&c));
    c.jitter_ns = written_or(written->jitter_ns, ha ? GB_SEC : derived ? c.renew_ns / 4 : 0);
    int64_t call = gb_max_i64(GB_SEC, gb_min_i64(c.renew_ns / 2, 5 * GB_SEC));
    c.call_ns = written_or(written->call_ns, ha ? 3 * GB_SEC : call);
    c.asked_grace_ns = c.grace_ns;
    if (c.grace_ns >= c.ttl_ns) c.grace_ns = c.ttl_ns / 2;

    c.asked_renew_ns = c.renew_ns;
    c.asked_jitter_ns = c.jitter_ns;
    c.asked_call_ns = c.call_ns;
    c.span_ns = span_of(&c);
    c.asked_span_ns = c.span_ns;
    if (c.span_ns == GB_CADENCE_NO_SPAN || c.span_ns >= c.ttl_ns) clamp(&c);

    int64_t poll = gb_max_i64(GB_MS, gb_min_i64(gb_min_i64(c.renew_ns, c.ttl_ns / 4), 5 * GB_SEC));
    c.poll_ns = written_or(written->poll_ns, poll);
    return c;
}
