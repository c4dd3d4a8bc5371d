#include <stdio.h>

#include "base/map.h"
#include "blueprint/decode.h"

/* What needs more than one place of the document: a kind inherited over ids decides which table
 * reads the options (spec 01 §3 "kind inheritance"). */

struct ids {
    struct gb_map sessions, receivers, senders, bindings;
};

static bool add_id(struct gb_map *map, const char *id, void *entry)
{
    if (id == NULL || gb_map_has(map, gb_bytes_c(id))) return true; /* the first one counts */
    return !gb_failed(gb_map_put(map, gb_bytes_c(id), entry));
}

static bool collect(struct ids *ids, struct gb_blueprint *b)
{
    bool ok = true;
    for (size_t i = 0; ok && i < b->session_count; i++) {
        ok = add_id(&ids->sessions, b->sessions[i].id, &b->sessions[i]);
    }
    for (size_t i = 0; ok && i < b->receiver_count; i++) {
        ok = add_id(&ids->receivers, b->receivers[i].id, &b->receivers[i]);
    }
    for (size_t i = 0; ok && i < b->sender_count; i++) {
        ok = add_id(&ids->senders, b->senders[i].id, &b->senders[i]);
    }
    for (size_t i = 0; ok && i < b->binding_count; i++) {
        ok = add_id(&ids->bindings, b->bindings[i].id, &b->bindings[i]);
    }
    return ok;
}

static void *find(const struct gb_map *map, const char *id)
{
    return id == NULL ? NULL : gb_map_get(map, gb_bytes_c(id));
}

/* `place` is the entry, for what an absent block lacks. */
static void decode_options(struct gb_decode *d, const struct gb_block *block,
                           const struct gb_node *raw, const struct gb_node *place, void *out)
{
    size_t before = gb_decode_push(d, "options");
    gb_decode_block(d, block, raw, out);
    if (raw == NULL) gb_decode_required(d, block, NULL, place);
    gb_decode_pop(d, before);
}

static void fold_urls(struct gb_decode *d, struct gb_bp_mqtt_session *mqtt)
{
    size_t single = mqtt->broker_url == NULL ? 0 : 1;
    size_t count = single + mqtt->broker_urls.count;
    const char **items = gb_arena_array(d->arena, count, sizeof *items);
    if (items == NULL) return;
    if (single == 1) items[0] = mqtt->broker_url;
    for (size_t i = 0; i < mqtt->broker_urls.count; i++) {
        items[single + i] = mqtt->broker_urls.items[i];
    }
    mqtt->urls = (struct gb_bp_strings){.items = items, .count = count, .given = count > 0};
}

static void decode_session(struct gb_decode *d, struct gb_bp_session *s)
{
    enum { DURABLE_EXPIRY_S = 86400 };
    if (s->transport.value != GB_BP_MQTT) return;
    decode_options(d, &gb_schema_mqtt_session_options, s->raw, s->node, s);
    struct gb_bp_mqtt_session *mqtt = &s->mqtt;
    const struct gb_node *session = gb_node_get(s->raw, "session");
    bool map = s->raw == NULL || s->raw->kind == GB_NODE_MAP;
    if (!d->partial && map && (session == NULL || session->kind == GB_NODE_NULL)) {
        gb_decode_error(d, GB_RULE_K2, s->node,
                        "options.session is required; add it with the broker_url and the "
                        "client_id");
    }
    fold_urls(d, mqtt);
    bool v5 = mqtt->protocol_version.value == GB_BP_MQTT_V5;
    if (s->session_mode.value != GB_BP_EPHEMERAL && v5 &&
        mqtt->session_expiry_interval.value == 0) {
        mqtt->session_expiry_interval.value = DURABLE_EXPIRY_S;
    }
    if (mqtt->reconnect_max_delay.ns < mqtt->reconnect_delay.ns) {
        mqtt->reconnect_max_delay.ns = mqtt->reconnect_delay.ns;
    }
}

