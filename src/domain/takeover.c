#include "domain/takeover.h"

#include <string.h>

#include "base/duration.h"

void gb_takeover_forget(struct gb_takeover *t)
{
    *t = (struct gb_takeover){0};
}

static bool is_about(const struct gb_lease_evidence *e, const char *fingerprint)
{
    return e->generation > 0 && gb_bytes_equal_c(e->fingerprint, fingerprint);
}

/* Exactly this row with exactly this evidence was seen before. */
static bool matches(const struct gb_takeover *t, const struct gb_lease_evidence *e,
                    const char *fingerprint)
{
    return t->known && strcmp(t->fingerprint, fingerprint) == 0 && t->elapsed_ns == e->elapsed_ns &&
           t->generation == e->generation;
}

static void remember(struct gb_takeover *t, const struct gb_takeover_verdict *v, uint64_t at_ns)
{
    t->known = true;
    memcpy(t->fingerprint, v->fingerprint, sizeof t->fingerprint);
    t->elapsed_ns = v->elapsed_ns;
    t->generation = v->generation;
    t->at_ns = at_ns;
}

/* The generation that evidence begins with where there is none. Not 1: a change of the row removes
 * evidence, and a renewal that was sent twice can bring an earlier row back. Evidence that begins
 * anew would then look like what another observer remembers, who would count the time of the
 * renewal between as unchanged (tests/model, GENERATION). No two begin with the same number: no
 * other process has this token, and this one's clock does not stand still. */
static uint64_t first_generation(struct gb_bytes owner, uint64_t answered_ns)
{
    uint8_t instant[8], digest[GB_SHA256_SIZE];
    uint64_t generation = 1;
    gb_put_u64(instant, answered_ns);
    const struct gb_bytes parts[] = {owner, gb_bytes(instant, sizeof instant)};
    gb_sha256_parts(parts, sizeof parts / sizeof parts[0], 4, digest);
    for (size_t i = 0; i < 6; i++) generation += (uint64_t)digest[i] << (8 * i);
    return generation; /* at most 2^48: it can rise for ever */
}

/* Evidence for the row as it is, `elapsed_ns` long. */
static struct gb_err observe(struct gb_takeover *t, const struct gb_lease_row *row,
                             int64_t elapsed_ns, struct gb_takeover_verdict *v)
{
    if (row->evidence.generation >= GB_LEASE_VERSION_MAX) {
        gb_takeover_forget(t);
        return gb_err(GB_INVALID_CONFIG,
                      "lease %.*s: takeover_observation_generation can't rise "
                      "any more; let its owner renew or release it",
                      (int)row->key.size, (const char *)row->key.data);
    }
    v->step = GB_TAKEOVER_OBSERVE;
    v->elapsed_ns = elapsed_ns;
    v->generation = row->evidence.generation + 1;
    v->then_seize = elapsed_ns >= v->required_ns;
    return gb_ok();
}

struct gb_err gb_takeover_judge(struct gb_takeover *t, const struct gb_lease_row *row,
                                struct gb_bytes owner, uint64_t answered_ns,
                                struct gb_takeover_verdict *out)
{
    const struct gb_lease_evidence *e = &row->evidence;
    struct gb_takeover_verdict *v = out;
    *v = (struct gb_takeover_verdict){.step = GB_TAKEOVER_SEIZE};
    if (gb_lease_is_released(row) || gb_bytes_equal(row->owner, owner)) return gb_ok();
    v->required_ns = gb_lease_required_ns(row);
    gb_lease_fingerprint(row, v->fingerprint);
    if (!is_about(e, v->fingerprint)) {
        struct gb_err err = observe(t, row, 0, v);
        if (e->generation == 0) v->generation = first_generation(owner, answered_ns);
        return err;
    }
    v->elapsed_ns = e->elapsed_ns;
    v->generation = e->generation;
    if (e->elapsed_ns >= v->required_ns) return gb_ok();
    v->step = GB_TAKEOVER_WAIT;
    if (!matches(t, e, v->fingerprint) || answered_ns < t->at_ns) {
        remember(t, v, answered_ns);
        return gb_ok();
    }
    uint64_t delta_ns = answered_ns - t->at_ns;
    if (delta_ns == 0) return gb_ok();
    int64_t added_ns = delta_ns > INT64_MAX ? INT64_MAX : (int64_t)delta_ns;
    return observe(t, row, gb_add_sat_i64(e->elapsed_ns, added_ns), v);
}

void gb_takeover_observed(struct gb_takeover *t, const struct gb_takeover_verdict *verdict,
                          uint64_t answered_ns)
{
    remember(t, verdict, answered_ns);
}
