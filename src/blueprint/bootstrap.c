#include "blueprint/bootstrap.h"

#include <stdlib.h>
#include <string.h>

#include "base/duration.h"
#include "base/json_read.h"
#include "base/str.h"
#include "blueprint/arena.h"
#include "blueprint/blueprint.h"

enum { TEXT_MAX = 4096, SHOWN_MAX = 60 };

/* What was written, before it is judged. */
struct written {
    const char *bridge_id, *config_source, *config_file_path, *instance_id;
    const char *credential_file_path, *credential_poll_interval;
    const char *poll_interval, *node_role, *topology, *member_id;
    const char *lease_table, *outbox_table, *subscriptions_table, *fingerprint, *baseline_digest;
    const char *rollout_table, *rollout_poll_interval, *rollout_ttl, *rollout_lease_ttl;
    const char *rollout_call_timeout;
    const char *admin_addr, *monitor_addr, *transport_http_addr;
    const char *admin_api_key_param, *monitor_api_key_param;
    const char *metrics_exporter, *metrics_namespace, *aws_region, *ssm_endpoint;
    const char *table_name, *watch_mode, *stream_poll_interval; /* of config_dynamodb */
    bool credential_emit_on_start, dev_mode, has_config_dynamodb, has_baselines;
    uint64_t container_memory_bytes;
};

enum kind { TEXT, FLAG, COUNT, BLOCK, TEXTS, LISTS };
struct key {
    const char *name;
    enum kind kind;
    size_t at;
    const struct key *block; /* of a BLOCK, ends with an empty one */
};
#define AT(field) offsetof(struct written, field)

static const struct key config_dynamodb_keys[] = {
    {"table_name", TEXT, AT(table_name), NULL},
    {"watch_mode", TEXT, AT(watch_mode), NULL},
    {"stream_poll_interval", TEXT, AT(stream_poll_interval), NULL},
    {0},
};
static const struct key keys[] = {
    {"bridge_id", TEXT, AT(bridge_id), NULL},
    {"config_source", TEXT, AT(config_source), NULL},
    {"config_file_path", TEXT, AT(config_file_path), NULL},
    {"config_dynamodb", BLOCK, AT(has_config_dynamodb), config_dynamodb_keys},
    {"credential_file_path", TEXT, AT(credential_file_path), NULL},
    {"credential_poll_interval", TEXT, AT(credential_poll_interval), NULL},
    {"credential_emit_on_start", FLAG, AT(credential_emit_on_start), NULL},
    {"poll_interval", TEXT, AT(poll_interval), NULL},
    {"node_role", TEXT, AT(node_role), NULL},
    {"topology", TEXT, AT(topology), NULL},
    {"member_id", TEXT, AT(member_id), NULL},
    {"instance_id", TEXT, AT(instance_id), NULL},
    {"dynamodb_ha_lease_table_name", TEXT, AT(lease_table), NULL},
    {"dynamodb_ha_outbox_table_name", TEXT, AT(outbox_table), NULL},
    {"dynamodb_ha_managed_subscriptions_table_name", TEXT, AT(subscriptions_table), NULL},
    {"dynamodb_ha_config_fingerprint", TEXT, AT(fingerprint), NULL},
    {"dynamodb_ha_baseline_config_digest", TEXT, AT(baseline_digest), NULL},
    {"dynamodb_ha_rollout_table_name", TEXT, AT(rollout_table), NULL},
    {"rollout_poll_interval", TEXT, AT(rollout_poll_interval), NULL},
    {"rollout_ttl", TEXT, AT(rollout_ttl), NULL},
    {"rollout_lease_ttl", TEXT, AT(rollout_lease_ttl), NULL},
    {"rollout_store_call_timeout", TEXT, AT(rollout_call_timeout), NULL},
    {"admin_addr", TEXT, AT(admin_addr), NULL},
    {"monitor_addr", TEXT, AT(monitor_addr), NULL},
    {"transport_http_addr", TEXT, AT(transport_http_addr), NULL},
    {"admin_api_key_param", TEXT, AT(admin_api_key_param), NULL},
    {"monitor_api_key_param", TEXT, AT(monitor_api_key_param), NULL},
    {.name = "http_receiver_api_key_params", .kind = TEXTS},
    {.name = "http_sender_api_key_params", .kind = TEXTS},
    {"metrics_exporter", TEXT, AT(metrics_exporter), NULL},
    {"metrics_namespace", TEXT, AT(metrics_namespace), NULL},
    {"aws_region", TEXT, AT(aws_region), NULL},
    {"ssm_endpoint", TEXT, AT(ssm_endpoint), NULL},
    {"dev_mode", FLAG, AT(dev_mode), NULL},
    {"container_memory_bytes", COUNT, AT(container_memory_bytes), NULL},
    {"managed_subscription_baselines", LISTS, AT(has_baselines), NULL},
    {0},
};

