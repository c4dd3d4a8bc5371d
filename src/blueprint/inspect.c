#include "blueprint/inspect.h"

#include <stdlib.h>

#include "base/json_write.h"
#include "base/map.h"
#include "blueprint/document.h"
#include "blueprint/identity.h"
#include "blueprint/schema.h"
#include "domain/mqtt_topic.h"

static void put_text(struct gb_json_writer *w, const char *key, const char *value)
{
    gb_json_w_key(w, key);
    if (value == NULL) {
        gb_json_w_null(w);
    } else {
        gb_json_w_string_c(w, value);
    }
}

static void put_bool(struct gb_json_writer *w, const char *key, bool value)
{
    gb_json_w_key(w, key);
    gb_json_w_bool(w, value);
}

static void put_ns(struct gb_json_writer *w, const char *key, struct gb_opt_ns value)
{
    gb_json_w_key(w, key);
    if (value.ns == 0 && !value.given) {
        gb_json_w_null(w);
    } else {
        gb_json_w_i64(w, value.ns);
    }
}

static void put_texts(struct gb_json_writer *w, const char *key, const char *const *items,
                      size_t count)
{
    gb_json_w_key(w, key);
    gb_json_w_array(w);
    for (size_t i = 0; i < count; i++) gb_json_w_string_c(w, items[i]);
    gb_json_w_array_end(w);
}

static void put_map(struct gb_json_writer *w, const char *key, const struct gb_bp_map *map)
{
    gb_json_w_key(w, key);
    gb_json_w_object(w);
    for (size_t i = 0; i < map->count; i++) {
        gb_json_w_key_bytes(w, gb_bytes_c(map->items[i].key));
        gb_json_w_string_c(w, map->items[i].value);
    }
    gb_json_w_object_end(w);
}

static const char *id_of(const struct gb_bp_session *session)
{
    return session == NULL ? NULL : session->id;
}

static void put_findings(struct gb_json_writer *w, const char *key, const struct gb_inspection *of,
                         enum gb_severity severity)
{
    const struct gb_findings *f = of->findings;
    size_t rest = severity == GB_FINDING_ERROR ? f->error_count : f->warning_count;
    struct gb_str line = {0};
    gb_json_w_key(w, key);
    gb_json_w_array(w);
    for (size_t i = 0; i < f->count; i++) {
        if (f->items[i].severity != severity) continue;
        gb_str_clear(&line);
        gb_finding_print(&f->items[i], of->names, &line);
        gb_json_w_string(w, gb_str_bytes(&line));
        if (line.failed) w->out->failed = true;
        rest--;
    }
    if (rest > 0) {
        gb_str_clear(&line);
        gb_str_appendf(&line, "%s: %zu further findings are not shown", of->names[0], rest);
        gb_json_w_string(w, gb_str_bytes(&line));
        if (line.failed) w->out->failed = true;
    }
    gb_json_w_array_end(w);
    gb_str_deinit(&line);
}

static void put_cluster(struct gb_json_writer *w, const struct gb_bp_cluster *cluster)
{
    static const char *const rollouts[] = {
        [GB_BP_ROLLOUT_REFUSE] = "refuse",
        [GB_BP_ROLLOUT_INDEPENDENT] = "independent",
        [GB_BP_ROLLOUT_COORDINATED] = "coordinated",
    };
    gb_json_w_key(w, "cluster");
    gb_json_w_object(w);
    put_text(w, "rollout", rollouts[cluster->rollout.value]);
    put_texts(w, "members", cluster->members.items, cluster->members.count);
    put_map(w, "endpoints", &cluster->endpoints);
    gb_json_w_object_end(w);
}

