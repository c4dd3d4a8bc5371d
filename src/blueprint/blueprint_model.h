#ifndef GB_BLUEPRINT_BLUEPRINT_MODEL_H
#define GB_BLUEPRINT_BLUEPRINT_MODEL_H

#include "base/log.h"
#include "blueprint/blueprint_options.h"
#include "domain/policy.h"

/* The sections of the blueprint as plain structs (spec 01 §3). Presence and defaults: see
 * blueprint_options.h.
 * Owns:   nothing; everything lives as long as the blueprint.
 * Thread: any; constant once loaded.
 * Errors: none. */

enum gb_bp_mode { GB_BP_STANDALONE = 0, GB_BP_CLUSTERED };
enum gb_bp_rollout {
    GB_BP_ROLLOUT_REFUSE = 0,
    GB_BP_ROLLOUT_INDEPENDENT,
    GB_BP_ROLLOUT_COORDINATED
};
enum gb_bp_watch { GB_BP_WATCH_NOTIFY = 0, GB_BP_WATCH_POLL };
enum gb_bp_kind { GB_BP_KIND_NONE = 0, GB_BP_MQTT, GB_BP_SQS, GB_BP_HTTP };
enum gb_bp_session_mode { GB_BP_EPHEMERAL = 0, GB_BP_PERSISTENT, GB_BP_EXCLUSIVE };
enum gb_bp_ack_after { GB_BP_ACK_TARGET_ACCEPT = 0, GB_BP_ACK_OUTBOX_PERSIST };
enum gb_bp_resolver_type {
    GB_BP_RESOLVER_NONE = 0,
    GB_BP_RULES,
    GB_BP_HEADER_MAP,
    GB_BP_ALL,
    GB_BP_STATIC
};
enum gb_bp_operator {
    GB_BP_EQ,
    GB_BP_NE,
    GB_BP_PREFIX,
    GB_BP_CONTAINS,
    GB_BP_REGEX,
    GB_BP_GT,
    GB_BP_LT,
    GB_BP_GTE,
    GB_BP_LTE,
    GB_BP_EXISTS,
    GB_BP_IN
};
enum gb_bp_processor_type {
    GB_BP_PROCESSOR_NONE = 0,
    GB_BP_FILTER,
    GB_BP_TRANSFORM,
    GB_BP_CIRCUITBREAKER,
    GB_BP_TENANT
};
enum gb_bp_role { GB_BP_LEASE = 0, GB_BP_OUTBOX, GB_BP_DLQ, GB_BP_SUBSCRIPTIONS, GB_BP_ROLE_COUNT };

struct gb_bp_receiver;
struct gb_bp_route;

