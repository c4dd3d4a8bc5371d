#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "blueprint/explain_parts.h"
#include "blueprint/identity.h"
#include "blueprint/validate.h"

/* For reading at night: one fact a line, names as in the document, sums under their terms. */

enum { NAME_WIDTH = 26, VALUE_WIDTH = 19 };

/* Trailing blanks would be there for nobody. */
static void line(struct gb_str *out, const char *name, const char *value, const char *note)
{
    if (note[0] == '\0') {
        gb_str_appendf(out, "    %-*s %s\n", NAME_WIDTH, name, value);
    } else {
        gb_str_appendf(out, "    %-*s %-*s %s\n", NAME_WIDTH, name, VALUE_WIDTH, value, note);
    }
}

static void line_ns(struct gb_str *out, const char *name, int64_t ns, const char *note)
{
    char shown[GB_DURATION_TEXT_MAX];
    gb_duration_print(ns, shown);
    line(out, name, shown, note);
}

static void put_cadence(struct gb_str *out, const struct gb_lease_plan *p)
{
    static const char *const notes[] = {
        [GB_EXPLAIN_WRITTEN] = "written",
        [GB_EXPLAIN_DERIVED] = "derived",
        [GB_EXPLAIN_DEFAULT] = "default",
        [GB_EXPLAIN_BASELINE] = "baseline of a cluster",
        [GB_EXPLAIN_SHORTENED] = "shortened to fit lease_ttl",
    };
    struct gb_explain_value values[GB_EXPLAIN_VALUES];
    gb_explain_cadence(p, values);
    if (p->route == NULL) {
        gb_str_append_c(out, "  lease settings: none written, a binding names the session\n");
    } else {
        gb_str_appendf(out, "  lease settings of route %s\n", p->route->id);
    }
    for (size_t i = 0; i < GB_EXPLAIN_VALUES; i++) {
        if (i == GB_EXPLAIN_FAILS) {
            char count[GB_DURATION_TEXT_MAX];
            (void)snprintf(count, sizeof count, "%" PRId64, values[i].value);
            line(out, values[i].name, count, notes[values[i].source]);
        } else {
            line_ns(out, values[i].name, values[i].value, notes[values[i].source]);
        }
    }
    line_ns(out, "renewals in a row", p->cadence.span_ns, "at most; shorter than lease_ttl");
}

static void put_sum(struct gb_str *out, const struct gb_explain_sum *s, const char *total)
{
    for (size_t i = 0; i < s->count; i++) {
        const struct gb_explain_term *t = &s->terms[i];
        char name[64];
        char note[GB_DURATION_TEXT_MAX + 8] = "";
        if (t->count == 1) {
            (void)snprintf(name, sizeof name, "%s", t->name);
        } else {
            char each[GB_DURATION_TEXT_MAX];
            gb_duration_print(t->each_ns, each);
            (void)snprintf(name, sizeof name, "%" PRId64 " x %s", t->count, t->name);
            (void)snprintf(note, sizeof note, "%s each", each);
        }
        line_ns(out, name, t->ns, note);
    }
    line_ns(out, total, s->total_ns, "");
}

static void put_objective(struct gb_str *out, const struct gb_lease_plan *p, int64_t total_ns)
{
    if (p->failover_slo_ns == 0) {
        line(out, "failover_slo", "not declared", "nothing is enforced");
        return;
    }
    char margin[GB_DURATION_TEXT_MAX];
    char note[GB_DURATION_TEXT_MAX + 16];
    gb_duration_print(p->failover_slo_ns - total_ns, margin); /* admitted, so not negative */
    (void)snprintf(note, sizeof note, "%s to spare", margin);
    line_ns(out, "failover_slo", p->failover_slo_ns, note);
}

