#ifndef GB_BLUEPRINT_BLUEPRINT_OPTIONS_H
#define GB_BLUEPRINT_BLUEPRINT_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Field types of the model and the options of stores and transports (spec 01 §3.3, §3.5),
 * telemetry. Owns:   nothing; strings and arrays live as long as the blueprint. Thread: any;
 * constant once loaded. Errors: none; the decoder has checked types and bounds.
 *
 * A field holds its default when it is not written; `given` tells the two apart (spec 01 §2 "absent
 * differs from zero"; layers merge by presence, spec 01 §8.1). A written zero that means "default"
 * was replaced by the default. Fields whose default depends on others hold 0 when not given.
 * `broken`: the document has a value there that could not be read. The decoder has spoken, so rules
 * on the field stay silent. Strings are NULL when absent, null or empty. Every block starts with
 * `node`, its place in the document: NULL when the block is not written, which leaves all its
 * defaults; no map when something else is written there. */

struct gb_node;

struct gb_opt_ns {
    int64_t ns;
    bool given;
    bool broken;
};
struct gb_opt_int {
    int64_t value;
    bool given;
    bool broken;
};
struct gb_opt_num {
    double value;
    bool given;
    bool broken;
};
struct gb_opt_bool {
    bool value;
    bool given;
    bool broken;
};
struct gb_opt_word {
    int value; /* the enum named beside the field */
    bool given;
    bool broken;
};
struct gb_bp_strings {
    const char *const *items;
    size_t count;
    bool given;
    bool broken;
};
struct gb_bp_pair {
    const char *key;
    const char *value;
    const struct gb_node *node;
};
struct gb_bp_map {
    struct gb_bp_pair *items;
    size_t count;
    bool given;
    bool broken;
};

enum gb_bp_store_type { GB_BP_STORE_NONE = 0, GB_BP_MEMORY, GB_BP_SQLITE, GB_BP_DYNAMODB };
enum gb_bp_client_id_suffix { GB_BP_SUFFIX_NONE = 0, GB_BP_SUFFIX_HOSTNAME, GB_BP_SUFFIX_NONCE };
enum gb_bp_protocol_version { GB_BP_MQTT_V5 = 0, GB_BP_MQTT_V311 };
enum gb_bp_message_id { GB_BP_ID_RANDOM = 0, GB_BP_ID_CONTENT_HASH };
enum gb_bp_payload_encoding { GB_BP_ENCODE_AUTO = 0, GB_BP_ENCODE_TEXT, GB_BP_ENCODE_BASE64 };

/* All options of all store types; the role and type decide which may be written. */
struct gb_bp_store_options {
    const struct gb_node *node;
    const char *table_name; /* dynamodb */
    struct gb_opt_bool preflight_advisory;
    struct gb_opt_ns stale_claim_duration; /* not given: gb_blueprint_stale_claim_ns */
    struct gb_opt_ns compaction_grace;
    struct gb_opt_ns retention; /* outbox: negative = never; dlq: 0 = for ever */
    struct gb_opt_int max_scan_pages;
    const char *path; /* sqlite */
    struct gb_opt_bool acknowledge_volatile;
    struct gb_opt_bool acknowledge_single_replica;
};

struct gb_bp_will {
    const struct gb_node *node; /* NULL: no will */
    const char *topic;
    const char *payload;
    struct gb_opt_int qos;
    struct gb_opt_bool retain;
};
struct gb_bp_tls {
    const struct gb_node *node;
    struct gb_opt_bool enable;
    const char *ca_cert_file, *cert_file, *key_file;
    const char *ca_cert_pem, *cert_pem, *key_pem;
    struct gb_opt_bool insecure_skip_verify;
};
struct gb_bp_mqtt_session {
    const struct gb_node *node;
    const char *broker_url; /* also the first of `urls` */
    struct gb_bp_strings broker_urls;
    struct gb_bp_strings urls; /* both forms folded */
    const char *client_id;
    struct gb_opt_word client_id_suffix; /* enum gb_bp_client_id_suffix */
    struct gb_opt_bool assert_stable_client_identity;
    struct gb_opt_int keep_alive; /* s, 0 = off */
    struct gb_opt_ns connect_timeout, reconnect_timeout, reconcile_timeout, unmatched_grace;
    struct gb_opt_ns reconnect_delay, reconnect_max_delay;
    struct gb_opt_bool clean_start;
    struct gb_opt_int session_expiry_interval; /* s; resolved: durable 0 is 86400 */
    struct gb_opt_int receive_maximum, max_payload_bytes, ingress_memory_budget_bytes;
    struct gb_opt_bool no_local;
    struct gb_opt_word protocol_version; /* enum gb_bp_protocol_version */
    struct gb_opt_word message_id;       /* enum gb_bp_message_id */
    const char *username, *password;
    struct gb_opt_bool allow_plaintext_credentials;
    struct gb_bp_will will;
    struct gb_bp_tls tls;
};
struct gb_bp_mqtt_sender {
    const struct gb_node *node;
    const char *default_topic;
    struct gb_opt_int qos;
    struct gb_opt_bool retain;
    struct gb_opt_ns timeout, throttle_retry_after;
};

/* Which queue, and whose account (spec 04 B2). */
struct gb_bp_sqs_queue {
    const char *queue_url, *queue_name;
    struct gb_bp_map queue_tags;
    const char *queue_name_prefix;
    const char *region, *endpoint, *profile;
};
struct gb_bp_sqs_receiver {
    const struct gb_node *node;
    const char *credentials_uri;
    struct gb_bp_sqs_queue queue;
    struct gb_opt_int max_messages, wait_time_seconds, visibility_timeout;
    struct gb_opt_bool auto_extend, sns_unwrap;
    struct gb_opt_ns init_timeout, poll_backoff_initial, poll_backoff_max;
    struct gb_opt_num poll_backoff_multiplier;
    struct gb_opt_int poison_max_receives;
    struct gb_opt_bool poison_drop_without_dlq;
};
struct gb_bp_sqs_sender {
    const struct gb_node *node;
    const char *credentials_uri;
    struct gb_bp_sqs_queue queue;
    struct gb_opt_int batch_size, delay_seconds, max_message_bytes;
    struct gb_opt_ns timeout, linger;
    struct gb_opt_bool fifo; /* as written; see gb_blueprint_sqs_fifo */
    const char *message_group_id;
    struct gb_opt_word payload_encoding; /* enum gb_bp_payload_encoding */
};

struct gb_bp_http_receiver {
    const struct gb_node *node;
    const char *credentials_uri, *path, *api_key;
    struct gb_opt_int max_body_size, dedup_window;
    struct gb_opt_ns max_dispatch_duration;
};
struct gb_bp_http_sender {
    const struct gb_node *node;
    const char *credentials_uri, *path, *api_key, *redirect_endpoint;
    struct gb_opt_word mode; /* only `sse` */
    struct gb_opt_ns heartbeat_interval, write_timeout;
    struct gb_opt_int max_clients, client_buffer_size;
    struct gb_opt_bool at_most_once_accept_loss, fail_on_zero_delivery;
};

/* Spec 08 §8. */
enum gb_bp_exporter {
    GB_BP_EXPORT_NONE = 0,
    GB_BP_EXPORT_CLOUDWATCH,
    GB_BP_EXPORT_OTLP,
    GB_BP_EXPORT_EMF,
    GB_BP_EXPORT_PROMETHEUS
};
struct gb_bp_metrics {
    const struct gb_node *node;
    struct gb_opt_word exporter; /* enum gb_bp_exporter */
    const char *metrics_namespace, *region, *endpoint;
    struct gb_opt_ns interval;
    struct gb_opt_int buffer, max_requeue;
    struct gb_bp_map default_tags;
    struct gb_bp_strings rollup;
    struct gb_opt_bool instance_tag;
};
struct gb_bp_tracing {
    const struct gb_node *node;
    struct gb_opt_word exporter; /* enum gb_bp_exporter */
    const char *endpoint, *service_name, *environment;
    struct gb_opt_num sampling_ratio;
};
struct gb_bp_telemetry {
    const struct gb_node *node;
    struct gb_bp_metrics metrics;
    struct gb_bp_tracing tracing;
};

#endif
