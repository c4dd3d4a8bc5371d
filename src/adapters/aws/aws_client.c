#include "adapters/aws/aws_client.h"

#include <stdlib.h>
#include <string.h>

#include "adapters/aws/aws_url.h"
#include "base/assert.h"
#include "base/duration.h"
#include "base/log.h"

enum { ATTEMPTS_MAX = 3, HEADERS_SIZED_FOR = 2048 };
#define BACKOFF_BASE_NS (100 * GB_MS) /* spec 04 A5 */
#define THROTTLE_BASE_NS (500 * GB_MS)
#define BACKOFF_CAP_NS (20 * GB_SEC)
#define SKEW_TOLERATED_MS INT64_C(240000) /* spec 04 A2 */
#define LOG_EVERY_NS ((uint64_t)(10 * GB_SEC))

struct gb_aws_client {
    struct gb_aws_client_cfg cfg;
    char *service, *target_prefix, *content_type, *region;
    struct gb_aws_url url;
    struct gb_sigv4_key key;
    int64_t skew_ms; /* the service's clock minus ours */
    struct gb_log_limit log_limit;
};

static const char *const want_headers[] = {
    "x-amzn-requestid", "x-amzn-errortype", "x-amzn-query-error", "x-amz-crc32", "date", NULL};

struct gb_err gb_aws_client_new(const struct gb_aws_client_cfg *cfg, struct gb_aws_client **out)
{
    struct gb_aws_client *c = calloc(1, sizeof *c);
    if (c == NULL) return gb_err_no_memory("AWS client");
    c->cfg = *cfg;
    c->cfg.credentials = gb_aws_credentials_ref(cfg->credentials);
    if (c->cfg.attempts_max == 0) c->cfg.attempts_max = ATTEMPTS_MAX;
    if (c->cfg.backoff_cap_ns == 0) c->cfg.backoff_cap_ns = BACKOFF_CAP_NS;
    c->service = gb_strdup(cfg->service);
    c->target_prefix = gb_strdup(cfg->target_prefix);
    c->content_type = gb_strdup(cfg->content_type);
    c->region = gb_strdup(cfg->region);
    struct gb_err err = gb_ok();
    if (c->service == NULL || c->target_prefix == NULL || c->content_type == NULL ||
        c->region == NULL)
        err = gb_err_no_memory("AWS client");
    if (!gb_failed(err)) err = gb_aws_url_parse(cfg->endpoint, &c->url);
    if (gb_failed(err)) {
        gb_aws_client_free(c);
        return err;
    }
    *out = c;
    return err;
}

void gb_aws_client_free(struct gb_aws_client *c)
{
    if (c == NULL) return;
    gb_aws_credentials_unref(c->cfg.credentials);
    gb_aws_url_deinit(&c->url);
    gb_wipe(&c->key, sizeof c->key);
    free(c->service);
    free(c->target_prefix);
    free(c->content_type);
    free(c->region);
    free(c);
}

/* --- one attempt --- */

static void begin_attempt(struct gb_aws_call *call);

static bool is_cancelling(const struct gb_aws_call *call)
{
    return call->op.state == GB_OP_CANCELLING;
}

/* A lost compare-and-set is an answer like any other; the caller expects it. */
static bool is_worth_a_line(const struct gb_err *err)
{
    return gb_failed(*err) && err->code != GB_CANCELLED && err->code != GB_VERSION_MISMATCH &&
           err->code != GB_ALREADY_EXISTS;
}