struct reader {
    struct gb_json_reader json;
    struct gb_arena *arena;
    struct written w;
};

/* --- reading --- */

static struct gb_err malformed(const struct reader *r)
{
    return gb_err(GB_INVALID_CONFIG, "bootstrap: %s", r->json.err.message);
}

static struct gb_err wrong_type(const struct reader *r, const struct key *k, const char *want)
{
    if (r->json.event == GB_JSON_ERROR) return malformed(r);
    return gb_err(GB_INVALID_CONFIG, "bootstrap: %s is not %s; correct it", k->name, want);
}

/* Empty is absent. */
static struct gb_err read_text(struct reader *r, const struct key *k, const char **out)
{
    struct gb_str text = {.size_max = TEXT_MAX};
    if (!gb_json_string(&r->json, &text, NULL)) {
        gb_str_deinit(&text);
        return gb_err(GB_INVALID_CONFIG, "bootstrap: %s is longer than %d bytes; shorten it",
                      k->name, TEXT_MAX);
    }
    struct gb_err err = gb_ok();
    if (!gb_utf8_safe(gb_str_bytes(&text))) {
        err = gb_err(GB_INVALID_CONFIG, "bootstrap: %s holds control characters; remove them",
                     k->name);
    } else if (text.size > 0) {
        *out = gb_arena_text(r->arena, gb_str_bytes(&text));
        if (*out == NULL) err = gb_err_no_memory("the bootstrap");
    }
    gb_str_deinit(&text);
    return err;
}

static struct gb_err read_object(struct reader *r, const struct key *block);

/* An object of texts, or of lists of texts, that only a later release will use: its form counts. */
static struct gb_err read_map(struct reader *r, const struct key *k)
{
    enum gb_json_event e;
    while ((e = gb_json_next(&r->json)) == GB_JSON_KEY) {
        e = gb_json_next(&r->json);
        if (k->kind == TEXTS && e != GB_JSON_STRING) return wrong_type(r, k, "an object of texts");
        if (k->kind == TEXTS) continue;
        if (e != GB_JSON_ARRAY_BEGIN) return wrong_type(r, k, "an object of lists");
        while ((e = gb_json_next(&r->json)) == GB_JSON_STRING) continue;
        if (e != GB_JSON_ARRAY_END) return wrong_type(r, k, "an object of lists of texts");
    }
    return e == GB_JSON_OBJECT_END ? gb_ok() : malformed(r);
}

static struct gb_err read_value(struct reader *r, const struct key *k)
{
    void *at = (char *)&r->w + k->at;
    enum gb_json_event e = gb_json_next(&r->json);
    switch (k->kind) {
    case TEXT:
        return e == GB_JSON_STRING ? read_text(r, k, at) : wrong_type(r, k, "a text");
    case FLAG:
        if (e != GB_JSON_TRUE && e != GB_JSON_FALSE) return wrong_type(r, k, "true or false");
        *(bool *)at = e == GB_JSON_TRUE;
        return gb_ok();
    case COUNT:
        if (e != GB_JSON_NUMBER || !gb_json_u64(&r->json, at))
            return wrong_type(r, k, "a whole number");
        return gb_ok();
    case BLOCK:
    case LISTS:
        *(bool *)at = true;
        break;
    case TEXTS:
        break;
    }
    if (e != GB_JSON_OBJECT_BEGIN) return wrong_type(r, k, "an object");
    return k->kind == BLOCK ? read_object(r, k->block) : read_map(r, k);
}

static struct gb_err unknown_key(const struct reader *r)
{
    char shown[SHOWN_MAX];
    gb_bytes_show(r->json.text, shown, sizeof shown);
    return gb_err(GB_INVALID_CONFIG,
                  "bootstrap: unknown key \"%s\" at line %u, column %u; remove or correct it",
                  shown, r->json.line, r->json.column);
}

/* Behind its `{`. */
static struct gb_err read_object(struct reader *r, const struct key *block)
{
    uint64_t seen = 0;
    for (;;) {
        enum gb_json_event e = gb_json_next(&r->json);
        if (e == GB_JSON_OBJECT_END) return gb_ok();
        if (e != GB_JSON_KEY) return malformed(r);
        size_t i = 0;
        while (block[i].name != NULL && !gb_json_text_is(&r->json, block[i].name)) i++;
        if (block[i].name == NULL) return unknown_key(r);
        if ((seen & UINT64_C(1) << i) != 0) {
            return gb_err(GB_INVALID_CONFIG, "bootstrap: %s is written twice; remove one",
                          block[i].name);
        }
        seen |= UINT64_C(1) << i;
        struct gb_err err = read_value(r, &block[i]);
        if (gb_failed(err)) return err;
    }
}
_Static_assert(sizeof keys / sizeof keys[0] <= 64, "a bit for each key");

