#include "api/monitor.h"

#include <string.h>
#include <strings.h>

#include "api/monitor_body.h"
#include "api/prometheus.h"
#include "api/service_level.h"
#include "base/id.h"
#include "base/json_write.h"
#include "base/log.h"

enum { TRACE_HEX = 32, SPAN_HEX = 16, ECHO_MAX = 256 };

static const char prefix[] = "/api/v1/monitor/";

/* --- bodies --- */

/* One object of texts. */
static void print_texts(struct gb_str *out, const char *const (*rows)[2], size_t count)
{
    struct gb_json_writer w;
    gb_json_w_init(&w, out);
    gb_json_w_object(&w);
    for (size_t i = 0; i < count; i++) {
        gb_json_w_key(&w, rows[i][0]);
        gb_json_w_string_c(&w, rows[i][1]);
    }
    gb_json_w_object_end(&w);
}

static void status(struct gb_http_server_answer *a, unsigned code, const char *word)
{
    a->status = code;
    print_texts(&a->body, (const char *const[][2]){{"status", word}}, 1);
}

static void fail(struct gb_http_server_answer *a, unsigned code, const char *text)
{
    a->status = code;
    print_texts(&a->body, (const char *const[][2]){{"error", text}}, 1);
}

/* --- probes --- */

static void get_health(const struct gb_monitor_snapshot *s, const struct gb_http_server_request *r,
                       struct gb_http_server_answer *a)
{
    (void)r;
    const char *word = !s->runtime ? "unavailable" : !s->healthy ? "unhealthy" : "not_running";
    bool ok = s->runtime && s->healthy && s->running;
    status(a, ok ? 200 : 503, ok ? "ok" : word);
}

static void get_live(const struct gb_monitor_snapshot *s, const struct gb_http_server_request *r,
                     struct gb_http_server_answer *a)
{
    (void)r;
    status(a, s->terminal ? 503 : 200, s->terminal ? "terminal" : "alive");
}

static void get_ready(const struct gb_monitor_snapshot *s, const struct gb_http_server_request *r,
                      struct gb_http_server_answer *a)
{
    const char *asked = gb_http_server_query(r, "level");
    enum gb_readiness wanted = GB_READY_FULL, level = gb_readiness_of(s);
    const char *role = gb_role_name(gb_role_of(s));
    if (asked != NULL && !gb_readiness_parse(asked, &wanted)) {
        fail(a, 400, "level must be live, running, connected, subscribed or full");
        return;
    }
    bool ok = level >= wanted;
    if (asked == NULL && !ok) {
        fail(a, 503, "not ready");
        return;
    }
    a->status = ok ? 200 : 503;
    const char *const rows[][2] = {{"status", ok ? "ready" : "not_ready"},
                                   {"role", role},
                                   {"level", gb_readiness_name(level)},
                                   {"requested", gb_readiness_name(wanted)}};
    print_texts(&a->body, rows, asked == NULL ? 2 : 4);
}

/* --- with a key --- */

static void get_topology(const struct gb_monitor_snapshot *s,
                         const struct gb_http_server_request *r, struct gb_http_server_answer *a)
{
    (void)r;
    a->status = 200;
    gb_monitor_print_topology(s, &a->body);
}

static void get_routes(const struct gb_monitor_snapshot *s, const struct gb_http_server_request *r,
                       struct gb_http_server_answer *a)
{
    (void)r;
    if (!s->runtime) {
        fail(a, 503, "runtime not available");
        return;
    }
    a->status = 200;
    gb_monitor_print_routes(s, &a->body);
}

static void get_deephealth(const struct gb_monitor_snapshot *s,
                           const struct gb_http_server_request *r, struct gb_http_server_answer *a)
{
    (void)r;
    a->status = gb_ready_for_traffic(s) ? 200 : 503;
    gb_monitor_print_deephealth(s, &a->body);
}

static void get_metrics(const struct gb_monitor_snapshot *s, const struct gb_http_server_request *r,
                        struct gb_http_server_answer *a)
{
    (void)r;
    if (s->metrics == NULL) {
        fail(a, 404, "not found: telemetry.metrics.exporter is not prometheus");
        return;
    }
    a->status = 200;
    gb_http_server_add(a, "Content-Type", "text/plain; version=0.0.4; charset=utf-8");
    gb_prometheus_print(s->metrics, &a->body);
}

static const struct endpoint {
    const char *name;
    bool probe;
    void (*get)(const struct gb_monitor_snapshot *s, const struct gb_http_server_request *r,
                struct gb_http_server_answer *a);
} endpoints[] = {
    {"health", true, get_health},    {"live", true, get_live},
    {"ready", true, get_ready},      {"topology", false, get_topology},
    {"routes", false, get_routes},   {"deephealth", false, get_deephealth},
    {"metrics", false, get_metrics},
};

/* NULL: not found. Without a key nobody could open more than the probes. */
static const struct endpoint *find(const struct gb_monitor *m, const char *path)
{
    if (strncmp(path, prefix, sizeof prefix - 1) != 0) return NULL;
    for (size_t i = 0; i < sizeof endpoints / sizeof endpoints[0]; i++) {
        if (strcmp(path + sizeof prefix - 1, endpoints[i].name) != 0) continue;
        return endpoints[i].probe || gb_keys_any(m->keys) ? &endpoints[i] : NULL;
    }
    return NULL;
}

