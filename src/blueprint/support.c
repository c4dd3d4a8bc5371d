#include <stdio.h>

#include "blueprint/schema.h"
#include "blueprint/validate.h"

/* What is valid by the specification but not built in this release is refused by name, never
 * ignored. A line goes when its part comes. */

static void refuse(struct gb_check *c, const char *key, const char *what, const char *remedy)
{
    gb_check_error(c, GB_RULE_NOT_SUPPORTED, key, "%s is not supported yet by this release; %s",
                   what, remedy);
}

static void check_exporter(struct gb_check *c, const char *key, const struct gb_opt_word *exporter)
{
    char text[GB_CHECK_PATH_MAX];
    if (exporter->value == GB_BP_EXPORT_NONE) return;
    (void)snprintf(text, sizeof text, "%s: %s", key, gb_node_locate(c->entry, key)->text);
    refuse(c, key, text, "write none");
}

static void check_bridge(struct gb_check *c)
{
    const struct gb_bp_cluster *cluster = &c->b->bridge.cluster;
    if (cluster->rollout.value == GB_BP_ROLLOUT_INDEPENDENT ||
        cluster->rollout.value == GB_BP_ROLLOUT_COORDINATED) {
        refuse(c, "bridge.cluster.rollout", "a bridge.cluster.rollout other than refuse",
               "use refuse, and replace the whole cohort");
    }
    if (c->b->http.tls_cert_file != NULL)
        refuse(c, "http.tls_cert_file", "http.tls_cert_file", "end TLS in front of the listener");
    if (c->b->http.cors_origins.count > 0)
        refuse(c, "http.cors_origins", "http.cors_origins", "remove it");
    if (c->b->telemetry.metrics.exporter.value != GB_BP_EXPORT_PROMETHEUS)
        check_exporter(c, "telemetry.metrics.exporter", &c->b->telemetry.metrics.exporter);
    check_exporter(c, "telemetry.tracing.exporter", &c->b->telemetry.tracing.exporter);
}

static void check_credentials(struct gb_check *c, const char *uri, const char *remedy)
{
    if (uri != NULL) refuse(c, "options.credentials_uri", "options.credentials_uri", remedy);
}

static void check_receivers(struct gb_check *c)
{
    for (size_t i = 0; i < c->b->receiver_count; i++) {
        const struct gb_bp_receiver *r = &c->b->receivers[i];
        gb_check_enter(c, "receivers", i, r->id, r->node);
        if (r->transport.value == GB_BP_SQS) {
            refuse(c, "transport", "transport sqs of a receiver", "use an MQTT receiver");
        }
        if (r->transport.value == GB_BP_HTTP) {
            refuse(c, "transport", "transport http", "use an MQTT receiver");
        }
        if (r->transport.value == GB_BP_MQTT && r->topic_count == 0) {
            refuse(c, "topics", "a receiver without topics", "list at least one topic");
        }
        check_credentials(c, r->credentials_uri, "write it in the session of the receiver");
    }
}

static void check_senders(struct gb_check *c)
{
    for (size_t i = 0; i < c->b->sender_count; i++) {
        const struct gb_bp_sender *s = &c->b->senders[i];
        gb_check_enter(c, "senders", i, s->id, s->node);
        if (s->transport.value == GB_BP_HTTP) {
            refuse(c, "transport", "transport http", "use an MQTT or SQS sender");
        }
        if (s->sqs.queue.queue_tags.count > 0) {
            refuse(c, "options.queue_tags", "options.queue_tags", "use queue_url or queue_name");
        }
        check_credentials(c, s->credentials_uri, "write it in the session of the sender");
    }
}

static void check_routes(struct gb_check *c)
{
    for (size_t i = 0; i < c->b->route_count; i++) {
        const struct gb_bp_route *r = &c->b->routes[i];
        gb_check_enter(c, "routes", i, r->id, r->node);
        if (r->processors.count > 0) refuse(c, "processors", "processors", "remove them");
        if (r->resolver.type.value == GB_BP_RULES) {
            refuse(c, "resolver.type", "resolver.type: rules", "use static or all");
        }
        if (r->resolver.type.value == GB_BP_HEADER_MAP) {
            refuse(c, "resolver.type", "resolver.type: header_map", "use static or all");
        }
    }
}

struct gb_err gb_blueprint_supported(const struct gb_blueprint *b, struct gb_findings *findings)
{
    struct gb_check c = {.b = b, .findings = findings};
    gb_check_leave(&c);
    check_bridge(&c);
    check_receivers(&c);
    check_senders(&c);
    check_routes(&c);
    gb_findings_sort(findings);
    return gb_findings_check(findings);
}