struct gb_bp_locator {
    const struct gb_node *node;
    struct gb_opt_bool fail_open;
    struct gb_opt_ns cache_ttl, breaker_cooldown;
    struct gb_opt_int breaker_failures;
};
struct gb_bp_forwarder {
    const struct gb_node *node;
    struct gb_opt_ns timeout, idle_conn_timeout, retry_initial_delay, retry_max_delay;
    struct gb_opt_int max_retries, max_idle_conns_per_host, max_conns_per_host;
    const char *forward_token, *cluster_api_key;
    struct gb_bp_map receiver_api_keys;
};
struct gb_bp_cluster {
    const struct gb_node *node;
    struct gb_bp_map endpoints; /* capability -> URL */
    struct gb_opt_word rollout; /* enum gb_bp_rollout */
    struct gb_bp_strings members;
    struct gb_opt_ns confirm_window;
    struct gb_bp_locator locator;
    struct gb_bp_forwarder forwarder;
};
struct gb_bp_bridge {
    const struct gb_node *node;
    const char *id, *instance_id;
    struct gb_opt_word deployment_mode; /* enum gb_bp_mode */
    struct gb_opt_ns shutdown_timeout, drain_timeout, per_record_drain_timeout, max_drain_timeout;
    struct gb_opt_word log_level; /* enum gb_log_level */
    struct gb_bp_cluster cluster;
};
struct gb_bp_config_watch {
    const struct gb_node *node;
    struct gb_opt_word mode; /* enum gb_bp_watch */
    struct gb_opt_ns poll_interval, debounce;
};
struct gb_bp_store {
    const struct gb_node *node;           /* NULL: the role has no store */
    struct gb_opt_word type;              /* enum gb_bp_store_type */
    const struct gb_node *raw;            /* `options` as written */
    struct gb_opt_ns auto_redrive_window; /* dlq */
    struct gb_bp_store_options options;
};
struct gb_bp_session {
    const struct gb_node *node;
    const char *id;
    struct gb_opt_word transport;    /* enum gb_bp_kind */
    struct gb_opt_word session_mode; /* enum gb_bp_session_mode */
    const struct gb_node *raw;
    const char *credentials_uri;
    struct gb_bp_mqtt_session mqtt;
    /* Links, resolved after decoding. */
    const struct gb_bp_receiver *receiver; /* the one receiver on it, or NULL */
    bool in_use;                           /* else it is not built (spec 01 W5) */
    /* The route of the least id whose session block names it, or NULL. */
    const struct gb_bp_route *lease_route;
    bool named_by_binding;  /* a binding in use has it as its own session_id */
    bool carries_a_binding; /* the same, or its sender has */
};
struct gb_bp_topic {
    const struct gb_node *node;
    const char *topic;
    struct gb_opt_int qos;
    const struct gb_node *raw;
    struct gb_opt_ns qos_recheck_interval; /* 0 = off */
};
struct gb_bp_receiver {
    const struct gb_node *node;
    const char *id, *session_id;
    struct gb_opt_word transport; /* inherited when not given */
    struct gb_bp_topic *topics;
    size_t topic_count;
    const struct gb_node *raw;
    const char *credentials_uri;
    struct gb_bp_sqs_receiver sqs;
    struct gb_bp_http_receiver http;
    const struct gb_bp_session *session; /* link */
};
struct gb_bp_sender {
    const struct gb_node *node;
    const char *id, *session_id;
    struct gb_opt_word transport; /* inherited when not given */
    const struct gb_node *raw;
    const char *credentials_uri;
    struct gb_bp_mqtt_sender mqtt;
    struct gb_bp_sqs_sender sqs;
    struct gb_bp_http_sender http;
    const struct gb_bp_session *session; /* link */
};
struct gb_bp_binding {
    const struct gb_node *node;
    const char *id, *sender_id, *session_id, *address;
    const struct gb_node *raw;
    const struct gb_bp_sender *sender;   /* link */
    const struct gb_bp_session *session; /* link: its own session_id only */
};
struct gb_bp_backoff {
    const struct gb_node *node;
    struct gb_opt_ns initial_interval, max_interval;
    struct gb_opt_num multiplier, jitter;
};
struct gb_bp_policy {
    const struct gb_node *node;
    struct gb_opt_int max_in_flight, max_replay_attempts, max_outbox_depth;
    struct gb_opt_word ack_after; /* enum gb_bp_ack_after; default by delivery mode */
    struct gb_opt_ns replay_budget, send_retry_budget, depth_cache_ttl, send_timeout;
    struct gb_opt_ns processor_timeout;
    struct gb_opt_word on_expired, on_permanent_failure, on_filtered; /* enum gb_terminal_action */
    struct gb_opt_bool allow_unfenced, allow_retry_drop;
    struct gb_bp_backoff backoff;
};
struct gb_bp_condition {
    const struct gb_node *node;
    const char *field;
    struct gb_opt_word op;       /* enum gb_bp_operator */
    const struct gb_node *value; /* as written; NULL when absent */
};
struct gb_bp_rule {
    const struct gb_node *node;
    const char *binding_id;
    struct gb_bp_condition *match;
    size_t match_count;
};
struct gb_bp_resolver {
    const struct gb_node *node; /* NULL: no resolver */
    struct gb_opt_word type;    /* enum gb_bp_resolver_type */
    const char *default_binding, *header_key;
    struct gb_bp_map header_map;
    struct gb_bp_rule *rules;
    size_t rule_count;
};
struct gb_bp_drain_strategy {
    const struct gb_node *node;
    struct gb_opt_word type; /* enum gb_drain_strategy_type */
    struct gb_opt_ns interval, min_interval, max_interval;
    struct gb_opt_num multiplier;
};
struct gb_bp_route_session {
    const struct gb_node *node; /* NULL: no session block */
    const char *session_id, *sender_id;
    struct gb_opt_ns lease_ttl, renew_interval, lease_renew_jitter, renew_call_timeout;
    struct gb_opt_ns acquire_poll_interval, step_down_grace, failover_slo, startup_allowance;
    struct gb_opt_int max_renew_fails;
    struct gb_opt_bool connect_after_lease;
    struct gb_opt_ns broker_health_step_down; /* not given: undecided; given 0: off */
    struct gb_opt_ns drain_interval;
    struct gb_opt_int drain_batch_size, drain_max_batch_size, drain_max_concurrency;
    struct gb_bp_drain_strategy drain_strategy;
    const struct gb_bp_session *session; /* links */
    const struct gb_bp_sender *sender;
};
struct gb_bp_route {
    const struct gb_node *node;
    const char *id, *receiver_id;
    struct gb_opt_word delivery_mode; /* enum gb_delivery_mode */
    struct gb_opt_word dispatch_mode; /* enum gb_dispatch_mode */
    struct gb_bp_strings binding_ids, processors;
    struct gb_opt_bool trust_bridge_headers;
    struct gb_bp_policy policy;
    struct gb_bp_resolver resolver;
    struct gb_bp_route_session session;
    const struct gb_bp_receiver *receiver;       /* link */
    const struct gb_bp_binding *const *bindings; /* links, in order; as many as binding_ids */
};
struct gb_bp_processor {
    const struct gb_node *node;
    const char *name;
    struct gb_opt_word type;   /* enum gb_bp_processor_type */
    const struct gb_node *raw; /* `config` */
    const void *config;        /* by type, blueprint_processors.h; NULL: the type was not read */
};
struct gb_bp_http {
    const struct gb_node *node; /* NULL: probes only (spec 08 §4) */
    const char *admin_addr, *monitor_addr, *transport_addr;
    const char *admin_api_key, *monitor_api_key;
    struct gb_bp_strings cors_origins;
    const char *tls_cert_file, *tls_key_file;
};

#endif
