#ifndef GB_BLUEPRINT_BLUEPRINT_H
#define GB_BLUEPRINT_BLUEPRINT_H

#include "base/bytes.h"
#include "base/err.h"
#include "blueprint/blueprint_model.h"
#include "blueprint/findings.h"

/* The checked blueprint: document bytes in, plain structs or findings out (spec 01).
 * Owns:   gb_blueprint_free releases everything reachable from the blueprint, overwriting it first
 *         (it holds secrets); the input bytes are not kept.
 * Thread: any; constant once loaded.
 * Errors: gb_blueprint_load says GB_INVALID_CONFIG when `findings` hold an error, GB_UNAVAILABLE
 *         when out of memory. The helpers can't fail. */

enum { GB_BLUEPRINT_SIZE_MAX = 4194304 };

enum gb_blueprint_format { GB_BLUEPRINT_YAML = 0, GB_BLUEPRINT_JSON };

/* One document of several: the first is the base, the others are laid over it in order
 * (merge.h). */
struct gb_blueprint_layer {
    const char *name; /* of its file, for findings: nothing is opened */
    struct gb_bytes bytes;
    enum gb_blueprint_format format;
};
/* `-set PATH=VALUE`, applied to the merged document (override.h). */
struct gb_blueprint_override {
    const char *name; /* for findings */
    const char *path;
    struct gb_bytes value;
};
/* What the environment gives, NULL: nothing. It is no part of the document nor of its identity
 * (spec 01 §9.1). */
struct gb_blueprint_env {
    const char *instance_id;                     /* before the document's (spec 01 §8.2) */
    const char *admin_api_key, *monitor_api_key; /* behind the document's (spec 08 §2) */
};
enum {
    GB_BLUEPRINT_LAYERS_MAX = 17, /* with the base */
    GB_BLUEPRINT_OVERRIDES_MAX = 64,
    GB_BLUEPRINT_NAMES_MAX = GB_BLUEPRINT_LAYERS_MAX + GB_BLUEPRINT_OVERRIDES_MAX + 1,
};
struct gb_blueprint_input {
    const struct gb_blueprint_layer *layers;
    size_t layer_count; /* at least one */
    const struct gb_blueprint_override *overrides;
    size_t override_count;
    struct gb_blueprint_env env;
};

struct gb_blueprint {
    const struct gb_node *node;
    struct gb_opt_int version;
    struct gb_bp_bridge bridge;
    struct gb_bp_config_watch config_watch;
    const struct gb_node *stores_node;
    struct gb_bp_store stores[GB_BP_ROLE_COUNT]; /* by enum gb_bp_role; node NULL: not configured */
    struct gb_bp_session *sessions;
    size_t session_count;
    struct gb_bp_receiver *receivers;
    size_t receiver_count;
    struct gb_bp_sender *senders;
    size_t sender_count;
    struct gb_bp_binding *bindings;
    size_t binding_count;
    struct gb_bp_route *routes;
    size_t route_count;
    struct gb_bp_processor *processors;
    size_t processor_count;
    struct gb_bp_http http;
    struct gb_bp_telemetry telemetry;
    struct gb_blueprint_env env; /* as given */
    struct gb_arena *arena;      /* private */
};

/* `.json` is JSON, every other extension YAML (spec 01 §2). */
enum gb_blueprint_format gb_blueprint_format_of(const char *file_name);

/* Parses and decodes each layer, merges them, applies the overrides, then validates once (spec 01
 * §5, §8.1). `findings` is initialised by the caller and receives errors and warnings in document
 * order, layer by layer; mistakes in a layer alone are told before those of all together. `*out` is
 * set only when there is no error. */
struct gb_err gb_blueprint_load_layers(const struct gb_blueprint_input *in,
                                       struct gb_findings *findings, struct gb_blueprint **out);
/* The name of each layer that findings of this input can be about. */
void gb_blueprint_names(const struct gb_blueprint_input *in,
                        const char *names[GB_BLUEPRINT_NAMES_MAX]);