static void put_stores(struct gb_json_writer *w, const struct gb_blueprint *b)
{
    gb_json_w_key(w, "stores");
    gb_json_w_object(w);
    for (int role = 0; role < GB_BP_ROLE_COUNT; role++) {
        const struct gb_bp_store *s = &b->stores[role];
        if (s->node == NULL) continue;
        bool dynamodb = s->type.value == GB_BP_DYNAMODB;
        const char *target = gb_blueprint_store_target(s);
        gb_json_w_key(w, gb_schema_role_name((enum gb_bp_role)role));
        gb_json_w_object(w);
        put_text(w, "type", gb_blueprint_store_type(s));
        put_text(w, "table_name", dynamodb ? target : NULL);
        put_texts(w, "paths", &target, target != NULL && !dynamodb ? 1 : 0);
        gb_json_w_object_end(w);
    }
    gb_json_w_object_end(w);
}

/* NULL where only the process knows the client id, or the broker is not one (spec 03 §3.4). */
static const char *storage_identity(const struct gb_bp_session *s, char out[GB_MQTT_IDENTITY_SIZE])
{
    struct gb_mqtt_endpoint endpoint;
    const struct gb_bp_mqtt_session *m = &s->mqtt;
    if (m->client_id_suffix.given || m->urls.count == 0 || m->client_id == NULL) return NULL;
    if (gb_failed(gb_mqtt_endpoint_parse(gb_bytes_c(m->urls.items[0]), &endpoint))) return NULL;
    gb_mqtt_storage_identity(&endpoint, gb_bytes_c(m->client_id), out);
    return out;
}

static void put_session(struct gb_json_writer *w, const struct gb_bp_session *s)
{
    static const char *const modes[] = {
        [GB_BP_EPHEMERAL] = "ephemeral",
        [GB_BP_PERSISTENT] = "persistent",
        [GB_BP_EXCLUSIVE] = "exclusive",
    };
    static const char *const suffixes[] = {
        [GB_BP_SUFFIX_NONE] = NULL,
        [GB_BP_SUFFIX_HOSTNAME] = "hostname",
        [GB_BP_SUFFIX_NONCE] = "nonce",
    };
    char identity[GB_MQTT_IDENTITY_SIZE];
    gb_json_w_object(w);
    put_text(w, "id", s->id);
    put_text(w, "transport", gb_schema_word_name(gb_schema_kinds, s->transport.value));
    put_text(w, "mode", modes[s->session_mode.value]);
    put_bool(w, "subscribes", s->receiver != NULL && s->receiver->topic_count > 0);
    put_text(w, "storage_identity", storage_identity(s, identity));
    put_text(w, "client_id_suffix", suffixes[s->mqtt.client_id_suffix.value]);
    gb_json_w_object_end(w);
}

/* Each once, in the order of the bindings. */
static void put_binding_sessions(struct gb_json_writer *w, const struct gb_bp_route *r)
{
    struct gb_map said = {0};
    gb_json_w_key(w, "binding_sessions");
    gb_json_w_array(w);
    for (size_t i = 0; i < r->binding_ids.count; i++) {
        const struct gb_bp_session *s = gb_blueprint_effective_session(r, r->bindings[i]);
        if (s == NULL || gb_map_has(&said, gb_bytes_c(s->id))) continue;
        gb_json_w_string_c(w, s->id);
        if (gb_failed(gb_map_put(&said, gb_bytes_c(s->id), w))) w->out->failed = true;
    }
    gb_json_w_array_end(w);
    gb_map_deinit(&said);
}

static void put_route(struct gb_json_writer *w, const struct gb_bp_route *r)
{
    bool outbox = r->delivery_mode.value == GB_SHARED_OUTBOX;
    bool persist =
        r->policy.ack_after.given ? r->policy.ack_after.value == GB_BP_ACK_OUTBOX_PERSIST : outbox;
    gb_json_w_object(w);
    put_text(w, "id", r->id);
    put_text(w, "receiver_session", r->receiver == NULL ? NULL : id_of(r->receiver->session));
    put_binding_sessions(w, r);
    put_text(w, "session_id", id_of(r->session.session));
    put_text(w, "delivery_mode", outbox ? "shared_outbox" : "direct_hold");
    put_text(w, "ack_after", persist ? "outbox_persist" : "target_accept");
    put_ns(w, "failover_slo_ns", r->session.failover_slo);
    put_bool(w, "startup_allowance_set", r->session.startup_allowance.given);
    gb_json_w_object_end(w);
}

