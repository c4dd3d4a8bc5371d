#include <stdlib.h>
#include <string.h>

#include "adapters/mqtt/mqtt_session.h"
#include "adapters/sqs/sqs_sender.h"
#include "app/runtime_parts.h"

static bool in_use(const struct gb_blueprint *b, const struct gb_bp_sender *sender)
{
    for (size_t i = 0; i < b->route_count; i++) {
        const struct gb_bp_route *route = &b->routes[i];
        for (size_t k = 0; k < route->binding_ids.count; k++)
            if (route->bindings[k]->sender == sender) return true;
    }
    return false;
}

static struct gb_err build_mqtt(struct gb_runtime *r, struct gb_built_sender *b)
{
    const struct gb_bp_mqtt_sender *m = &b->bp->mqtt;
    struct gb_built_session *session = gb_runtime_session_of(r, b->bp->session);
    if (session == NULL || session->session == NULL)
        return gb_err(GB_INVALID_CONFIG, "its session is not built");
    const struct gb_mqtt_sender_cfg cfg = {
        .id = b->bp->id,
        .default_topic = m->default_topic,
        .qos = (uint8_t)m->qos.value,
        .retain = m->retain.value,
        .timeout_ns = m->timeout.ns,
        .throttle_retry_after_ns = m->throttle_retry_after.ns,
    };
    return gb_mqtt_session_add_sender(session->session, &cfg, &b->sender);
}

/* SQS takes long-lived keys only from a URI (spec 04 D1). */
static struct gb_err check_keys(const struct gb_credential_set *set)
{
    if (set == NULL) return gb_ok();
    if (set->username == NULL || set->password == NULL) {
        return gb_err(GB_INVALID_CONFIG,
                      "credentials_uri gives no username and password; SQS takes them as access "
                      "key id and secret key");
    }
    if (strncmp(set->username, "ASIA", 4) == 0) {
        return gb_err(GB_NOT_AUTHORIZED,
                      "credentials_uri gives a temporary access key (ASIA...); use a long-lived "
                      "one, or leave credentials_uri out for the credential chain");
    }
    return gb_ok();
}

static struct gb_err build_sqs(struct gb_runtime *r, struct gb_built_sender *b)
{
    const struct gb_bp_sqs_sender *s = &b->bp->sqs;
    const struct gb_credential_set *set = gb_secrets_find(r->cfg.secrets, s->credentials_uri);
    struct gb_err err = check_keys(set);
    if (gb_failed(err)) return err;
    const struct gb_aws_env env = gb_aws_env_process();
    const struct gb_aws_credentials_cfg credentials = {
        .reactor = r->reactor,
        .http = r->http,
        .env = env,
        .profile = set == NULL ? s->queue.profile : NULL,
        .access_key_id = set == NULL ? NULL : set->username,
        .secret_access_key = set == NULL ? NULL : set->password,
        .instance_id = r->cfg.instance_id,
        .region = s->queue.region,
    };
    err = gb_aws_credentials_new(&credentials, &b->credentials);
    if (gb_failed(err)) return err;
    const struct gb_sqs_sender_cfg cfg = {
        .id = b->bp->id,
        .queue_url = s->queue.queue_url,
        .queue_name = s->queue.queue_name,
        .profile = s->queue.profile,
        .region = s->queue.region,
        .endpoint = s->queue.endpoint,
        .batch_size = (uint32_t)s->batch_size.value,
        .delay_seconds = (uint32_t)s->delay_seconds.value,
        .timeout_ns = s->timeout.ns,
        .linger_ns = s->linger.ns,
        .fifo = gb_blueprint_sqs_fifo(s),
        .message_group_id = s->message_group_id,
        .max_message_bytes = (uint64_t)s->max_message_bytes.value,
        .payload_encoding = (enum gb_payload_encoding)s->payload_encoding.value,
        .reactor = r->reactor,
        .http = r->http,
        .metrics = r->cfg.metrics,
        .credentials = b->credentials,
        .env = env,
    };
    return gb_sqs_sender_new(&cfg, &b->sender);
}

_Static_assert((int)GB_BP_ENCODE_AUTO == (int)GB_ENCODING_AUTO &&
                   (int)GB_BP_ENCODE_TEXT == (int)GB_ENCODING_TEXT &&
                   (int)GB_BP_ENCODE_BASE64 == (int)GB_ENCODING_BASE64,
               "the document's words are the sender's");

struct gb_err gb_build_senders(struct gb_runtime *r)
{
    const struct gb_blueprint *bp = r->cfg.blueprint;
    r->senders = calloc(bp->sender_count + 1, sizeof *r->senders);
    if (r->senders == NULL) return gb_err_no_memory("senders");
    for (size_t i = 0; i < bp->sender_count; i++) {
        struct gb_built_sender *b = &r->senders[i];
        b->bp = &bp->senders[i];
        r->sender_count = i + 1;
        if (!in_use(bp, b->bp)) continue;
        struct gb_err err =
            b->bp->transport.value == GB_BP_MQTT ? build_mqtt(r, b) : build_sqs(r, b);
        if (gb_failed(err)) return gb_err_in(err, "sender %s", b->bp->id);
    }
    return gb_ok();
}

struct gb_sender *gb_runtime_sender_of(struct gb_runtime *r, const struct gb_bp_sender *bp)
{
    for (size_t i = 0; i < r->sender_count; i++)
        if (r->senders[i].bp == bp) return r->senders[i].sender;
    return NULL;
}
