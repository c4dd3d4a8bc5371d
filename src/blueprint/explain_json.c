#include <stdlib.h>

#include "base/json_write.h"
#include "blueprint/explain_parts.h"
#include "blueprint/identity.h"
#include "blueprint/validate.h"

static void put_text(struct gb_json_writer *w, const char *key, const char *text)
{
    gb_json_w_key(w, key);
    if (text == NULL) {
        gb_json_w_null(w);
    } else {
        gb_json_w_string_c(w, text);
    }
}

static void put_i64(struct gb_json_writer *w, const char *key, int64_t value)
{
    gb_json_w_key(w, key);
    gb_json_w_i64(w, value);
}

static void put_ns_pair(struct gb_json_writer *w, int64_t ns)
{
    char shown[GB_DURATION_TEXT_MAX];
    gb_duration_print(ns, shown);
    put_i64(w, "ns", ns);
    put_text(w, "text", shown);
}

static void put_ns(struct gb_json_writer *w, const char *key, int64_t ns)
{
    gb_json_w_key(w, key);
    gb_json_w_object(w);
    put_ns_pair(w, ns);
    gb_json_w_object_end(w);
}

static void put_findings(struct gb_json_writer *w, const char *key, const struct gb_explanation *of,
                         enum gb_severity severity)
{
    const struct gb_findings *f = of->findings;
    gb_json_w_key(w, key);
    gb_json_w_array(w);
    for (size_t i = 0; i < f->count; i++) {
        const struct gb_finding *item = &f->items[i];
        if (item->severity != severity) continue;
        gb_json_w_object(w);
        put_text(w, "rule", gb_rule_name(item->rule));
        put_text(w, "file", of->names[item->layer]);
        put_i64(w, "line", item->line);
        put_i64(w, "column", item->column);
        put_text(w, "path", item->path);
        put_text(w, "id", item->id);
        put_text(w, "text", item->text);
        gb_json_w_object_end(w);
    }
    gb_json_w_array_end(w);
}

static void put_cadence(struct gb_json_writer *w, const struct gb_lease_plan *p)
{
    static const char *const sources[] = {
        [GB_EXPLAIN_WRITTEN] = "written",     [GB_EXPLAIN_DERIVED] = "derived",
        [GB_EXPLAIN_DEFAULT] = "default",     [GB_EXPLAIN_BASELINE] = "ha_baseline",
        [GB_EXPLAIN_SHORTENED] = "shortened",
    };
    struct gb_explain_value values[GB_EXPLAIN_VALUES];
    gb_explain_cadence(p, values);
    gb_json_w_key(w, "cadence");
    gb_json_w_object(w);
    for (size_t i = 0; i < GB_EXPLAIN_VALUES; i++) {
        gb_json_w_key(w, values[i].name);
        gb_json_w_object(w);
        if (i == GB_EXPLAIN_FAILS) {
            put_i64(w, "count", values[i].value);
        } else {
            put_ns_pair(w, values[i].value);
        }
        put_text(w, "source", sources[values[i].source]);
        gb_json_w_object_end(w);
    }
    put_ns(w, "renew_span", p->cadence.span_ns);
    gb_json_w_object_end(w);
}

/* Opens the object; the caller adds to it and ends it. */
static void put_sum(struct gb_json_writer *w, const char *key, const struct gb_explain_sum *s)
{
    gb_json_w_key(w, key);
    gb_json_w_object(w);
    gb_json_w_key(w, "terms");
    gb_json_w_array(w);
    for (size_t i = 0; i < s->count; i++) {
        gb_json_w_object(w);
        put_text(w, "name", s->terms[i].name);
        put_i64(w, "count", s->terms[i].count);
        put_ns(w, "each", s->terms[i].each_ns);
        put_ns(w, "sum", s->terms[i].ns);
        gb_json_w_object_end(w);
    }
    gb_json_w_array_end(w);
    put_ns(w, "total", s->total_ns);
}

/* `sum` NULL: the budget has no value, `why` says so; both NULL: it does not apply. */
static void put_budget(struct gb_json_writer *w, const char *key, const struct gb_lease_plan *p,
                       const struct gb_explain_sum *sum, const char *why)
{
    if (sum != NULL) {
        put_sum(w, key, sum);
        if (p->failover_slo_ns > 0) put_ns(w, "margin", p->failover_slo_ns - sum->total_ns);
        gb_json_w_object_end(w);
    } else if (why != NULL) {
        gb_json_w_key(w, key);
        gb_json_w_object(w);
        put_text(w, "unknown", why);
        gb_json_w_object_end(w);
    } else {
        put_text(w, key, NULL);
    }
}