static void decode_topics(struct gb_decode *d, struct gb_bp_receiver *r)
{
    size_t before = gb_decode_push(d, "topics");
    for (size_t i = 0; i < r->topic_count; i++) {
        char bracket[24];
        (void)snprintf(bracket, sizeof bracket, "[%zu]", i);
        size_t inside = gb_decode_push(d, bracket);
        decode_options(d, &gb_schema_mqtt_topic_options, r->topics[i].raw, r->topics[i].node,
                       &r->topics[i]);
        gb_decode_pop(d, inside);
    }
    gb_decode_pop(d, before);
}

static bool inherits(const struct gb_opt_word *transport, const struct gb_bp_session *session)
{
    return !transport->given && !transport->broken && session != NULL;
}

static void decode_receiver(struct gb_decode *d, struct gb_bp_receiver *r, const struct ids *ids)
{
    struct gb_bp_session *session = find(&ids->sessions, r->session_id);
    r->session = session;
    if (session != NULL && session->receiver == NULL) session->receiver = r;
    if (inherits(&r->transport, session)) r->transport.value = session->transport.value;
    switch ((enum gb_bp_kind)r->transport.value) {
    case GB_BP_MQTT:
        decode_options(d, &gb_schema_mqtt_receiver_options, r->raw, r->node, r);
        decode_topics(d, r);
        break;
    case GB_BP_SQS:
        decode_options(d, &gb_schema_sqs_receiver, r->raw, r->node, &r->sqs);
        break;
    case GB_BP_HTTP:
        decode_options(d, &gb_schema_http_receiver, r->raw, r->node, &r->http);
        break;
    case GB_BP_KIND_NONE:
        break;
    }
}

static void decode_sender_options(struct gb_decode *d, const struct gb_node *raw,
                                  struct gb_bp_sender *s)
{
    switch ((enum gb_bp_kind)s->transport.value) {
    case GB_BP_MQTT:
        decode_options(d, &gb_schema_mqtt_sender_options, raw, s->node, s);
        break;
    case GB_BP_SQS:
        decode_options(d, &gb_schema_sqs_sender, raw, s->node, &s->sqs);
        break;
    case GB_BP_HTTP:
        decode_options(d, &gb_schema_http_sender, raw, s->node, &s->http);
        break;
    case GB_BP_KIND_NONE:
        break;
    }
}

static void decode_sender(struct gb_decode *d, struct gb_bp_sender *s, const struct ids *ids)
{
    s->session = find(&ids->sessions, s->session_id);
    if (inherits(&s->transport, s->session)) s->transport.value = s->session->transport.value;
    decode_sender_options(d, s->raw, s);
}

/* Decoded by its sender's kind, then unused (spec 01 §3.4). */
static void decode_binding(struct gb_decode *d, struct gb_bp_binding *b, const struct ids *ids)
{
    b->sender = find(&ids->senders, b->sender_id);
    b->session = find(&ids->sessions, b->session_id);
    if (b->raw == NULL || b->sender == NULL) return;
    struct gb_bp_sender *scratch = gb_arena_alloc(d->arena, sizeof *scratch);
    if (scratch == NULL) return;
    scratch->transport = b->sender->transport;
    decode_sender_options(d, b->raw, scratch);
}

static void link_route(struct gb_decode *d, struct gb_bp_route *r, const struct ids *ids)
{
    r->receiver = find(&ids->receivers, r->receiver_id);
    r->session.session = find(&ids->sessions, r->session.session_id);
    r->session.sender = find(&ids->senders, r->session.sender_id);
    size_t count = r->binding_ids.count;
    const struct gb_bp_binding **links = gb_arena_array(d->arena, count, sizeof *links);
    if (links == NULL) return;
    for (size_t i = 0; i < count; i++) links[i] = find(&ids->bindings, r->binding_ids.items[i]);
    r->bindings = links;
}

static struct gb_bp_session *use(const struct ids *ids, const struct gb_bp_session *session)
{
    if (session == NULL) return NULL;
    struct gb_bp_session *s = find(&ids->sessions, session->id);
    if (s != NULL) s->in_use = true;
    return s;
}

static const char *id_of(const struct gb_bp_route *r)
{
    return r->id == NULL ? "" : r->id;
}