static void finish(struct gb_aws_call *call, struct gb_err err)
{
    struct gb_aws_client *c = call->client;
    gb_timer_deinit(&call->retry_timer);
    call->retry_timer = (struct gb_timer){0};
    uint64_t suppressed = 0;
    uint64_t now = gb_reactor_now_ns(c->cfg.reactor);
    if (is_worth_a_line(&err) && gb_log_allow(&c->log_limit, now, LOG_EVERY_NS, &suppressed)) {
        GB_LOG(GB_LOG_WARN, "aws call failed", gb_lf_str("service", c->service),
               gb_lf_str("action", call->action), gb_lf_str("request_id", call->request_id),
               gb_lf_int("status", call->error.status), gb_lf_int("attempts", call->attempts),
               gb_lf_int("suppressed", (int64_t)suppressed), gb_lf_err(&err));
    }
    gb_op_finish(&call->op, err);
}

static void finish_transport(struct gb_aws_call *call, struct gb_err err)
{
    finish(call, gb_err_in(err, "%s", call->action));
}

/* Appends `text` with its terminator and answers its offset. */
static size_t keep(struct gb_str *s, const char *text)
{
    size_t at = s->size;
    gb_str_append(s, gb_bytes(text, strlen(text) + 1));
    return at;
}

static void add_header(struct gb_http_request *q, const char *name, const char *value)
{
    GB_ASSERT(q->header_count < GB_HTTP_HEADERS_MAX);
    q->headers[q->header_count++] = (struct gb_http_header){name, value};
}

struct header_offsets {
    size_t target, date, token, authorization;
    bool has_token;
};

/* The headers to be sent are those that are signed, but Host, which the HTTP client makes. */
static struct gb_err sign(struct gb_aws_call *call, const struct gb_sigv4_credentials *credentials,
                          struct header_offsets *at)
{
    struct gb_aws_client *c = call->client;
    struct gb_str *s = &call->headers;
    int64_t time_ms = gb_reactor_wall_ms(c->cfg.reactor) + c->skew_ms;
    char date[GB_TIME_TEXT_MAX];
    gb_time_print_basic(time_ms, date);
    gb_str_clear(s);
    const char *token = credentials->session_token == NULL ? "" : credentials->session_token;
    (void)gb_str_reserve(s, HEADERS_SIZED_FOR + strlen(token)); /* one allocation */
    at->target = s->size;
    gb_str_appendf(s, "%s.%s", c->target_prefix, call->action);
    gb_str_append_char(s, '\0');
    at->date = keep(s, date);
    at->has_token = token[0] != '\0';
    at->token = keep(s, token);
    at->authorization = s->size;
    struct gb_err err = gb_str_check(s, "request headers");
    if (gb_failed(err)) return err;
    struct gb_sigv4_header headers[5] = {
        {gb_bytes_c("content-type"), gb_bytes_c(c->content_type)},
        {gb_bytes_c("host"), gb_bytes_c(c->url.host)},
        {gb_bytes_c("x-amz-date"), gb_bytes_c(date)},
        {gb_bytes_c("x-amz-target"), gb_bytes_c(s->data + at->target)},
        {gb_bytes_c("x-amz-security-token"), gb_bytes_c(token)},
    };
    struct gb_sigv4_request q = {
        .method = "POST",
        .path = gb_bytes_c(c->url.path),
        .headers = headers,
        .header_count = at->has_token ? 5 : 4,
        .body = gb_str_bytes(&call->body),
        .time_ms = time_ms,
        .region = c->region,
        .service = c->service,
    };
    struct gb_str authorization = {0};
    err = gb_sigv4_sign(&q, credentials, &c->key, &authorization);
    if (!gb_failed(err)) {
        gb_str_append(s, gb_bytes(authorization.data, authorization.size + 1));
        err = gb_str_check(s, "request headers");
    }
    gb_str_deinit(&authorization);
    return err;
}

/* The request struct is emptied between attempts; the body goes with it and comes back. */
static void take_body_back(struct gb_aws_call *call)
{
    call->body = call->http.body;
    call->http.body = (struct gb_str){0};
}

static void http_done(struct gb_op *op, void *arg);

