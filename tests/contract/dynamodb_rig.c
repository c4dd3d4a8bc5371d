#include "contract/dynamodb_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/duration.h"

static const char *env(void *ctx, const char *name)
{
    const struct dynamodb_rig *r = ctx;
    if (strcmp(name, "AWS_REGION") == 0) return "eu-west-1";
    return strcmp(name, "AWS_ENDPOINT_URL_DYNAMODB") == 0 ? r->endpoint : NULL;
}

static struct gb_err no_file(void *ctx, const char *path, struct gb_str *out)
{
    (void)ctx;
    (void)out;
    return gb_err(GB_NOT_FOUND, "%s", path);
}

void dynamodb_rig_open(struct dynamodb_rig *r, const struct dynamodb_rig_cfg *cfg)
{
    *r = (struct dynamodb_rig){0};
    (void)snprintf(r->endpoint, sizeof r->endpoint, "%s", cfg->endpoint);
    assert_int_equal(gb_loop_new(&r->loop).code, GB_OK);
    r->reactor = gb_loop_reactor(r->loop);
    const struct gb_http_curl_cfg http = {.connections_max = 16};
    assert_int_equal(gb_http_curl_new(r->loop, &http, &r->http).code, GB_OK);
    const struct gb_aws_env rig_env = {.get = env, .read_file = no_file, .ctx = r};
    const struct gb_aws_credentials_cfg credentials = {.reactor = r->reactor,
                                                       .http = r->http,
                                                       .env = rig_env,
                                                       .access_key_id = "AKIDEXAMPLE",
                                                       .secret_access_key = "secret"};
    assert_int_equal(gb_aws_credentials_new(&credentials, &r->credentials).code, GB_OK);
    const struct gb_dynamodb_client_cfg client = {.reactor = r->reactor,
                                                  .http = r->http,
                                                  .credentials = r->credentials,
                                                  .env = rig_env,
                                                  .attempt_timeout_ns = cfg->attempt_timeout_ns,
                                                  .calls_max = cfg->calls_max};
    assert_int_equal(gb_dynamodb_client_new(&client, &r->client).code, GB_OK);
}

static void on_closed(struct gb_op *op, void *arg)
{
    (void)op;
    gb_loop_stop(((struct dynamodb_rig *)arg)->loop);
}

void dynamodb_rig_close(struct dynamodb_rig *r)
{
    if (r->client != NULL) {
        gb_dynamodb_client_close(r->client, &r->close_op, on_closed, r);
        gb_loop_run(r->loop);
    }
    gb_aws_credentials_unref(r->credentials);
    r->http->ops->close(r->http, &r->close_op, on_closed, r);
    gb_loop_run(r->loop);
    gb_loop_drain_closing(r->loop);
    gb_loop_free(r->loop);
}

static void on_done(struct gb_op *op, void *arg)
{
    struct dynamodb_rig *r = arg;
    (void)op;
    if (--r->pending == 0) gb_loop_stop(r->loop);
}

void dynamodb_rig_start(struct dynamodb_rig *r, struct gb_dynamodb_call *call)
{
    call->op.deadline_ns = gb_reactor_now_ns(r->reactor) + (uint64_t)(20 * GB_SEC);
    r->pending++;
    gb_dynamodb_start(r->client, call, on_done, r);
}

void dynamodb_rig_wait(struct dynamodb_rig *r)
{
    if (r->pending > 0) gb_loop_run(r->loop);
}

enum gb_code dynamodb_rig_run(struct dynamodb_rig *r, struct gb_dynamodb_call *call)
{
    dynamodb_rig_start(r, call);
    dynamodb_rig_wait(r);
    return call->op.result.code;
}