/* The least id, so that the order of routes says nothing (spec 06 §9.1). */
static void name_lease(const struct gb_bp_route *r, struct gb_bp_session *s)
{
    if (s == NULL) return;
    if (s->lease_route == NULL || strcmp(id_of(r), id_of(s->lease_route)) < 0) s->lease_route = r;
}

static void mark_used(const struct gb_bp_route *r, const struct ids *ids)
{
    if (r->receiver != NULL) (void)use(ids, r->receiver->session);
    name_lease(r, use(ids, r->session.session));
    if (r->session.sender != NULL) (void)use(ids, r->session.sender->session);
    for (size_t i = 0; r->bindings != NULL && i < r->binding_ids.count; i++) {
        const struct gb_bp_binding *b = r->bindings[i];
        if (b == NULL) continue;
        struct gb_bp_session *own = use(ids, b->session);
        struct gb_bp_session *senders = b->sender == NULL ? NULL : use(ids, b->sender->session);
        struct gb_bp_session *carrier = own != NULL ? own : senders;
        if (own != NULL) own->named_by_binding = true;
        if (carrier != NULL) carrier->carries_a_binding = true;
    }
}

static void decode_stores(struct gb_decode *d, struct gb_blueprint *b)
{
    size_t before = gb_decode_push(d, "stores");
    for (int role = 0; role < GB_BP_ROLE_COUNT; role++) {
        struct gb_bp_store *s = &b->stores[role];
        const struct gb_block *block =
            gb_schema_store_options((enum gb_bp_role)role, (enum gb_bp_store_type)s->type.value);
        if (s->node == NULL || block == NULL) continue;
        size_t inside = gb_decode_push(d, gb_schema_role_name((enum gb_bp_role)role));
        decode_options(d, block, s->raw, s->node, &s->options);
        gb_decode_pop(d, inside);
    }
    gb_decode_pop(d, before);
}

static void decode_processors(struct gb_decode *d, struct gb_blueprint *b)
{
    size_t before = gb_decode_push(d, "processors");
    for (size_t i = 0; i < b->processor_count; i++) {
        struct gb_bp_processor *p = &b->processors[i];
        const struct gb_block *block =
            gb_schema_processor_config((enum gb_bp_processor_type)p->type.value);
        if (block == NULL) continue;
        void *config = gb_arena_alloc(d->arena, block->size);
        if (config == NULL) return;
        p->config = config;
        size_t inside = gb_decode_push(d, p->name);
        (void)gb_decode_push(d, "config");
        gb_decode_block(d, block, p->raw, config);
        gb_decode_pop(d, inside);
    }
    gb_decode_pop(d, before);
}

static void decode_entries(struct gb_decode *d, struct gb_blueprint *b, const struct ids *ids)
{
    for (size_t i = 0; i < b->session_count; i++) {
        gb_decode_enter(d, "sessions", i, b->sessions[i].id);
        decode_session(d, &b->sessions[i]);
    }
    for (size_t i = 0; i < b->receiver_count; i++) {
        gb_decode_enter(d, "receivers", i, b->receivers[i].id);
        decode_receiver(d, &b->receivers[i], ids);
    }
    for (size_t i = 0; i < b->sender_count; i++) {
        gb_decode_enter(d, "senders", i, b->senders[i].id);
        decode_sender(d, &b->senders[i], ids);
    }
    for (size_t i = 0; i < b->binding_count; i++) {
        gb_decode_enter(d, "bindings", i, b->bindings[i].id);
        decode_binding(d, &b->bindings[i], ids);
    }
    gb_decode_leave(d);
}

void gb_decode_kinds(struct gb_decode *d, struct gb_blueprint *b)
{
    struct ids ids = {0};
    if (collect(&ids, b)) {
        decode_stores(d, b);
        decode_entries(d, b, &ids);
        decode_processors(d, b);
        for (size_t i = 0; i < b->route_count; i++) {
            link_route(d, &b->routes[i], &ids);
            mark_used(&b->routes[i], &ids);
        }
    } else {
        d->findings->failed = true;
    }
    gb_map_deinit(&ids.sessions);
    gb_map_deinit(&ids.receivers);
    gb_map_deinit(&ids.senders);
    gb_map_deinit(&ids.bindings);
}