static void put_queue(struct gb_json_writer *w, const char *role, const char *id,
                      const struct gb_bp_sqs_queue *queue)
{
    gb_json_w_object(w);
    put_text(w, "role", role);
    put_text(w, "id", id);
    put_text(w, "queue_name", queue->queue_name);
    put_text(w, "queue_url", queue->queue_url);
    put_map(w, "queue_tags", &queue->queue_tags);
    put_text(w, "queue_name_prefix", queue->queue_name_prefix);
    gb_json_w_object_end(w);
}

static void put_queues(struct gb_json_writer *w, const struct gb_blueprint *b)
{
    gb_json_w_key(w, "sqs");
    gb_json_w_array(w);
    for (size_t i = 0; i < b->receiver_count; i++) {
        const struct gb_bp_receiver *r = &b->receivers[i];
        if (r->transport.value == GB_BP_SQS) put_queue(w, "receiver", r->id, &r->sqs.queue);
    }
    for (size_t i = 0; i < b->sender_count; i++) {
        const struct gb_bp_sender *s = &b->senders[i];
        if (s->transport.value == GB_BP_SQS) put_queue(w, "sender", s->id, &s->sqs.queue);
    }
    gb_json_w_array_end(w);
}

static void put_http_receivers(struct gb_json_writer *w, const struct gb_blueprint *b)
{
    struct gb_str path = {0};
    gb_json_w_key(w, "http_receivers");
    gb_json_w_array(w);
    for (size_t i = 0; i < b->receiver_count; i++) {
        const struct gb_bp_receiver *r = &b->receivers[i];
        if (r->transport.value != GB_BP_HTTP) continue;
        gb_str_clear(&path);
        gb_str_appendf(&path, "/transport/http/receivers/%s/messages", r->id); /* 01 §3.5 */
        if (path.failed) w->out->failed = true;
        gb_json_w_object(w);
        put_text(w, "id", r->id);
        put_text(w, "path", r->http.path != NULL ? r->http.path : path.data);
        gb_json_w_object_end(w);
    }
    gb_json_w_array_end(w);
    gb_str_deinit(&path);
}

/* ---- pms:// values in options (spec 04 D3) ---- */

struct paths {
    const char **items;
    size_t count, capacity;
    bool failed;
};

static void add_path(struct paths *paths, const char *path)
{
    if (paths->count == paths->capacity) {
        size_t capacity = paths->capacity == 0 ? 16 : 2 * paths->capacity;
        const char **grown = realloc(paths->items, capacity * sizeof *grown);
        if (grown == NULL) {
            paths->failed = true;
            return;
        }
        paths->items = grown;
        paths->capacity = capacity;
    }
    paths->items[paths->count++] = path;
}

/* As deep as the document. */
static void find_paths(struct paths *paths, const struct gb_node *node)
{
    static const char scheme[] = "pms://";
    if (node == NULL) return;
    bool text = node->kind == GB_NODE_STRING || node->kind == GB_NODE_PLAIN;
    if (text && strncmp(node->text, scheme, strlen(scheme)) == 0) {
        add_path(paths, node->text + strlen("pms:/")); /* pms://a/b is /a/b */
    }
    for (const struct gb_node *n = node->first; n != NULL; n = n->next) find_paths(paths, n);
}

static int compare_texts(const void *left, const void *right)
{
    const char *const *a = left;
    const char *const *b = right;
    return strcmp(*a, *b);
}