/* The same of one document. */
struct gb_err gb_blueprint_load(struct gb_bytes bytes, const char *file_name,
                                enum gb_blueprint_format format, struct gb_findings *findings,
                                struct gb_blueprint **out);
void gb_blueprint_free(struct gb_blueprint *b); /* NULL ok */

/* Adds an error for every part that is valid but that this release can't run; asked before running,
 * not for the verdict on a document. GB_INVALID_CONFIG when there is one. */
struct gb_err gb_blueprint_supported(const struct gb_blueprint *b, struct gb_findings *findings);

/* NULL when there is none of that id. */
const struct gb_bp_session *gb_blueprint_session(const struct gb_blueprint *b, const char *id);

/* Resolved values; NULL: none is configured. */
const char *gb_blueprint_instance_id(const struct gb_blueprint *b);
const char *gb_blueprint_admin_api_key(const struct gb_blueprint *b);
const char *gb_blueprint_monitor_api_key(const struct gb_blueprint *b);
struct gb_policy gb_blueprint_route_policy(const struct gb_bp_route *route);
/* The drainer's settings for the partitions of a route; its session block may be absent. Under
 * `bridge.drain_timeout` alone `legacy_ceiling_ns` is set (spec 02 §7.4). */
struct gb_drain_policy gb_blueprint_drain_policy(const struct gb_blueprint *b,
                                                 const struct gb_bp_route *route);
/* Spec 02 §2.4: the binding's session, else its sender's, else that of the route's session block;
 * NULL: none, the partition is BINDING#<id>. */
const struct gb_bp_session *gb_blueprint_effective_session(const struct gb_bp_route *route,
                                                           const struct gb_bp_binding *binding);
enum { GB_BLUEPRINT_ID_MAX = 255, GB_BLUEPRINT_PARTITION_MAX = GB_BLUEPRINT_ID_MAX + 16 };
/* SESSION#<id> or BINDING#<id>, terminated. */
void gb_blueprint_partition(const struct gb_bp_route *route, const struct gb_bp_binding *binding,
                            char out[GB_BLUEPRINT_PARTITION_MAX]);
/* Every binding gets the message (fan_out or resolver `all`), else the first one does. */
bool gb_blueprint_every_binding(const struct gb_bp_route *route);
/* Of the routes with an outbox: the longest send_timeout and resolved step_down_grace; 0: none. */
struct gb_outbox_times {
    int64_t send_ns, grace_ns;
};
struct gb_outbox_times gb_blueprint_outbox_times(const struct gb_blueprint *b);
enum gb_stale_claim_source {
    GB_STALE_CLAIM_WRITTEN = 0,
    GB_STALE_CLAIM_LEAST, /* 30s */
    GB_STALE_CLAIM_GRACE, /* the largest step_down_grace + 15s */
    GB_STALE_CLAIM_SEND,  /* the largest send_timeout + 15s */
};
struct gb_stale_claim {
    int64_t ns;
    enum gb_stale_claim_source source;
    int64_t basis_ns; /* the grace or timeout it follows from */
};
/* Written, or max(30s, largest step_down_grace + 15s) (spec 05 §2.6). */
struct gb_stale_claim gb_blueprint_stale_claim(const struct gb_blueprint *b);
int64_t gb_blueprint_stale_claim_ns(const struct gb_blueprint *b);
bool gb_blueprint_is_fifo_name(const char *queue); /* URL or name; NULL ok */
/* `fifo`, `message_group_id` or the suffix `.fifo` (spec 04 B9). */
bool gb_blueprint_sqs_fifo(const struct gb_bp_sqs_sender *sender);
/* Rules M3 and M6 for credentials that the document does not hold itself (spec 03 §4.2). */
struct gb_err gb_blueprint_check_credentials(const struct gb_bp_session *session,
                                             const char *username, const char *password);
/* connect + reconcile + grace terms of a durable session (spec 03 §9); 0 for an ephemeral one. */
int64_t gb_blueprint_activation_ns(const struct gb_bp_session *session);

#endif
