#include "blueprint/cadence.h"

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Items 2 and 3: what is not written follows from the TTL. */
static void derive(struct gb_cadence *c, const struct gb_bp_route_session *s)
{
    if (c->renew_ns == 0) {
        /* ttl * 3 / (fails * 4), without overflow for a TTL of years */
        int64_t a = gb_mul_sat_i64(c->ttl_ns / c->fails, 3) / 4;
        int64_t exact;
        if (gb_mul_i64(c->ttl_ns, 3, &exact)) a = exact / (c->fails * 4);
        int64_t r = least(5 * GB_SEC, a / 2);
        c->renew_ns = most(gb_mul_sat_i64(a - r, 8) / 9, GB_MS);
        if (!s->lease_renew_jitter.given) c->jitter_ns = c->renew_ns / 4;
    }
    if (c->call_ns == 0) c->call_ns = most(least(c->renew_ns / 2, 5 * GB_SEC), GB_SEC);
}

/* Item 4. */
static void fit(struct gb_cadence *c)
{
    int64_t fixed = gb_add_sat_i64(c->renew_ns, c->call_ns);
    c->span_ns = gb_mul_sat_i64(gb_add_sat_i64(fixed, c->jitter_ns / 2), c->fails);
    if (c->span_ns < c->ttl_ns) return;
    int64_t budget = c->ttl_ns / 10 * 9 + c->ttl_ns % 10 * 9 / 10;
    int64_t rest = budget / c->fails - fixed;
    if (rest < 0) {
        c->cut = true;
        return;
    }
    c->jitter_ns = least(c->jitter_ns, gb_mul_sat_i64(rest, 2));
    c->trimmed = true;
}

struct gb_cadence gb_blueprint_cadence(const struct gb_bp_route_session *session, bool clustered)
{
    struct gb_cadence c = {.fails = 3};
    bool baseline = clustered && !session->lease_ttl.given && !session->renew_interval.given;
    c.ttl_ns = baseline ? 45 * GB_SEC : 360 * GB_SEC;
    c.grace_ns = baseline ? 5 * GB_SEC : 15 * GB_SEC;
    if (baseline) {
        c.renew_ns = 10 * GB_SEC;
        c.jitter_ns = GB_SEC;
        c.call_ns = 3 * GB_SEC;
    }
    if (session->lease_ttl.given) c.ttl_ns = session->lease_ttl.ns;
    if (session->renew_interval.given) c.renew_ns = session->renew_interval.ns;
    if (session->lease_renew_jitter.ns > 0) c.jitter_ns = session->lease_renew_jitter.ns;
    if (session->renew_call_timeout.ns > 0) c.call_ns = session->renew_call_timeout.ns;
    if (session->step_down_grace.ns > 0) c.grace_ns = session->step_down_grace.ns;
    if (session->max_renew_fails.given) c.fails = session->max_renew_fails.value;
    derive(&c, session);
    fit(&c);
    c.poll_ns = session->acquire_poll_interval.ns;
    if (c.poll_ns == 0) {
        c.poll_ns = most(least(least(c.renew_ns, c.ttl_ns / 4), 5 * GB_SEC), GB_MS);
    }
    return c;
}