static void put_budgets(struct gb_str *out, const struct gb_lease_plan *p)
{
    gb_str_append_c(out, "  failover after the death of the owner\n");
    if (gb_failed(p->death_err)) {
        line(out, "= budget", "unknown", p->death_err.message);
    } else {
        struct gb_explain_sum death = gb_explain_death(p);
        put_sum(out, &death, "= budget");
        put_objective(out, p, death.total_ns);
    }
    gb_str_append_c(out, "  failover after the owner loses its path to the broker\n");
    if (p->terms.step_down_ns == 0) {
        line(out, "broker_health_step_down", p->step_down_decided ? "off" : "not decided",
             "the owner keeps its lease and waits for the broker");
    } else if (gb_failed(p->path_err)) {
        line(out, "= budget", "unknown", p->path_err.message);
    } else {
        struct gb_explain_sum path = gb_explain_path(p);
        put_sum(out, &path, "= budget");
        put_objective(out, p, path.total_ns);
    }
}

static void put_lease(struct gb_str *out, const struct gb_lease_plan *p)
{
    put_cadence(out, p);
    struct gb_explain_sum activation = gb_explain_activation(p);
    gb_str_append_c(out, "  activation: from winning the lease until the session serves\n");
    if (activation.total_ns == 0) {
        line(out, "= activation", "unknown", "only durable sessions have one");
    } else {
        put_sum(out, &activation, "= activation");
    }
    put_budgets(out, p);
}

static void put_session(struct gb_str *out, const struct gb_blueprint *b,
                        const struct gb_bp_session *s)
{
    static const char *const connects[] = {
        [GB_EXPLAIN_NEVER] = "not built, since no route uses it",
        [GB_EXPLAIN_AT_START] = "connects at start",
        [GB_EXPLAIN_AFTER_LEASE] = "connects once it holds its lease",
    };
    struct gb_lease_plan plan;
    bool managed = gb_blueprint_lease_plan(b, s, &plan);
    enum gb_explain_connect connect = gb_explain_connect(s, managed ? &plan : NULL);
    const char *before =
        managed && connect == GB_EXPLAIN_AT_START ? ", before it holds its lease" : "";
    gb_str_appendf(out, "\nsession %s: %s, %s%s\n", s->id, gb_explain_mode(s), connects[connect],
                   before);
    if (managed) put_lease(out, &plan);
}

static void put_outbox(struct gb_str *out, const struct gb_blueprint *b)
{
    if (!gb_has_store(b, GB_BP_OUTBOX)) return;
    struct gb_stale_claim claim = gb_blueprint_stale_claim(b);
    char source[GB_DURATION_TEXT_MAX];
    char note[GB_DURATION_TEXT_MAX + 64] = "written";
    gb_duration_print(claim.basis_ns, source);
    if (claim.source == GB_STALE_CLAIM_LEAST) {
        (void)snprintf(note, sizeof note, "derived: the least");
    } else if (claim.source != GB_STALE_CLAIM_WRITTEN) {
        (void)snprintf(note, sizeof note, "derived: the largest %s, %s, + 15s",
                       claim.source == GB_STALE_CLAIM_GRACE ? "step_down_grace" : "send_timeout",
                       source);
    }
    gb_str_append_c(out, "\noutbox\n");
    line_ns(out, "stale_claim_duration", claim.ns, note);
}

struct gb_err gb_explain_text(const struct gb_explanation *of, struct gb_str *out)
{
    char digest[GB_SHA256_HEX];
    if (of->b == NULL) return gb_ok();
    struct gb_err err = gb_blueprint_digest(of->b, digest);
    if (gb_failed(err)) return err;
    const struct gb_bp_session **sessions = gb_blueprint_sessions_by_id(of->b);
    if (sessions == NULL) return gb_err_no_memory("the explanation");
    gb_str_appendf(out, "bridge %s: %s\n", of->b->bridge.id,
                   gb_is_clustered(of->b) ? "clustered" : "standalone");
    gb_str_appendf(out, "content digest %s\n", digest);
    for (size_t i = 0; i < of->b->session_count; i++) put_session(out, of->b, sessions[i]);
    free(sessions);
    put_outbox(out, of->b);
    gb_str_appendf(out, "\n%zu warning%s\n", of->findings->warning_count,
                   of->findings->warning_count == 1 ? "" : "s");
    return gb_str_check(out, "the explanation");
}