static uint64_t attempt_deadline(const struct gb_aws_call *call)
{
    const struct gb_aws_client *c = call->client;
    if (c->cfg.attempt_timeout_ns <= 0) return call->op.deadline_ns;
    uint64_t own = gb_reactor_now_ns(c->cfg.reactor) + (uint64_t)c->cfg.attempt_timeout_ns;
    return own < call->op.deadline_ns ? own : call->op.deadline_ns;
}

static void send_attempt(struct gb_aws_call *call, const struct gb_sigv4_credentials *credentials)
{
    struct gb_aws_client *c = call->client;
    struct header_offsets at = {0};
    call->credentials_generation = gb_aws_credentials_generation(c->cfg.credentials);
    struct gb_err err = sign(call, credentials, &at);
    if (gb_failed(err)) {
        finish(call, err);
        return;
    }
    call->attempts++;
    struct gb_http_request *q = &call->http;
    gb_http_deinit(q); /* the answer of the attempt before */
    q->method = "POST";
    q->url = c->url.url;
    q->header_count = 0;
    add_header(q, "Content-Type", c->content_type);
    add_header(q, "X-Amz-Target", call->headers.data + at.target);
    add_header(q, "X-Amz-Date", call->headers.data + at.date);
    if (at.has_token) add_header(q, "X-Amz-Security-Token", call->headers.data + at.token);
    add_header(q, "Authorization", call->headers.data + at.authorization);
    q->body = call->body;
    call->body = (struct gb_str){0};
    q->want_headers = want_headers;
    q->send_once = call->send_once;
    q->sends = 0;
    q->op.deadline_ns = attempt_deadline(call);
    c->cfg.http->ops->request(c->cfg.http, q, http_done, call);
}

static void credentials_done(struct gb_op *op, void *arg)
{
    struct gb_aws_call *call = arg;
    struct gb_sigv4_credentials credentials;
    if (is_cancelling(call)) {
        finish(call, (struct gb_err){.code = GB_CANCELLED});
        return;
    }
    if (gb_failed(op->result)) {
        finish_transport(call, op->result);
        return;
    }
    if (!gb_aws_credentials_current(call->client->cfg.credentials, &credentials)) {
        begin_attempt(call); /* invalidated by another call between the completion and now */
        return;
    }
    send_attempt(call, &credentials);
}

static void begin_attempt(struct gb_aws_call *call)
{
    struct gb_aws_client *c = call->client;
    struct gb_sigv4_credentials credentials;
    if (gb_aws_credentials_current(c->cfg.credentials, &credentials)) {
        send_attempt(call, &credentials);
        return;
    }
    call->wait_credentials.deadline_ns = call->op.deadline_ns;
    gb_aws_credentials_get(c->cfg.credentials, &call->wait_credentials, credentials_done, call);
}

/* --- what an attempt came to --- */

static void retry_fire(struct gb_timer *timer)
{
    begin_attempt(GB_CONTAINER_OF(timer, struct gb_aws_call, retry_timer));
}

/* Full jitter (spec 04 A5): uniform in 0..min(cap, base * 2^(attempt - 1)). A retry that could not
 * start before the deadline is not waited for. */
static void retry_or_finish(struct gb_aws_call *call, struct gb_err err, uint64_t base_ns)
{
    struct gb_aws_client *c = call->client;
    uint64_t now = gb_reactor_now_ns(c->cfg.reactor);
    if (is_cancelling(call)) {
        finish(call, (struct gb_err){.code = GB_CANCELLED});
        return;
    }
    if (call->attempts >= c->cfg.attempts_max || (call->send_once && call->maybe_done)) {
        finish(call, err);
        return;
    }
    uint32_t doublings = call->attempts > 10 ? 10 : call->attempts - 1;
    uint64_t span = base_ns << doublings;
    if (span > (uint64_t)c->cfg.backoff_cap_ns) span = (uint64_t)c->cfg.backoff_cap_ns;
    uint64_t at = now + gb_reactor_random_below(c->cfg.reactor, span + 1);
    struct gb_err timer_err = gb_ok();
    if (call->retry_timer.reactor == NULL)
        timer_err = gb_timer_init(&call->retry_timer, c->cfg.reactor, retry_fire);
    if (at >= call->op.deadline_ns || gb_failed(timer_err)) {
        finish(call, err);
        return;
    }
    GB_LOG(GB_LOG_DEBUG, "aws call is tried again", gb_lf_str("service", c->service),
           gb_lf_str("action", call->action), gb_lf_str("request_id", call->request_id),
           gb_lf_int("wait_ms", (int64_t)((at - now) / (uint64_t)GB_MS)), gb_lf_err(&err));
    gb_timer_start(&call->retry_timer, at);
}

