#include <stdlib.h>
#include <string.h>

#include "adapters/aws/aws_url.h"
#include "adapters/sqs/sqs_sender_parts.h"
#include "base/log.h"

/* --- names --- */

static struct gb_bytes last_segment(const char *url)
{
    const char *slash = url == NULL ? NULL : strrchr(url, '/');
    return slash == NULL ? gb_bytes(NULL, 0) : gb_bytes_c(slash + 1);
}

static bool has_suffix(const char *text, const char *suffix)
{
    size_t size = text == NULL ? 0 : strlen(text);
    size_t suffix_size = strlen(suffix);
    return size >= suffix_size && strcmp(text + size - suffix_size, suffix) == 0;
}

struct gb_err gb_sqs_check_options(const struct gb_sqs_sender_cfg *cfg, const char *url)
{
    bool suffix = has_suffix(url, ".fifo") || has_suffix(cfg->queue_name, ".fifo");
    bool group = cfg->message_group_id != NULL && cfg->message_group_id[0] != '\0';
    if (suffix && !cfg->fifo && !group) {
        return gb_err(GB_INVALID_CONFIG,
                      "sender \"%s\": a .fifo queue needs fifo: true or "
                      "message_group_id",
                      cfg->id);
    }
    if ((suffix || cfg->fifo || group) && cfg->delay_seconds > 0) {
        return gb_err(GB_INVALID_CONFIG,
                      "sender \"%s\": delay_seconds %u is not possible on a FIFO queue", cfg->id,
                      cfg->delay_seconds);
    }
    return gb_ok();
}

static bool is(struct gb_bytes address, const char *name)
{
    return name != NULL && gb_bytes_equal(address, gb_bytes_c(name));
}

/* A sender that only knows a name takes any URL with it, until the URL is resolved (spec 04 B2). */
static bool is_url_of_name(const struct sqs_sender *s, struct gb_bytes address)
{
    if (s->url != NULL || s->cfg.queue_name == NULL) return false;
    size_t start = address.size;
    while (start > 0 && address.data[start - 1] != '/') start--;
    return start > 0 && is(gb_bytes(address.data + start, address.size - start), s->cfg.queue_name);
}

struct gb_err gb_sqs_check_address(const struct sqs_sender *s, struct gb_bytes address)
{
    if (address.size == 0 || is(address, s->url) || is(address, s->cfg.queue_name) ||
        is(address, "sqs:queue") ||
        (s->url != NULL && gb_bytes_equal(address, last_segment(s->url))) ||
        is_url_of_name(s, address))
        return gb_ok();
    return gb_err(GB_INVALID_TOPIC,
                  "address \"%.*s\" is not the queue of sender \"%s\"; use its queue name, its URL "
                  "or sqs:queue",
                  (int)(address.size < 80 ? address.size : 80), (const char *)address.data,
                  s->base.id);
}

/* --- client --- */

/* The label in https://sqs.<region>.amazonaws.com/...; empty when the host has another form. */
static void region_of_url(const char *url, struct gb_str *out)
{
    struct gb_aws_url parts = {0};
    if (url == NULL || gb_failed(gb_aws_url_parse(url, &parts))) return;
    const char *host = parts.hostname;
    const char *dot = strncmp(host, "sqs.", 4) == 0 ? strchr(host + 4, '.') : NULL;
    if (dot != NULL &&
        (strcmp(dot, ".amazonaws.com") == 0 || strcmp(dot, ".amazonaws.com.cn") == 0))
        gb_str_append(out, gb_bytes(host + 4, (size_t)(dot - host) - 4));
    gb_aws_url_deinit(&parts);
}

static struct gb_err find_region(struct sqs_sender *s, struct gb_str *out)
{
    struct gb_str label = {0};
    region_of_url(s->cfg.queue_url, &label);
    struct gb_err err = gb_aws_region(&s->cfg.env, s->cfg.region, s->cfg.profile, out);
    if (gb_failed(err) && label.size > 0) {
        gb_str_append(out, gb_str_bytes(&label));
        err = gb_str_check(out, "region");
    } else if (!gb_failed(err) && label.size > 0 &&
               !gb_bytes_equal(gb_str_bytes(out), gb_str_bytes(&label))) {
        GB_LOG(GB_LOG_WARN, "sqs queue_url names another region than the effective one",
               gb_lf_str("sender_id", s->base.id), gb_lf_str("region", out->data),
               gb_lf_str("queue_url", s->cfg.queue_url));
    }
    gb_str_deinit(&label);
    return err;
}

