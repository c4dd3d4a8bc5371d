#include "blueprint/diff_class.h"

#include <stdlib.h>

#include "base/map.h"
#include "blueprint/identity.h"
#include "domain/mqtt_topic.h"

struct classify {
    struct gb_diff *d;
    const struct gb_blueprint *before, *after;
    const struct gb_units *units;               /* of `before`: its ids in order */
    struct gb_map sessions, routes, partitions; /* of `after` */
    bool failed;
};

enum { ID_SHOWN_MAX = 80 };

__attribute__((format(printf, 2, 3))) static void refuse(struct classify *c, const char *format,
                                                         ...)
{
    c->d->class_ = GB_DIFF_REPLACEMENT_REQUIRED;
    if (c->d->reason_count == GB_DIFF_REASONS_MAX) return;
    va_list args;
    va_start(args, format);
    struct gb_err text = gb_err_v(GB_INVALID_CONFIG, format, args);
    va_end(args);
    char *reason = gb_strdup(text.message);
    if (reason == NULL) {
        c->failed = true;
    } else {
        c->d->reasons[c->d->reason_count++] = reason;
    }
}

/* One line of a fingerprint's text: key=JSON. */
static struct gb_bytes next_line(struct gb_bytes *text)
{
    const uint8_t *end = memchr(text->data, '\n', text->size);
    size_t size = end == NULL ? text->size : (size_t)(end - text->data);
    struct gb_bytes line = gb_bytes(text->data, size);
    size_t used = end == NULL ? size : size + 1;
    *text = gb_bytes(text->data + used, text->size - used);
    return line;
}

/* Deployment-owned settings are those of the fingerprint. A store that is added holds nothing yet.
 */
static void compare_lines(struct classify *c, struct gb_bytes before, struct gb_bytes after)
{
    while (before.size > 0) {
        struct gb_bytes line_a = next_line(&before);
        struct gb_bytes line_b = next_line(&after);
        if (gb_bytes_equal(line_a, line_b)) continue;
        const uint8_t *equals = memchr(line_a.data, '=', line_a.size);
        size_t key = (size_t)(equals - line_a.data);
        struct gb_bytes old = gb_bytes(equals + 1, line_a.size - key - 1);
        struct gb_bytes new = gb_bytes(line_b.data + key + 1, line_b.size - key - 1);
        if (gb_bytes_equal_c(old, "null")) continue;
        char old_shown[ID_SHOWN_MAX];
        char new_shown[ID_SHOWN_MAX];
        gb_bytes_show(old, old_shown, sizeof old_shown);
        gb_bytes_show(new, new_shown, sizeof new_shown);
        refuse(c, "%.*s changes from %s to %s", (int)key, (const char *)line_a.data, old_shown,
               new_shown);
    }
}

static void check_deployment(struct classify *c)
{
    struct gb_str a = {0};
    struct gb_str b = {0};
    if (gb_failed(gb_blueprint_fingerprint_text(c->before, &a)) ||
        gb_failed(gb_blueprint_fingerprint_text(c->after, &b))) {
        c->failed = true;
    } else {
        compare_lines(c, gb_str_bytes(&a), gb_str_bytes(&b));
    }
    gb_str_deinit(&a);
    gb_str_deinit(&b);
}

static const char *mode_name(const struct gb_bp_session *s)
{
    return s->session_mode.value == GB_BP_EXCLUSIVE ? "exclusive" : "persistent";
}

static bool same_text(const char *a, const char *b)
{
    return strcmp(a == NULL ? "" : a, b == NULL ? "" : b) == 0;
}

/* Empty without a broker. */
static void endpoint_text(const struct gb_bp_session *s, char out[GB_MQTT_ENDPOINT_TEXT_MAX])
{
    struct gb_mqtt_endpoint endpoint;
    out[0] = '\0';
    if (s->mqtt.urls.count == 0) return;
    if (gb_failed(gb_mqtt_endpoint_parse(gb_bytes_c(s->mqtt.urls.items[0]), &endpoint))) return;
    gb_mqtt_endpoint_print(&endpoint, out);
}

/* What the broker and the managed-subscription store know the session by (spec 03 §3.4). */
static bool same_identity(const struct gb_bp_session *a, const struct gb_bp_session *b)
{
    char endpoint_a[GB_MQTT_ENDPOINT_TEXT_MAX];
    char endpoint_b[GB_MQTT_ENDPOINT_TEXT_MAX];
    endpoint_text(a, endpoint_a);
    endpoint_text(b, endpoint_b);
    return strcmp(endpoint_a, endpoint_b) == 0 && same_text(a->mqtt.client_id, b->mqtt.client_id) &&
           a->mqtt.client_id_suffix.value == b->mqtt.client_id_suffix.value;
}