/* --- judging --- */

static struct gb_err refuse(const char *key, const char *value, const char *rule)
{
    char shown[SHOWN_MAX];
    gb_bytes_show(gb_bytes_c(value), shown, sizeof shown);
    return gb_err(GB_INVALID_CONFIG, "bootstrap: %s \"%s\" %s", key, shown, rule);
}

static struct gb_err required(const char *key, const char *why)
{
    return gb_err(GB_INVALID_CONFIG, "bootstrap: %s is required%s; write it", key, why);
}

static struct gb_err judge_source(const struct written *w, struct gb_bootstrap *b)
{
    const char *source = w->config_source == NULL ? "file" : w->config_source;
    bool dynamodb = strcmp(source, "dynamodb") == 0;
    if (!dynamodb && strcmp(source, "file") != 0)
        return refuse("config_source", source, "is not one of: file, dynamodb");
    if (dynamodb && b->topology == GB_TOPOLOGY_REPLICATED) {
        return refuse("config_source", source,
                      "does not go with topology filesystem_replicated, whose members share one "
                      "file; use file");
    }
    if (dynamodb && w->config_file_path != NULL) {
        return refuse("config_file_path", w->config_file_path,
                      "is written beside config_source dynamodb; remove one of them");
    }
    if (dynamodb && w->table_name == NULL)
        return required("config_dynamodb.table_name", " by config_source dynamodb");
    if (dynamodb)
        return refuse("config_source", source, "is not supported yet by this release; use file");
    if (w->has_config_dynamodb) {
        return gb_err(GB_INVALID_CONFIG, "bootstrap: config_dynamodb is written beside "
                                         "config_source file; remove one of them");
    }
    if (w->config_file_path == NULL)
        return required("config_file_path", " by config_source file (the default)");
    b->config_file_path = w->config_file_path;
    return gb_ok();
}

/* Empty, unreadable or not positive: the default (spec 07 §1.1). */
static int64_t duration_or(const char *text, int64_t otherwise)
{
    int64_t ns = otherwise;
    if (text != NULL && gb_failed(gb_duration_parse(gb_bytes_c(text), &ns))) return otherwise;
    return ns <= 0 ? otherwise : ns;
}

static struct gb_err judge_role(const struct written *w, const char *role, struct gb_bootstrap *b)
{
    const char *written = w->node_role != NULL ? w->node_role : role;
    if (written == NULL) return gb_ok();
    b->worker = strcmp(written, "worker") == 0;
    if (!b->worker && strcmp(written, "control") != 0)
        return refuse("node_role", written, "is not one of: control, worker");
    if (role != NULL && w->node_role != NULL && strcmp(role, w->node_role) != 0) {
        return refuse("node_role", w->node_role,
                      "differs from the environment's GOBRIDGE_NODE_ROLE; make them equal, or "
                      "leave one out");
    }
    return gb_ok();
}

const char *gb_topology_name(enum gb_topology topology)
{
    static const char *const names[] = {
        [GB_TOPOLOGY_SINGLE] = "single",
        [GB_TOPOLOGY_REPLICATED] = "filesystem_replicated",
        [GB_TOPOLOGY_HA] = "dynamodb_coordinated_ha",
    };
    return names[topology];
}

static struct gb_err judge_topology(const struct written *w, struct gb_bootstrap *b)
{
    if (w->topology == NULL) return gb_ok();
    for (int i = GB_TOPOLOGY_SINGLE; i <= GB_TOPOLOGY_HA; i++) {
        if (strcmp(w->topology, gb_topology_name((enum gb_topology)i)) != 0) continue;
        b->topology = (enum gb_topology)i;
        return gb_ok();
    }
    return refuse("topology", w->topology,
                  "is not one of: single, filesystem_replicated, dynamodb_coordinated_ha");
}

static struct gb_err judge_hex(const char *key, const char *value)
{
    if (strlen(value) == 64 && strspn(value, "0123456789abcdef") == 64) return gb_ok();
    return refuse(key, value, "is not 64 lower-case hex digits; print it with gobridge");
}