static struct gb_err make_client(struct sqs_sender *s)
{
    struct gb_str region = {0};
    struct gb_str endpoint = {0};
    struct gb_err err = find_region(s, &region);
    if (!gb_failed(err))
        err = gb_aws_endpoint(&s->cfg.env, s->cfg.endpoint, "sqs", region.data, &endpoint);
    if (!gb_failed(err)) {
        const struct gb_aws_client_cfg cfg = {
            .reactor = s->cfg.reactor,
            .http = s->cfg.http,
            .credentials = s->cfg.credentials,
            .service = "sqs",
            .target_prefix = "AmazonSQS",
            .content_type = "application/x-amz-json-1.0",
            .region = region.data,
            .endpoint = endpoint.data,
            .classify = gb_sqs_classify,
        };
        err = gb_aws_client_new(&cfg, &s->client);
    }
    gb_str_deinit(&region);
    gb_str_deinit(&endpoint);
    return gb_failed(err) ? gb_err_in(err, "sender \"%s\"", s->base.id) : err;
}

/* The series carry the URL, which is known only now. */
static void find_metrics(struct sqs_sender *s)
{
    struct gb_metrics *m = s->cfg.metrics;
    const struct gb_dimension queue = {"queue_url", s->url};
    s->send_latency = gb_metrics_get(m, GB_METRIC_TIMER, "SQSSendLatency", &queue, 1);
    s->batch_latency = gb_metrics_get(m, GB_METRIC_TIMER, "SQSSendBatchLatency", &queue, 1);
    s->dropped = gb_metrics_get(m, GB_METRIC_COUNTER, "SQSDroppedAttributes", &queue, 1);
}

/* --- resolving --- */

struct gb_err gb_sqs_with_grace(struct sqs_sender *s, const struct gb_aws_call *call)
{
    struct gb_err err = call->op.result;
    bool credentials = err.code == GB_NOT_AUTHORIZED && call->error.status == 0;
    if (!credentials && !gb_sqs_is_plain_auth(&call->error)) return err;
    return gb_sqs_grace_failure(&s->grace, gb_sqs_now(s), err.message);
}

static struct gb_err take_url(struct sqs_sender *s)
{
    char *url = NULL;
    if (gb_failed(s->resolve.op.result)) return gb_sqs_with_grace(s, &s->resolve);
    gb_sqs_grace_success(&s->grace);
    struct gb_err err = gb_sqs_read_queue_url(gb_str_bytes(&s->resolve.answer), &url);
    if (!gb_failed(err)) err = gb_sqs_check_options(&s->cfg, url);
    if (gb_failed(err)) {
        free(url);
        return err;
    }
    s->url = url;
    return err;
}

static void resolved(struct gb_op *op, void *arg)
{
    struct sqs_sender *s = arg;
    (void)op;
    s->resolving = false;
    struct gb_err err = take_url(s);
    /* Not cached (spec 04 B2): the next send asks again. */
    if (gb_failed(err)) gb_sqs_fail_waiting(s, err);
    gb_sqs_wake(s);
}

static void start_resolving(struct sqs_sender *s)
{
    struct gb_json_writer w;
    struct gb_aws_call *call = &s->resolve;
    gb_str_clear(&call->body);
    gb_json_w_init(&w, &call->body);
    gb_json_w_object(&w);
    gb_json_w_key(&w, "QueueName");
    gb_json_w_string_c(&w, s->cfg.queue_name);
    gb_json_w_object_end(&w);
    struct gb_err err = gb_str_check(&call->body, "GetQueueUrl request");
    if (gb_failed(err)) {
        gb_sqs_fail_waiting(s, err);
        return;
    }
    call->action = "GetQueueUrl";
    call->op.deadline_ns = gb_sqs_now(s) + (uint64_t)s->cfg.timeout_ns;
    s->resolving = true;
    gb_aws_call_start(s->client, call, resolved, s);
}

bool gb_sqs_prepare(struct sqs_sender *s)
{
    if (s->resolving) return false;
    if (s->client == NULL) {
        struct gb_err err = make_client(s);
        if (gb_failed(err)) {
            gb_sqs_fail_waiting(s, err);
            return false;
        }
    }
    if (s->url == NULL) {
        start_resolving(s);
        return false;
    }
    if (s->send_latency == NULL) find_metrics(s);
    return true;
}