static void check_session(struct classify *c, const struct gb_bp_session *old)
{
    if (old->session_mode.value == GB_BP_EPHEMERAL) return;
    const struct gb_bp_session *new = gb_map_get(&c->sessions, gb_bytes_c(old->id));
    char id[ID_SHOWN_MAX];
    gb_bytes_show(gb_bytes_c(old->id), id, sizeof id);
    if (new == NULL) {
        refuse(c, "the %s session %s is removed or renamed", mode_name(old), id);
    } else if (new->session_mode.value == GB_BP_EPHEMERAL) {
        refuse(c, "the %s session %s becomes ephemeral", mode_name(old), id);
    } else if (!same_identity(old, new)) {
        refuse(c, "the %s session %s gets another broker or client id", mode_name(old), id);
    }
}

static void check_route(struct classify *c, const struct gb_bp_route *old)
{
    const struct gb_bp_route *new = gb_map_get(&c->routes, gb_bytes_c(old->id));
    if (old->session.node == NULL || new == NULL) return;
    if (same_text(old->session.session_id, new->session.session_id)) return;
    char id[ID_SHOWN_MAX];
    gb_bytes_show(gb_bytes_c(old->id), id, sizeof id);
    refuse(c, "session.session_id of route %s changes", id);
}

static void check_partitions(struct classify *c, const struct gb_bp_route *old)
{
    if (old->delivery_mode.value != GB_SHARED_OUTBOX) return;
    for (size_t i = 0; i < old->binding_ids.count; i++) {
        char partition[GB_BLUEPRINT_PARTITION_MAX];
        if (old->bindings[i] == NULL) continue;
        gb_blueprint_partition(old, old->bindings[i], partition);
        if (gb_map_has(&c->partitions, gb_bytes_c(partition))) continue;
        char shown[ID_SHOWN_MAX];
        gb_bytes_show(gb_bytes_c(partition), shown, sizeof shown);
        refuse(c, "no shared_outbox route drains the partition %s any more", shown);
        /* Once is enough for each. */
        if (gb_failed(gb_map_put(&c->partitions, gb_bytes_c(partition), c))) c->failed = true;
    }
}

static void put(struct classify *c, struct gb_map *map, const char *key, const void *value)
{
    /* gb-exception: the map's values are not const, but only read here */
    if (gb_failed(gb_map_put(map, gb_bytes_c(key), (void *)(uintptr_t)value))) c->failed = true;
}

static void index_after(struct classify *c)
{
    const struct gb_blueprint *b = c->after;
    for (size_t i = 0; i < b->session_count; i++) {
        put(c, &c->sessions, b->sessions[i].id, &b->sessions[i]);
    }
    for (size_t i = 0; i < b->route_count; i++) {
        const struct gb_bp_route *r = &b->routes[i];
        put(c, &c->routes, r->id, r);
        if (r->delivery_mode.value != GB_SHARED_OUTBOX) continue;
        for (size_t j = 0; j < r->binding_ids.count; j++) {
            char partition[GB_BLUEPRINT_PARTITION_MAX];
            if (r->bindings[j] == NULL) continue;
            gb_blueprint_partition(r, r->bindings[j], partition);
            put(c, &c->partitions, partition, r);
        }
    }
}

struct gb_err gb_diff_classify(struct gb_diff *d, const struct gb_blueprint *before,
                               const struct gb_units *before_units,
                               const struct gb_blueprint *after)
{
    struct classify c = {.d = d, .before = before, .after = after, .units = before_units};
    index_after(&c);
    check_deployment(&c);
    for (size_t i = 0; i < c.units->session_count; i++) {
        const struct gb_unit_member *m = &c.units->sessions[i];
        if (m->index != GB_UNIT_UNDECLARED) check_session(&c, &before->sessions[m->index]);
    }
    for (size_t i = 0; i < c.units->route_count; i++) {
        check_route(&c, &before->routes[c.units->routes[i].index]);
    }
    for (size_t i = 0; i < c.units->route_count; i++) {
        check_partitions(&c, &before->routes[c.units->routes[i].index]);
    }
    gb_map_deinit(&c.sessions);
    gb_map_deinit(&c.routes);
    gb_map_deinit(&c.partitions);
    return c.failed ? gb_err_no_memory("the diff") : gb_ok();
}