static struct gb_err judge_ha(const struct written *w, struct gb_bootstrap *b)
{
    static const char why[] = " by topology dynamodb_coordinated_ha";
    const struct {
        const char *key, *value;
    } tables[] = {
        {"dynamodb_ha_lease_table_name", w->lease_table},
        {"dynamodb_ha_outbox_table_name", w->outbox_table},
        {"dynamodb_ha_managed_subscriptions_table_name", w->subscriptions_table},
    };
    for (size_t i = 0; i < 3; i++) {
        if (tables[i].value == NULL) return required(tables[i].key, why);
        for (size_t k = 0; k < i; k++) {
            if (strcmp(tables[i].value, tables[k].value) != 0) continue;
            char shown[SHOWN_MAX];
            gb_bytes_show(gb_bytes_c(tables[i].value), shown, sizeof shown);
            return gb_err(GB_INVALID_CONFIG,
                          "bootstrap: %s and %s are both \"%s\"; each role has a table of its own",
                          tables[k].key, tables[i].key, shown);
        }
    }
    if (w->fingerprint == NULL) return required("dynamodb_ha_config_fingerprint", why);
    struct gb_err err = judge_hex("dynamodb_ha_config_fingerprint", w->fingerprint);
    if (!gb_failed(err) && w->baseline_digest != NULL)
        err = judge_hex("dynamodb_ha_baseline_config_digest", w->baseline_digest);
    b->lease_table = w->lease_table;
    b->outbox_table = w->outbox_table;
    b->subscriptions_table = w->subscriptions_table;
    b->fingerprint = w->fingerprint;
    b->baseline_digest = w->baseline_digest;
    b->rollout_table = w->rollout_table == NULL ? "gobridge-rollouts" : w->rollout_table;
    return err;
}

static struct gb_err judge_rest(const struct written *w)
{
    int64_t ttl_ns = duration_or(w->rollout_lease_ttl, 30 * GB_SEC);
    int64_t call_ns = duration_or(w->rollout_call_timeout, 5 * GB_SEC);
    if (call_ns >= ttl_ns / 3) {
        return gb_err(GB_INVALID_CONFIG, "bootstrap: rollout_store_call_timeout is not less than a "
                                         "third of rollout_lease_ttl; shorten it");
    }
    if (w->ssm_endpoint != NULL && !w->dev_mode) {
        return refuse("ssm_endpoint", w->ssm_endpoint,
                      "is for development; write dev_mode: true, or remove it");
    }
    if (w->has_baselines) {
        return gb_err(GB_INVALID_CONFIG,
                      "bootstrap: managed_subscription_baselines is not supported yet by this "
                      "release; use gobridge -seed-managed-subscriptions");
    }
    return gb_ok();
}

static struct gb_err judge(const struct written *w, const char *role, struct gb_bootstrap *b)
{
    if (w->bridge_id == NULL) return required("bridge_id", "");
    b->bridge_id = w->bridge_id;
    b->instance_id = w->instance_id;
    b->member_id = w->member_id;
    b->credential_file_path = w->credential_file_path;
    b->admin_addr = w->admin_addr;
    b->monitor_addr = w->monitor_addr;
    b->metrics_exporter = w->metrics_exporter;
    b->aws_region = w->aws_region;
    b->ssm_endpoint = w->ssm_endpoint;
    b->poll_interval_ns = duration_or(w->poll_interval, GB_SEC);
    struct gb_err err = judge_topology(w, b);
    if (!gb_failed(err)) err = judge_role(w, role, b);
    if (!gb_failed(err)) err = judge_source(w, b);
    if (!gb_failed(err) && b->topology == GB_TOPOLOGY_HA) err = judge_ha(w, b);
    return gb_failed(err) ? err : judge_rest(w);
}

struct gb_err gb_bootstrap_read(struct gb_bytes json, const char *role, struct gb_bootstrap **out)
{
    struct reader r = {.arena = gb_arena_new(GB_BLUEPRINT_SIZE_MAX)};
    struct gb_bootstrap *b =
        r.arena == NULL ? NULL : gb_arena_alloc(r.arena, sizeof(struct gb_bootstrap));
    if (b == NULL) {
        gb_arena_free(r.arena);
        return gb_err_no_memory("the bootstrap");
    }
    b->arena = r.arena;
    gb_json_init(&r.json, json);
    struct gb_err err = gb_json_next(&r.json) == GB_JSON_OBJECT_BEGIN
                            ? read_object(&r, keys)
                            : gb_err(GB_INVALID_CONFIG, "bootstrap: no JSON object");
    if (!gb_failed(err) && gb_json_next(&r.json) != GB_JSON_END) err = malformed(&r);
    if (!gb_failed(err)) err = judge(&r.w, role, b);
    if (gb_failed(err)) {
        gb_bootstrap_free(b);
    } else {
        *out = b;
    }
    return err;
}

void gb_bootstrap_free(struct gb_bootstrap *b)
{
    if (b != NULL) gb_arena_free(b->arena);
}