/* --- the pipeline (spec 08 §4) --- */

static bool is_hex(const char *text, size_t size)
{
    return strspn(text, "0123456789abcdef") >= size;
}

/* version-trace-span-flags in lower case, no zero id; NULL: it is none. */
static const char *traceparent_of(const struct gb_http_server_request *r)
{
    const char *t = gb_http_server_header(r, "traceparent");
    if (t == NULL || strlen(t) < 55 || !is_hex(t, 2) || strncmp(t, "ff", 2) == 0) return NULL;
    if (t[2] != '-' || !is_hex(t + 3, TRACE_HEX) || t[35] != '-' || !is_hex(t + 36, SPAN_HEX) ||
        t[52] != '-' || !is_hex(t + 53, 2) || (t[55] != '\0' && t[55] != '-'))
        return NULL;
    if (strncmp(t, "00", 2) == 0 && t[55] != '\0') return NULL;
    return strspn(t + 3, "0") >= TRACE_HEX || strspn(t + 36, "0") >= SPAN_HEX ? NULL : t;
}

/* The client's text, cut, or random hex of `size` digits. */
static void echo(const struct gb_monitor *m, struct gb_http_server_answer *a, const char *name,
                 const char *given, size_t size)
{
    char text[ECHO_MAX + 1];
    if (given == NULL || given[0] == '\0') {
        gb_id_hex(m->reactor, text);
        text[size] = '\0';
    } else {
        size = strnlen(given, size > 0 ? size : ECHO_MAX);
        memcpy(text, given, size);
        text[size] = '\0';
    }
    gb_http_server_add(a, name, text);
}

static void echo_ids(const struct gb_monitor *m, const struct gb_http_server_request *r,
                     struct gb_http_server_answer *a)
{
    const char *correlation = gb_http_server_header(r, "X-Correlation-ID");
    const char *parent = traceparent_of(r);
    const char *trace = parent != NULL ? parent + 3 : gb_http_server_header(r, "X-Trace-ID");
    const char *span = parent != NULL ? parent + 36 : gb_http_server_header(r, "X-Span-ID");
    if (correlation == NULL) correlation = gb_http_server_header(r, "X-Request-ID");
    bool given = correlation != NULL && correlation[0] != '\0';
    echo(m, a, "X-Correlation-ID", correlation, given ? 0 : TRACE_HEX);
    given = trace != NULL && trace[0] != '\0' && parent == NULL;
    echo(m, a, "X-Trace-ID", trace, given ? 0 : TRACE_HEX);
    given = span != NULL && span[0] != '\0' && parent == NULL;
    echo(m, a, "X-Span-ID", span, given ? 0 : SPAN_HEX);
}

/* True when the answer is made. */
static bool refused(const struct gb_monitor *m, const struct gb_http_server_request *r,
                    struct gb_http_server_answer *a)
{
    switch (gb_keys_check(m->keys, gb_http_server_header(r, "X-API-Key"),
                          gb_http_server_header(r, "Authorization"), r->peer,
                          gb_reactor_now_ns(m->reactor))) {
    case GB_KEYS_OK:
        return false;
    case GB_KEYS_REFUSED:
        gb_http_server_add(a, "WWW-Authenticate", "Bearer realm=\"gobridge-monitor\"");
        fail(a, 401, "invalid or missing API key");
        break;
    case GB_KEYS_THROTTLED:
        gb_http_server_add(a, "Retry-After", "60");
        fail(a, 429, "too many failed authentication attempts");
        break;
    }
    return true;
}

static void dispatch(const struct gb_monitor *m, const struct gb_http_server_request *r,
                     struct gb_http_server_answer *a)
{
    const struct endpoint *e = find(m, r->path);
    struct gb_monitor_snapshot s = {0};
    if (e == NULL) {
        fail(a, 404, "not found");
        return;
    }
    if (strcmp(r->method, "GET") != 0 && strcmp(r->method, "HEAD") != 0) {
        gb_http_server_add(a, "Allow", "GET, HEAD");
        fail(a, 405, "method not allowed");
        return;
    }
    if (e->probe) gb_http_server_add(a, "Cache-Control", "no-cache, max-age=0");
    if (!e->probe && refused(m, r, a)) return;
    m->source.look(m->source.arg, &s);
    e->get(&s, r, a);
}

void gb_monitor_handle(void *arg, const struct gb_http_server_request *request,
                       struct gb_http_server_answer *answer)
{
    const struct gb_monitor *m = arg;
    gb_http_server_add(answer, "X-Content-Type-Options", "nosniff");
    gb_http_server_add(answer, "X-Frame-Options", "DENY");
    gb_http_server_add(answer, "Referrer-Policy", "no-referrer");
    echo_ids(m, request, answer);
    size_t before = answer->header_count;
    dispatch(m, request, answer);
    bool typed = answer->header_count > before &&
                 strcmp(answer->headers[answer->header_count - 1].name, "Content-Type") == 0;
    if (!typed) gb_http_server_add(answer, "Content-Type", "application/json");
    if (answer->body.failed) {
        gb_str_clear(&answer->body);
        fail(answer, 500, "internal error");
    }
    GB_LOG(GB_LOG_DEBUG, "http request", gb_lf_str("method", request->method),
           gb_lf_str("path", request->path), gb_lf_int("status", answer->status),
           gb_lf_str("remote", request->peer));
}
