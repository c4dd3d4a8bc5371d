#include "contract/dynamodb_driver.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/duration.h"

/* Waits between attempts have tests of their own (aws_client_test.c). */
#define BACKOFF_NS (20 * GB_MS)

static const char *env(void *ctx, const char *name)
{
    const struct dynamodb_driver *d = ctx;
    if (strcmp(name, "AWS_REGION") == 0) return "eu-west-1";
    return strcmp(name, "AWS_ENDPOINT_URL_DYNAMODB") == 0 ? d->endpoint : NULL;
}

static struct gb_err no_file(void *ctx, const char *path, struct gb_str *out)
{
    (void)ctx;
    (void)out;
    return gb_err(GB_NOT_FOUND, "%s", path);
}

void dynamodb_driver_open(struct dynamodb_driver *d, const struct dynamodb_driver_cfg *cfg)
{
    *d = (struct dynamodb_driver){0};
    (void)snprintf(d->endpoint, sizeof d->endpoint, "%s", cfg->endpoint);
    assert_int_equal(gb_loop_new(&d->loop).code, GB_OK);
    d->reactor = gb_loop_reactor(d->loop);
    const struct gb_http_curl_cfg http = {.connections_max = 16};
    assert_int_equal(gb_http_curl_new(d->loop, &http, &d->http).code, GB_OK);
    const struct gb_aws_env env_of_driver = {.get = env, .read_file = no_file, .ctx = d};
    const struct gb_aws_credentials_cfg credentials = {.reactor = d->reactor,
                                                       .http = d->http,
                                                       .env = env_of_driver,
                                                       .access_key_id = "AKIDEXAMPLE",
                                                       .secret_access_key = "secret"};
    assert_int_equal(gb_aws_credentials_new(&credentials, &d->credentials).code, GB_OK);
    const struct gb_dynamodb_client_cfg client = {.reactor = d->reactor,
                                                  .http = d->http,
                                                  .credentials = d->credentials,
                                                  .env = env_of_driver,
                                                  .attempt_timeout_ns = cfg->attempt_timeout_ns,
                                                  .backoff_cap_ns = BACKOFF_NS,
                                                  .calls_max = cfg->calls_max};
    assert_int_equal(gb_dynamodb_client_new(&client, &d->client).code, GB_OK);
}

static void on_closed(struct gb_op *op, void *arg)
{
    (void)op;
    gb_loop_stop(((struct dynamodb_driver *)arg)->loop);
}

void dynamodb_driver_close(struct dynamodb_driver *d)
{
    if (d->client != NULL) {
        gb_dynamodb_client_close(d->client, &d->close_op, on_closed, d);
        gb_loop_run(d->loop);
    }
    gb_aws_credentials_unref(d->credentials);
    d->http->ops->close(d->http, &d->close_op, on_closed, d);
    gb_loop_run(d->loop);
    gb_loop_drain_closing(d->loop);
    gb_loop_free(d->loop);
}

static void on_done(struct gb_op *op, void *arg)
{
    struct dynamodb_driver *d = arg;
    (void)op;
    if (--d->pending == 0) gb_loop_stop(d->loop);
}

void dynamodb_driver_start(struct dynamodb_driver *d, struct gb_dynamodb_call *call)
{
    call->op.deadline_ns = gb_reactor_now_ns(d->reactor) + (uint64_t)(20 * GB_SEC);
    d->pending++;
    gb_dynamodb_start(d->client, call, on_done, d);
}

void dynamodb_driver_wait(struct dynamodb_driver *d)
{
    if (d->pending > 0) gb_loop_run(d->loop);
}

enum gb_code dynamodb_driver_run(struct dynamodb_driver *d, struct gb_dynamodb_call *call)
{
    dynamodb_driver_start(d, call);
    dynamodb_driver_wait(d);
    return call->op.result.code;
}

void dynamodb_driver_create_table(struct dynamodb_driver *d, enum gb_dynamodb_role role,
                                  const char *name)
{
    struct gb_dynamodb_call call = {0};
    gb_dynamodb_begin(&call, GB_DYNAMODB_CREATE_TABLE, name);
    gb_dynamodb_w_table(&call.w, gb_dynamodb_table_of(role));
    assert_int_equal(dynamodb_driver_run(d, &call), GB_OK);
    gb_dynamodb_call_deinit(&call);
}