static void put_lease(struct gb_json_writer *w, const struct gb_lease_plan *p)
{
    gb_json_w_object(w);
    put_text(w, "route", p->route == NULL ? NULL : p->route->id);
    put_cadence(w, p);
    struct gb_explain_sum activation = gb_explain_activation(p);
    if (activation.total_ns == 0) {
        put_text(w, "activation", NULL);
    } else {
        put_sum(w, "activation", &activation);
        gb_json_w_object_end(w);
    }
    put_ns(w, "startup_allowance", p->terms.startup_ns);
    if (p->terms.step_down_ns > 0) {
        put_ns(w, "broker_health_step_down", p->terms.step_down_ns);
    } else {
        put_text(w, "broker_health_step_down", p->step_down_decided ? "off" : NULL);
    }
    if (p->failover_slo_ns > 0) {
        put_ns(w, "failover_slo", p->failover_slo_ns);
    } else {
        put_text(w, "failover_slo", NULL);
    }
    bool known = !gb_failed(p->death_err);
    struct gb_explain_sum death = gb_explain_death(p);
    put_budget(w, "owner_death", p, known ? &death : NULL, p->death_err.message);
    bool path_known = p->terms.step_down_ns > 0 && !gb_failed(p->path_err);
    struct gb_explain_sum path = gb_explain_path(p);
    put_budget(w, "broker_path", p, path_known ? &path : NULL,
               p->terms.step_down_ns > 0 ? p->path_err.message : NULL);
    gb_json_w_object_end(w);
}

static void put_session(struct gb_json_writer *w, const struct gb_blueprint *b,
                        const struct gb_bp_session *s)
{
    static const char *const connects[] = {[GB_EXPLAIN_NEVER] = "never",
                                           [GB_EXPLAIN_AT_START] = "at_start",
                                           [GB_EXPLAIN_AFTER_LEASE] = "after_lease"};
    struct gb_lease_plan plan;
    bool managed = gb_blueprint_lease_plan(b, s, &plan);
    gb_json_w_object(w);
    put_text(w, "id", s->id);
    put_text(w, "mode", gb_explain_mode(s));
    put_text(w, "connect", connects[gb_explain_connect(s, managed ? &plan : NULL)]);
    gb_json_w_key(w, "lease");
    if (managed) {
        put_lease(w, &plan);
    } else {
        gb_json_w_null(w);
    }
    gb_json_w_object_end(w);
}

static void put_outbox(struct gb_json_writer *w, const struct gb_blueprint *b)
{
    static const char *const sources[] = {[GB_STALE_CLAIM_WRITTEN] = "written",
                                          [GB_STALE_CLAIM_LEAST] = "least",
                                          [GB_STALE_CLAIM_GRACE] = "step_down_grace",
                                          [GB_STALE_CLAIM_SEND] = "send_timeout"};
    gb_json_w_key(w, "stale_claim_duration");
    if (!gb_has_store(b, GB_BP_OUTBOX)) {
        gb_json_w_null(w);
        return;
    }
    struct gb_stale_claim claim = gb_blueprint_stale_claim(b);
    gb_json_w_object(w);
    put_ns_pair(w, claim.ns);
    put_text(w, "source", sources[claim.source]);
    gb_json_w_object_end(w);
}

static struct gb_err put_blueprint(struct gb_json_writer *w, const struct gb_blueprint *b)
{
    char digest[GB_SHA256_HEX];
    struct gb_err err = gb_blueprint_digest(b, digest);
    if (gb_failed(err)) return err;
    const struct gb_bp_session **sessions = gb_blueprint_sessions_by_id(b);
    if (sessions == NULL) return gb_err_no_memory("the explanation");
    put_text(w, "bridge_id", b->bridge.id);
    put_text(w, "deployment_mode", gb_is_clustered(b) ? "clustered" : "standalone");
    put_text(w, "content_digest", digest);
    gb_json_w_key(w, "sessions");
    gb_json_w_array(w);
    for (size_t i = 0; i < b->session_count; i++) put_session(w, b, sessions[i]);
    gb_json_w_array_end(w);
    free(sessions);
    put_outbox(w, b);
    return gb_ok();
}

struct gb_err gb_explain_json(const struct gb_explanation *of, struct gb_str *out)
{
    struct gb_json_writer w;
    struct gb_err err = gb_ok();
    gb_json_w_init(&w, out);
    gb_json_w_object(&w);
    if (of->b != NULL) err = put_blueprint(&w, of->b);
    put_i64(&w, "error_count", (int64_t)of->findings->error_count); /* more than are kept */
    put_i64(&w, "warning_count", (int64_t)of->findings->warning_count);
    put_findings(&w, "errors", of, GB_FINDING_ERROR);
    put_findings(&w, "warnings", of, GB_FINDING_WARNING);
    gb_json_w_object_end(&w);
    gb_str_append_char(out, '\n');
    return gb_failed(err) ? err : gb_str_check(out, "the explanation");
}
