#include "app/dynamodb.h"

#include "io/file.h"
#include "io/http_curl.h"

struct gb_err gb_app_http_new(struct gb_loop *loop, struct gb_http **out)
{
    const char *ca_file = gb_env("AWS_CA_BUNDLE");
    const struct gb_http_curl_cfg cfg = {
        .ca_file = ca_file != NULL ? ca_file : gb_env("SSL_CERT_FILE"),
        .ca_path = gb_env("SSL_CERT_DIR"),
    };
    return gb_http_curl_new(loop, &cfg, out);
}

struct gb_err gb_app_dynamodb_new(struct gb_app_dynamodb *d, struct gb_loop *loop,
                                  struct gb_http *http, const char *instance_id)
{
    const struct gb_aws_env env = gb_aws_env_process();
    const struct gb_aws_credentials_cfg credentials = {
        .reactor = gb_loop_reactor(loop),
        .http = http,
        .env = env,
        .instance_id = instance_id,
    };
    struct gb_err err = gb_aws_credentials_new(&credentials, &d->credentials);
    if (gb_failed(err)) return err;
    const struct gb_dynamodb_client_cfg client = {
        .reactor = gb_loop_reactor(loop),
        .http = http,
        .credentials = d->credentials,
        .env = env,
    };
    return gb_dynamodb_client_new(&client, &d->client);
}

size_t gb_app_wants(const struct gb_blueprint *b, struct gb_dynamodb_want out[GB_BP_ROLE_COUNT])
{
    static const struct {
        enum gb_bp_role store;
        enum gb_dynamodb_role table;
    } rows[] = {
        {GB_BP_LEASE, GB_DYNAMODB_LEASE},
        {GB_BP_OUTBOX, GB_DYNAMODB_OUTBOX},
        {GB_BP_DLQ, GB_DYNAMODB_DLQ},
        {GB_BP_SUBSCRIPTIONS, GB_DYNAMODB_SUBSCRIPTIONS},
    };
    size_t count = 0;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct gb_bp_store *s = &b->stores[rows[i].store];
        if (s->node == NULL || s->type.value != GB_BP_DYNAMODB) continue;
        bool expires = rows[i].table == GB_DYNAMODB_DLQ && s->options.retention.ns > 0;
        out[count++] = (struct gb_dynamodb_want){
            .role = rows[i].table,
            .table = s->options.table_name,
            .ttl = expires || rows[i].table == GB_DYNAMODB_OUTBOX,
            .advisory = s->options.preflight_advisory.value,
        };
    }
    return count;
}

/* --- for the modes that end --- */

struct gb_err gb_app_aws_open(struct gb_app_aws *a, struct gb_loop *loop)
{
    *a = (struct gb_app_aws){.loop = loop};
    struct gb_err err = gb_app_http_new(loop, &a->http);
    return gb_failed(err) ? err : gb_app_dynamodb_new(&a->d, loop, a->http, "gobridge-tool");
}

static void closed(struct gb_op *op, void *arg)
{
    (void)op;
    gb_loop_stop(((struct gb_app_aws *)arg)->loop);
}

void gb_app_aws_close(struct gb_app_aws *a)
{
    if (a->d.client != NULL) {
        gb_dynamodb_client_close(a->d.client, &a->close, closed, a);
        gb_loop_run(a->loop);
    }
    gb_aws_credentials_unref(a->d.credentials);
    if (a->http != NULL) {
        a->http->ops->close(a->http, &a->close, closed, a);
        gb_loop_run(a->loop);
    }
    *a = (struct gb_app_aws){0};
}
