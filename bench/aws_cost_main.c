#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "adapters/sqs/sqs_sender.h"
#include "base/assert.h"
#include "base/duration.h"

/* What AWS calls cost in CPU besides the network: one signature over a 4 KiB body, and one message
 * through the SQS sender (batches of ten, an HTTP client that answers at once). Prints
 * microseconds. */
enum { SIGNATURES = 50000, CYCLES = 500, RECORDS = 100 };

static double cpu_us(void)
{
    struct timespec t;
    GB_ASSERT(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t) == 0);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void sign_cost(void)
{
    static char body[4096];
    const struct gb_sigv4_credentials c = {"AKIDEXAMPLE", "secret", NULL};
    struct gb_sigv4_header headers[] = {
        {gb_bytes_c("content-type"), gb_bytes_c("application/x-amz-json-1.0")},
        {gb_bytes_c("host"), gb_bytes_c("sqs.eu-west-1.amazonaws.com")},
        {gb_bytes_c("x-amz-date"), gb_bytes_c("20261201T100000Z")},
        {gb_bytes_c("x-amz-target"), gb_bytes_c("AmazonSQS.SendMessageBatch")}};
    struct gb_sigv4_request q = {.method = "POST",
                                 .path = gb_bytes_c("/"),
                                 .headers = headers,
                                 .header_count = 4,
                                 .body = gb_bytes(body, sizeof body),
                                 .time_ms = INT64_C(1796119200000),
                                 .region = "eu-west-1",
                                 .service = "sqs"};
    struct gb_sigv4_key key = {0};
    struct gb_str out = {0};
    double start = cpu_us();
    for (int i = 0; i < SIGNATURES; i++) {
        gb_str_clear(&out);
        GB_ASSERT(!gb_failed(gb_sigv4_sign(&q, &c, &key, &out)));
    }
    (void)printf("sigv4, 4 KiB body: %.2f us\n", (cpu_us() - start) / SIGNATURES);
    gb_str_deinit(&out);
}

/* --- an HTTP client without network --- */

struct instant {
    struct gb_http http;
    struct gb_reactor *reactor;
    uint64_t requests;
};

static void request(struct gb_http *h, struct gb_http_request *q, gb_done_fn *done, void *arg)
{
    static const char entry[] =
        "{\"Id\":\"%d\",\"MessageId\":\"0123456789abcdef0123456789abcdef\"}";
    struct instant *i = GB_CONTAINER_OF(h, struct instant, http);
    i->requests++;
    gb_op_start(&q->op, i->reactor, done, arg, NULL, NULL);
    q->status = 200;
    gb_str_append_c(&q->answer, "{\"Successful\":[");
    for (int n = 0; n < 10; n++) {
        if (n > 0) gb_str_append_char(&q->answer, ',');
        gb_str_appendf(&q->answer, entry, n);
    }
    gb_str_append_c(&q->answer, "],\"Failed\":[]}");
    gb_op_finish(&q->op, gb_ok());
}
static const struct gb_http_ops instant_ops = {.request = request};

static const char *no_env(void *ctx, const char *name)
{
    (void)ctx;
    (void)name;
    return NULL;
}

static void count(struct gb_op *op, void *arg)
{
    GB_ASSERT(!gb_failed(op->result));
    (*(uint64_t *)arg)++;
}

static struct gb_envelope *make_envelope(size_t payload_size)
{
    struct gb_envelope *e = NULL;
    GB_ASSERT(!gb_failed(gb_envelope_new(payload_size + 256, &e)));
    uint8_t *payload = gb_envelope_reserve_payload(e, payload_size);
    GB_ASSERT(payload != NULL);
    memset(payload, 'a', payload_size);
    GB_ASSERT(!gb_failed(gb_envelope_set_id(e, gb_bytes_c("id"))));
    GB_ASSERT(!gb_failed(gb_envelope_set_subject(e, gb_bytes_c("devices/7/telemetry"))));
    GB_ASSERT(!gb_failed(
        gb_envelope_put_text(e, "traceparent", gb_bytes_c("00-0123456789abcdef-0123-01"))));
    GB_ASSERT(
        !gb_failed(gb_envelope_put_text(e, "x-bridge.route-id", gb_bytes_c("telemetry-to-sqs"))));
    GB_ASSERT(!gb_failed(gb_envelope_put_text(e, "x-bridge.correlation-id",
                                              gb_bytes_c("0123456789abcdef0123456789abcdef"))));
    return e;
}

static void send_cost(size_t payload_size)
{
    struct instant http = {.http = {&instant_ops}};
    struct gb_aws_env env = {.get = no_env};
    struct gb_metrics *metrics = NULL;
    struct gb_aws_credentials *credentials = NULL;
    struct gb_sender *sender = NULL;
    static struct gb_send sends[RECORDS];
    uint64_t done = 0;
    GB_ASSERT(!gb_failed(gb_reactor_new(1, &http.reactor)));
    GB_ASSERT(!gb_failed(gb_metrics_new(&metrics)));
    struct gb_aws_credentials_cfg keys = {.reactor = http.reactor,
                                          .http = &http.http,
                                          .env = env,
                                          .access_key_id = "A",
                                          .secret_access_key = "s"};
    GB_ASSERT(!gb_failed(gb_aws_credentials_new(&keys, &credentials)));
    struct gb_sqs_sender_cfg cfg = {.id = "out",
                                    .queue_url = "https://sqs.eu-west-1.amazonaws.com/1/q",
                                    .region = "eu-west-1",
                                    .batch_size = 10,
                                    .timeout_ns = 30 * GB_SEC,
                                    .reactor = http.reactor,
                                    .http = &http.http,
                                    .metrics = metrics,
                                    .credentials = credentials,
                                    .env = env};
    GB_ASSERT(!gb_failed(gb_sqs_sender_new(&cfg, &sender)));
    struct gb_envelope *e = make_envelope(payload_size);
    double start = cpu_us();
    for (uint64_t cycle = 1; cycle <= CYCLES; cycle++) {
        for (size_t i = 0; i < RECORDS; i++) {
            sends[i].envelope = e;
            sends[i].batch = true;
            sends[i].op.deadline_ns = cycle * (uint64_t)GB_MS + (uint64_t)GB_MINUTE;
            sender->ops->send(sender, &sends[i], count, &done);
        }
        gb_reactor_run(http.reactor, cycle * (uint64_t)GB_MS, (int64_t)cycle);
    }
    double each = (cpu_us() - start) / ((double)CYCLES * RECORDS);
    GB_ASSERT(done == (uint64_t)CYCLES * RECORDS);
    (void)printf("sqs send, %zu byte payload, batches of 10 with signing: %.2f us a message "
                 "(%.2f messages a request)\n",
                 payload_size, each, (double)done / (double)http.requests);
    struct gb_op op = {0};
    sender->ops->close(sender, &op, count, &done);
    gb_reactor_run(http.reactor, (uint64_t)GB_HOUR, 0);
    gb_aws_credentials_unref(credentials);
    gb_envelope_unref(e);
    gb_metrics_free(metrics);
    gb_reactor_free(http.reactor);
}

int main(void)
{
    sign_cost();
    send_cost(200);
    send_cost(1024);
    return 0;
}
