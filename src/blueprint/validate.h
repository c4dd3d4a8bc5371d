#ifndef GB_BLUEPRINT_VALIDATE_H
#define GB_BLUEPRINT_VALIDATE_H

#include "blueprint/blueprint.h"
#include "blueprint/document.h"
#include "domain/mqtt_topic.h"

/* The rules on the decoded model (spec 01 §5.2, and of §5.3-5.4 what applies standalone): no I/O,
 * never stops, collects everything. One file per area.
 * Owns:   nothing; findings copy their texts.
 * Thread: one at a time.
 * Errors: findings. The model may be incomplete: what failed to decode holds its default and is
 *         `broken`, or written (gb_check_written) but NULL. A rule on such a part stays silent,
 *         since the decoder has spoken. */

enum { GB_CHECK_PATH_MAX = 64, GB_SHOWN_MAX = 60, GB_API_KEY_BYTES_MIN = 16 };

struct gb_check {
    const struct gb_blueprint *b;
    struct gb_findings *findings;
    char path[GB_CHECK_PATH_MAX]; /* of the entry; "" outside */
    const char *id;
    const struct gb_node *entry; /* keys are looked up below it */
    /* The decoder has refused something. Rules on what the whole document lacks then stay silent:
     * what they miss may be the very part that could not be read. */
    bool unread;
};

void gb_check_enter(struct gb_check *c, const char *section, size_t index, const char *id,
                    const struct gb_node *entry);
void gb_check_leave(struct gb_check *c); /* keys are the document's */
/* Something is written at the key of the entry, whether it could be read or not. */
bool gb_check_written(const struct gb_check *c, const char *key);
/* A section, entry or block that is a map, or nothing; else the decoder has refused it whole. */
static inline bool gb_check_readable(const struct gb_node *node)
{
    return node == NULL || node->kind == GB_NODE_MAP || node->kind == GB_NODE_NULL;
}
/* `key` (`policy.backoff`, `topics[2].topic`) gives the position; the text leads with it where that
 * helps. */
__attribute__((format(printf, 4, 5))) void gb_check_error(struct gb_check *c, enum gb_rule rule,
                                                          const char *key, const char *format, ...);
__attribute__((format(printf, 4, 5))) void
gb_check_warning(struct gb_check *c, enum gb_rule rule, const char *key, const char *format, ...);
/* Ids: present ones are unique in their section and of sane length (V3). */
struct gb_map;
void gb_check_id(struct gb_check *c, struct gb_map *seen, const char *id);

void gb_validate_bridge(struct gb_check *c);
void gb_validate_stores(struct gb_check *c);
void gb_validate_sessions(struct gb_check *c);
/* V5: `id` is written at `key` and the section holds no such entry. */
void gb_check_missing(struct gb_check *c, const char *key, const char *id, const char *section);
/* The first broker that credentials would travel to in plain text, against rule M3. */
bool gb_blueprint_plain_broker(const struct gb_bp_mqtt_session *m,
                               char out[GB_MQTT_ENDPOINT_TEXT_MAX]);
void gb_validate_credentials_uri(struct gb_check *c, const char *uri); /* spec 01 §8.3 */
void gb_validate_mqtt_session(struct gb_check *c, const struct gb_bp_session *s); /* spec 03 §3 */
void gb_validate_mqtt_identities(struct gb_check *c);                             /* P6 */
void gb_validate_receivers(struct gb_check *c);
void gb_validate_sqs_receiver(struct gb_check *c, const struct gb_bp_receiver *r); /* spec 04 B */
void gb_validate_sqs_sender(struct gb_check *c, const struct gb_bp_sender *s);
/* What receivers and senders of transport http share (spec 04 C1, C2). */
void gb_validate_http_endpoint(struct gb_check *c, const char *path, const char *api_key,
                               const char *credentials_uri);
void gb_validate_senders(struct gb_check *c);
void gb_validate_bindings(struct gb_check *c);
void gb_validate_routes(struct gb_check *c);
void gb_validate_route_source(struct gb_check *c, const struct gb_bp_route *r); /* P7, P9, P11 */
void gb_validate_resolver(struct gb_check *c, const struct gb_bp_route *r);
void gb_validate_route_session(struct gb_check *c, const struct gb_bp_route *r);
void gb_validate_lease(struct gb_check *c, const struct gb_bp_route_session *s);
void gb_validate_leases(struct gb_check *c);  /* P1-P3, P5: by session, after the routes */
void gb_validate_cluster(struct gb_check *c); /* C2, C4, C6, C9: nothing when standalone */
void gb_validate_http(struct gb_check *c);
void gb_validate_processors(struct gb_check *c);
void gb_validate_config(struct gb_check *c, const struct gb_bp_processor *p); /* spec 02 §9 */
/* All of the above, in document order of the sections. */
void gb_validate(struct gb_check *c);

/* Shared facts. */
static inline bool gb_session_is_durable(const struct gb_bp_session *s)
{
    return s->session_mode.value != GB_BP_EPHEMERAL;
}
/* The broker resumes it after a disconnect: durable, and not wiped by its own clean start. */
static inline bool gb_session_resumes(const struct gb_bp_session *s)
{
    return s->session_mode.value == GB_BP_EXCLUSIVE ||
           (s->session_mode.value == GB_BP_PERSISTENT && !s->mqtt.clean_start.value);
}
/* Also a store that could not be read. */
static inline bool gb_has_store(const struct gb_blueprint *b, enum gb_bp_role role)
{
    return b->stores[role].node != NULL || !gb_check_readable(b->stores_node);
}
static inline bool gb_is_clustered(const struct gb_blueprint *b)
{
    return b->bridge.deployment_mode.value == GB_BP_CLUSTERED ||
           b->bridge.cluster.endpoints.count > 0;
}

#endif