static void transport_failed(struct gb_aws_call *call, struct gb_err err)
{
    if (err.code == GB_CANCELLED) {
        finish(call, err);
        return;
    }
    uint64_t now = gb_reactor_now_ns(call->client->cfg.reactor);
    if (err.code == GB_TIMEOUT && now >= call->op.deadline_ns) {
        finish_transport(call, err);
        return;
    }
    /* An answer above our limit says nothing about the payload that was sent. */
    if (err.code == GB_PAYLOAD_TOO_LARGE) err = gb_err(GB_UNAVAILABLE, "%s", err.message);
    retry_or_finish(call, gb_err_in(err, "%s", call->action), (uint64_t)BACKOFF_BASE_NS);
}

/* True when the clock was corrected: the service's Date header is more than 4 min off (spec 04
 * A2). */
static bool correct_skew(struct gb_aws_call *call)
{
    struct gb_aws_client *c = call->client;
    int64_t theirs = 0;
    if (call->skew_corrected ||
        !gb_http_date_parse(gb_http_answer_header(&call->http, "date"), &theirs))
        return false;
    int64_t ours = gb_reactor_wall_ms(c->cfg.reactor);
    int64_t off = theirs - (ours + c->skew_ms);
    if (off >= -SKEW_TOLERATED_MS && off <= SKEW_TOLERATED_MS) return false;
    call->skew_corrected = true;
    c->skew_ms = theirs - ours;
    GB_LOG(GB_LOG_WARN, "clock differs from the service's; signing with its time",
           gb_lf_str("service", c->service), gb_lf_int("skew_ms", c->skew_ms));
    return true;
}

static bool refresh_token(struct gb_aws_call *call)
{
    struct gb_aws_credentials *credentials = call->client->cfg.credentials;
    if (call->token_refreshed) return false;
    call->token_refreshed = true;
    if (gb_aws_credentials_generation(credentials) == call->credentials_generation)
        gb_aws_credentials_invalidate(credentials);
    return true;
}

static void keep_answer(struct gb_aws_call *call)
{
    gb_str_deinit(&call->answer);
    call->answer = call->http.answer;
    call->http.answer = (struct gb_str){0};
}

static void service_failed(struct gb_aws_call *call)
{
    struct gb_aws_client *c = call->client;
    const struct gb_http_request *q = &call->http;
    gb_aws_error_parse(q->status, gb_str_bytes(&q->answer),
                       gb_http_answer_header(q, "x-amzn-errortype"),
                       gb_http_answer_header(q, "x-amzn-query-error"), &call->error);
    keep_answer(call);
    struct gb_err err = c->cfg.classify(&call->error);
    GB_ASSERT(gb_failed(err));
    bool corrected = gb_aws_error_is_skew(&call->error) && correct_skew(call);
    if (!corrected && gb_aws_error_is_expired_token(&call->error)) corrected = refresh_token(call);
    if (corrected && !is_cancelling(call)) {
        begin_attempt(call); /* its own one retry, besides those for outages */
        return;
    }
    err = gb_err_in(err, "%s", call->action);
    bool throttled = err.code == GB_THROTTLED || gb_aws_error_is_throttle(&call->error);
    bool retryable = c->cfg.is_retryable != NULL && c->cfg.is_retryable(&call->error);
    if (q->status >= 500 && !throttled) call->maybe_done = true;
    if (throttled || retryable || q->status >= 500) {
        retry_or_finish(call, err, (uint64_t)(throttled ? THROTTLE_BASE_NS : BACKOFF_BASE_NS));
        return;
    }
    finish(call, err);
}