static void put_ssm_paths(struct gb_json_writer *w, const struct gb_blueprint *b)
{
    struct paths paths = {0};
    for (int i = 0; i < GB_BP_ROLE_COUNT; i++) find_paths(&paths, b->stores[i].raw);
    for (size_t i = 0; i < b->session_count; i++) find_paths(&paths, b->sessions[i].raw);
    for (size_t i = 0; i < b->receiver_count; i++) find_paths(&paths, b->receivers[i].raw);
    for (size_t i = 0; i < b->sender_count; i++) find_paths(&paths, b->senders[i].raw);
    for (size_t i = 0; i < b->binding_count; i++) find_paths(&paths, b->bindings[i].raw);
    if (paths.failed) w->out->failed = true;
    if (paths.count > 1) qsort(paths.items, paths.count, sizeof *paths.items, compare_texts);
    gb_json_w_key(w, "ssm_paths");
    gb_json_w_array(w);
    for (size_t i = 0; i < paths.count; i++) {
        if (i > 0 && strcmp(paths.items[i - 1], paths.items[i]) == 0) continue;
        gb_json_w_string_c(w, paths.items[i]);
    }
    gb_json_w_array_end(w);
    free(paths.items);
}

static struct gb_err put_blueprint(struct gb_json_writer *w, const struct gb_blueprint *b)
{
    char digest[GB_SHA256_HEX];
    char fingerprint[GB_SHA256_HEX];
    struct gb_err err = gb_blueprint_digest(b, digest);
    if (!gb_failed(err)) err = gb_blueprint_fingerprint(b, fingerprint);
    if (gb_failed(err)) return err;
    bool clustered = b->bridge.deployment_mode.value == GB_BP_CLUSTERED;
    put_text(w, "bridge_id", b->bridge.id);
    put_text(w, "deployment_mode", clustered ? "clustered" : "standalone");
    put_ns(w, "shutdown_timeout_ns", b->bridge.shutdown_timeout);
    put_cluster(w, &b->bridge.cluster);
    put_stores(w, b);
    gb_json_w_key(w, "sessions");
    gb_json_w_array(w);
    for (size_t i = 0; i < b->session_count; i++) put_session(w, &b->sessions[i]);
    gb_json_w_array_end(w);
    gb_json_w_key(w, "routes");
    gb_json_w_array(w);
    for (size_t i = 0; i < b->route_count; i++) put_route(w, &b->routes[i]);
    gb_json_w_array_end(w);
    put_queues(w, b);
    put_ssm_paths(w, b);
    put_http_receivers(w, b);
    put_text(w, "fingerprint", fingerprint);
    put_text(w, "baseline_digest", digest);
    return err;
}

struct gb_err gb_inspect(const struct gb_inspection *of, struct gb_str *out)
{
    struct gb_json_writer w;
    struct gb_err err = gb_ok();
    char raw[GB_SHA256_HEX];
    gb_sha256_hex(of->bytes, raw);
    gb_json_w_init(&w, out);
    gb_json_w_object(&w);
    put_findings(&w, "errors", of, GB_FINDING_ERROR);
    put_findings(&w, "warnings", of, GB_FINDING_WARNING);
    put_text(&w, "raw_sha256", raw);
    if (of->b != NULL) err = put_blueprint(&w, of->b);
    if (gb_failed(err)) return err;
    gb_json_w_object_end(&w);
    gb_str_append_char(out, '\n');
    return gb_str_check(out, "the description of the document");
}

struct gb_err gb_diff_print(const struct gb_diff *diff, struct gb_str *out)
{
    struct gb_json_writer w;
    gb_json_w_init(&w, out);
    gb_json_w_object(&w);
    put_texts(&w, "retired_routes", diff->retired_routes.items, diff->retired_routes.count);
    put_texts(&w, "added_routes", diff->added_routes.items, diff->added_routes.count);
    put_texts(&w, "retired_sessions", diff->retired_sessions.items, diff->retired_sessions.count);
    put_texts(&w, "added_sessions", diff->added_sessions.items, diff->added_sessions.count);
    put_text(&w, "class", gb_diff_class_name(diff->class_));
    gb_json_w_key(&w, "reasons");
    gb_json_w_array(&w);
    for (size_t i = 0; i < diff->reason_count; i++) gb_json_w_string_c(&w, diff->reasons[i]);
    gb_json_w_array_end(&w);
    put_text(&w, "swap", gb_diff_swap_name(diff->swap));
    put_text(&w, "swap_reason", diff->swap_reason);
    gb_json_w_object_end(&w);
    gb_str_append_char(out, '\n');
    return gb_str_check(out, "the diff");
}