/* DynamoDB sends the checksum of the body (spec 04 A1). */
static bool checksum_ok(const struct gb_http_request *q)
{
    struct gb_bytes text = gb_http_answer_header(q, "x-amz-crc32");
    uint64_t want = 0;
    if (text.size == 0) return true;
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] < '0' || text.data[i] > '9' || want > UINT32_MAX) return false;
        want = want * 10 + (uint64_t)(text.data[i] - '0');
    }
    return want == gb_crc32(gb_str_bytes(&q->answer));
}

static void keep_request_id(struct gb_aws_call *call)
{
    struct gb_bytes id = gb_http_answer_header(&call->http, "x-amzn-requestid");
    size_t size = id.size < sizeof call->request_id - 1 ? id.size : sizeof call->request_id - 1;
    if (size > 0) memcpy(call->request_id, id.data, size);
    call->request_id[size] = '\0';
}

static void http_done(struct gb_op *op, void *arg)
{
    struct gb_aws_call *call = arg;
    struct gb_http_request *q = &call->http;
    take_body_back(call);
    call->error = (struct gb_aws_error){0};
    gb_str_clear(&call->answer);
    bool lost = gb_failed(op->result);
    if ((lost && q->sends > 0) || q->sends > 1) call->maybe_done = true;
    if (lost) {
        transport_failed(call, op->result);
        return;
    }
    keep_request_id(call);
    if (!checksum_ok(q)) {
        struct gb_err err =
            gb_err(GB_CONNECTION_LOST, "%s: the answer is damaged (checksum)", call->action);
        call->maybe_done = true;
        retry_or_finish(call, err, (uint64_t)BACKOFF_BASE_NS);
    } else if (q->status < 200 || q->status > 299) {
        service_failed(call);
    } else {
        keep_answer(call);
        finish(call, gb_ok());
    }
}

/* --- the call --- */

static void cancel_call(struct gb_op *op)
{
    struct gb_aws_call *call = GB_CONTAINER_OF(op, struct gb_aws_call, op);
    gb_op_cancel(&call->wait_credentials);
    gb_op_cancel(&call->http.op);
    if (gb_timer_running(&call->retry_timer)) {
        gb_timer_stop(&call->retry_timer);
        finish(call, (struct gb_err){.code = GB_CANCELLED});
    }
}

void gb_aws_call_start(struct gb_aws_client *c, struct gb_aws_call *call, gb_done_fn *done,
                       void *arg)
{
    GB_ASSERT(call->op.deadline_ns != 0); /* no call without a deadline (spec 04 A5) */
    gb_op_start(&call->op, c->cfg.reactor, done, arg, cancel_call, c);
    gb_str_deinit(&call->answer);
    call->answer = (struct gb_str){0};
    call->error = (struct gb_aws_error){0};
    call->request_id[0] = '\0';
    call->attempts = 0;
    call->client = c;
    call->token_refreshed = false;
    call->skew_corrected = false;
    call->maybe_done = false;
    begin_attempt(call);
}

void gb_aws_call_deinit(struct gb_aws_call *call)
{
    GB_ASSERT(!gb_op_pending(&call->op));
    if (call->headers.data != NULL) gb_wipe(call->headers.data, call->headers.capacity);
    gb_str_deinit(&call->headers);
    gb_str_deinit(&call->body);
    gb_str_deinit(&call->answer);
    gb_http_deinit(&call->http);
    *call = (struct gb_aws_call){0};
}
