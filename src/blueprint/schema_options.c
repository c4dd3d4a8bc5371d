#include "blueprint/schema.h"

#define AT(member) GB_FIELD_AT(GB_STRUCT, member)

/* ---- MQTT (spec 03 §3) ---- */

static const struct gb_word suffixes[] = {
    {"hostname", GB_BP_SUFFIX_HOSTNAME}, {"nonce", GB_BP_SUFFIX_NONCE}, {0}};
static const struct gb_word versions[] = {{"v5", GB_BP_MQTT_V5}, {"v3.1.1", GB_BP_MQTT_V311}, {0}};
static const struct gb_word message_ids[] = {
    {"random", GB_BP_ID_RANDOM}, {"content_hash", GB_BP_ID_CONTENT_HASH}, {0}};

#define GB_STRUCT gb_bp_will
static const struct gb_field will_fields[] = {
    {"topic", GB_FIELD_TEXT, GB_FIELD_REQUIRED, AT(topic)},
    {"payload", GB_FIELD_TEXT, 0, AT(payload)},
    {"qos", GB_FIELD_INT, 0, AT(qos), .max = 2},
    {"retain", GB_FIELD_BOOL, 0, AT(retain)},
};
#undef GB_STRUCT
static const struct gb_block will = {"will", sizeof(struct gb_bp_will), GB_FIELDS(will_fields)};

#define GB_STRUCT gb_bp_tls
static const struct gb_field tls_fields[] = {
    {"enable", GB_FIELD_BOOL, 0, AT(enable)},
    {"ca_cert_file", GB_FIELD_TEXT, 0, AT(ca_cert_file)},
    {"cert_file", GB_FIELD_TEXT, 0, AT(cert_file)},
    {"key_file", GB_FIELD_TEXT, 0, AT(key_file)},
    {"ca_cert_pem", GB_FIELD_TEXT, 0, AT(ca_cert_pem)},
    {"cert_pem", GB_FIELD_TEXT, 0, AT(cert_pem)},
    {"key_pem", GB_FIELD_TEXT, GB_FIELD_SECRET, AT(key_pem)},
    {"insecure_skip_verify", GB_FIELD_BOOL, 0, AT(insecure_skip_verify)},
};
#undef GB_STRUCT
static const struct gb_block tls = {"tls", sizeof(struct gb_bp_tls), GB_FIELDS(tls_fields)};

/* Sizes stay in the protocol's 32 bits; the sum with the overhead is checked by validation. */
#define GB_STRUCT gb_bp_mqtt_session
static const struct gb_field mqtt_session_fields[] = {
    {"broker_url", GB_FIELD_TEXT, 0, AT(broker_url)},
    {"broker_urls", GB_FIELD_TEXTS, GB_FIELD_COMMAS, AT(broker_urls)},
    {"client_id", GB_FIELD_TEXT, GB_FIELD_REQUIRED, AT(client_id)},
    {"client_id_suffix", GB_FIELD_WORD, 0, AT(client_id_suffix), .words = suffixes},
    {"assert_stable_client_identity", GB_FIELD_BOOL, 0, AT(assert_stable_client_identity)},
    {"keep_alive", GB_FIELD_INT, 0, AT(keep_alive), .max = 65535, .def = 30},
    {"connect_timeout", GB_FIELD_DURATION, GB_FIELD_ZERO_DEFAULT, AT(connect_timeout),
     .max = GB_FOREVER, .def = 30 * GB_SEC},
    {"reconnect_timeout", GB_FIELD_DURATION, GB_FIELD_ZERO_DEFAULT, AT(reconnect_timeout),
     .max = GB_FOREVER, .def = 30 * GB_SEC},
    {"reconcile_timeout", GB_FIELD_DURATION, GB_FIELD_ZERO_DEFAULT, AT(reconcile_timeout),
     .max = GB_FOREVER, .def = 30 * GB_SEC},
    {"unmatched_grace", GB_FIELD_DURATION, GB_FIELD_ZERO_DEFAULT, AT(unmatched_grace),
     .max = GB_FOREVER, .def = 30 * GB_SEC},
    {"reconnect_delay", GB_FIELD_DURATION, GB_FIELD_ZERO_DEFAULT, AT(reconnect_delay),
     .max = GB_FOREVER, .def = 10 * GB_SEC},
    {"reconnect_max_delay", GB_FIELD_DURATION, GB_FIELD_ZERO_DEFAULT, AT(reconnect_max_delay),
     .max = GB_FOREVER, .def = 2 * GB_MINUTE},
    {"clean_start", GB_FIELD_BOOL, 0, AT(clean_start)},
    {"session_expiry_interval", GB_FIELD_INT, 0, AT(session_expiry_interval), .max = UINT32_MAX},
    {"receive_maximum", GB_FIELD_INT, GB_FIELD_ZERO_DEFAULT, AT(receive_maximum), .max = 65535,
     .def = 192},
    {"max_payload_bytes", GB_FIELD_INT, GB_FIELD_ZERO_DEFAULT, AT(max_payload_bytes),
     .max = UINT32_MAX, .def = 262144},
    {"ingress_memory_budget_bytes", GB_FIELD_INT, GB_FIELD_ZERO_DEFAULT,
     AT(ingress_memory_budget_bytes), .max = GB_FOREVER, .def = 268435456},
    {"no_local", GB_FIELD_BOOL, 0, AT(no_local)},
    {"protocol_version", GB_FIELD_WORD, 0, AT(protocol_version), .words = versions},
    {"message_id", GB_FIELD_WORD, 0, AT(message_id), .words = message_ids},
    {"username", GB_FIELD_TEXT, 0, AT(username)},
    {"password", GB_FIELD_TEXT, GB_FIELD_SECRET, AT(password)},
    {"allow_plaintext_credentials", GB_FIELD_BOOL, 0, AT(allow_plaintext_credentials)},
    {"will", GB_FIELD_BLOCK, 0, AT(will), .block = &will},
    {"tls", GB_FIELD_BLOCK, 0, AT(tls), .block = &tls},
};
#undef GB_STRUCT
static const struct gb_block mqtt_session = {"session", sizeof(struct gb_bp_mqtt_session),
                                             GB_FIELDS(mqtt_session_fields)};

static const struct gb_field mqtt_session_option_fields[] = {
    {"session", GB_FIELD_BLOCK, 0, GB_FIELD_AT(gb_bp_session, mqtt), .block = &mqtt_session},
    {"credentials_uri", GB_FIELD_TEXT, 0, GB_FIELD_AT(gb_bp_session, credentials_uri)},
};
const struct gb_block gb_schema_mqtt_session_options = {
    "options", sizeof(struct gb_bp_session), GB_FIELDS(mqtt_session_option_fields), .inner = true};

static const struct gb_field subscription_fields[] = {
    {"qos_recheck_interval", GB_FIELD_DURATION, 0, GB_FIELD_AT(gb_bp_topic, qos_recheck_interval),
     .max = GB_FOREVER, .def = GB_HOUR},
};
/* Its one field lies in the topic itself: the block starts where the topic does. */
static const struct gb_block subscription = {"subscription", sizeof(struct gb_bp_topic),
                                             GB_FIELDS(subscription_fields), .inner = true};
static const struct gb_field mqtt_topic_option_fields[] = {
    {"subscription", GB_FIELD_BLOCK, 0, .offset = 0, .block = &subscription},
};
const struct gb_block gb_schema_mqtt_topic_options = {
    "options", sizeof(struct gb_bp_topic), GB_FIELDS(mqtt_topic_option_fields), .inner = true};

static const struct gb_field mqtt_receiver_option_fields[] = {
    {"credentials_uri", GB_FIELD_TEXT, 0, GB_FIELD_AT(gb_bp_receiver, credentials_uri)},
};
const struct gb_block gb_schema_mqtt_receiver_options = {"options", sizeof(struct gb_bp_receiver),
                                                         GB_FIELDS(mqtt_receiver_option_fields),
                                                         .inner = true};

#define GB_STRUCT gb_bp_mqtt_sender
static const struct gb_field mqtt_sender_fields[] = {
    {"default_topic", GB_FIELD_TEXT, 0, AT(default_topic)},
    {"qos", GB_FIELD_INT, 0, AT(qos), .max = 2, .def = 1},
    {"retain", GB_FIELD_BOOL, 0, AT(retain)},
    {"timeout", GB_FIELD_DURATION, GB_FIELD_ZERO_DEFAULT, AT(timeout), .max = GB_FOREVER,
     .def = 30 * GB_SEC},
    {"throttle_retry_after", GB_FIELD_DURATION, GB_FIELD_ZERO_DEFAULT, AT(throttle_retry_after),
     .max = GB_FOREVER, .def = 500 * GB_MS},
};
#undef GB_STRUCT
static const struct gb_block mqtt_sender = {"sender", sizeof(struct gb_bp_mqtt_sender),
                                            GB_FIELDS(mqtt_sender_fields)};
static const struct gb_field mqtt_sender_option_fields[] = {
    {"sender", GB_FIELD_BLOCK, 0, GB_FIELD_AT(gb_bp_sender, mqtt), .block = &mqtt_sender},
    {"credentials_uri", GB_FIELD_TEXT, 0, GB_FIELD_AT(gb_bp_sender, credentials_uri)},
};
const struct gb_block gb_schema_mqtt_sender_options = {
    "options", sizeof(struct gb_bp_sender), GB_FIELDS(mqtt_sender_option_fields), .inner = true};

/* ---- SQS (spec 04 B2, B3, B9) ---- */

static const struct gb_word encodings[] = {
    {"auto", GB_BP_ENCODE_AUTO}, {"text", GB_BP_ENCODE_TEXT}, {"base64", GB_BP_ENCODE_BASE64}, {0}};

#define QUEUE_FIELDS                                                                               \
    {"queue_url", GB_FIELD_TEXT, 0, AT(queue.queue_url)},                                          \
        {"queue_name", GB_FIELD_TEXT, 0, AT(queue.queue_name)},                                    \
        {"queue_tags", GB_FIELD_TEXT_MAP, 0, AT(queue.queue_tags)},                                \
        {"queue_name_prefix", GB_FIELD_TEXT, 0, AT(queue.queue_name_prefix)},                      \
        {"region", GB_FIELD_TEXT, 0, AT(queue.region)},                                            \
        {"endpoint", GB_FIELD_TEXT, 0, AT(queue.endpoint)},                                        \
        {"profile", GB_FIELD_TEXT, 0, AT(queue.profile)},                                          \
    {                                                                                              \
        "credentials_uri", GB_FIELD_TEXT, 0, AT(credentials_uri)                                   \
    }

#define GB_STRUCT gb_bp_sqs_receiver
static const struct gb_field sqs_receiver_fields[] = {
    QUEUE_FIELDS,
    {"max_messages", GB_FIELD_INT, 0, AT(max_messages), .min = 1, .max = 10, .def = 10},
    {"wait_time_seconds", GB_FIELD_INT, 0, AT(wait_time_seconds), .min = 1, .max = 20, .def = 20},
    {"visibility_timeout", GB_FIELD_INT, GB_FIELD_ZERO_DEFAULT, AT(visibility_timeout),
     .max = 43200, .def = 30},
    {"auto_extend", GB_FIELD_BOOL, 0, AT(auto_extend), .def = true},
    {"sns_unwrap", GB_FIELD_BOOL, 0, AT(sns_unwrap)},
    {"init_timeout", GB_FIELD_DURATION, GB_FIELD_ZERO_DEFAULT, AT(init_timeout), .max = GB_FOREVER,
     .def = 30 * GB_SEC},
    {"poll_backoff_initial", GB_FIELD_DURATION, GB_FIELD_ZERO_DEFAULT, AT(poll_backoff_initial),
     .max = GB_FOREVER, .def = GB_SEC},
    {"poll_backoff_max", GB_FIELD_DURATION, GB_FIELD_ZERO_DEFAULT, AT(poll_backoff_max),
     .max = GB_FOREVER, .def = 30 * GB_SEC},
    {"poll_backoff_multiplier", GB_FIELD_NUMBER, 0, AT(poll_backoff_multiplier), .num_min = 1,
     .num_max = 1e6, .num_def = 2.0},
    {"poison_max_receives", GB_FIELD_INT, 0, AT(poison_max_receives), .max = INT32_MAX},
    {"poison_drop_without_dlq", GB_FIELD_BOOL, 0, AT(poison_drop_without_dlq)},
};
#undef GB_STRUCT
const struct gb_block gb_schema_sqs_receiver = {"options", sizeof(struct gb_bp_sqs_receiver),
                                                GB_FIELDS(sqs_receiver_fields)};

#define GB_STRUCT gb_bp_sqs_sender
static const struct gb_field sqs_sender_fields[] = {
    QUEUE_FIELDS,
    {"batch_size", GB_FIELD_INT, GB_FIELD_ZERO_DEFAULT, AT(batch_size), .max = 10, .def = 10},
    {"delay_seconds", GB_FIELD_INT, 0, AT(delay_seconds), .max = 900},
    {"timeout", GB_FIELD_DURATION, GB_FIELD_ZERO_DEFAULT, AT(timeout), .max = GB_FOREVER,
     .def = 30 * GB_SEC},
    {"fifo", GB_FIELD_BOOL, 0, AT(fifo)},
    {"message_group_id", GB_FIELD_TEXT, 0, AT(message_group_id)},
    {"max_message_bytes", GB_FIELD_INT, GB_FIELD_ZERO_DEFAULT, AT(max_message_bytes),
     .max = 1048576, .def = 1048576},
    {"linger", GB_FIELD_DURATION, 0, AT(linger), .max = GB_SEC},
    {"payload_encoding", GB_FIELD_WORD, 0, AT(payload_encoding), .words = encodings},
};
#undef GB_STRUCT
const struct gb_block gb_schema_sqs_sender = {"options", sizeof(struct gb_bp_sqs_sender),
                                              GB_FIELDS(sqs_sender_fields)};

/* ---- HTTP (spec 04 C3, C9) ---- */

static const struct gb_word sse_modes[] = {{"sse", 0}, {0}};

#define GB_STRUCT gb_bp_http_receiver
static const struct gb_field http_receiver_fields[] = {
    {"credentials_uri", GB_FIELD_TEXT, 0, AT(credentials_uri)},
    {"path", GB_FIELD_TEXT, 0, AT(path)},
    {"api_key", GB_FIELD_TEXT, GB_FIELD_SECRET, AT(api_key)},
    {"max_body_size", GB_FIELD_INT, GB_FIELD_ZERO_DEFAULT, AT(max_body_size), .max = INT32_MAX,
     .def = 1048576},
    {"dedup_window", GB_FIELD_INT, GB_FIELD_ZERO_DEFAULT, AT(dedup_window), .max = 1000000,
     .def = 4096},
    {"max_dispatch_duration", GB_FIELD_DURATION, GB_FIELD_ZERO_DEFAULT, AT(max_dispatch_duration),
     .max = GB_FOREVER, .def = 5 * GB_MINUTE},
};
#undef GB_STRUCT
const struct gb_block gb_schema_http_receiver = {"options", sizeof(struct gb_bp_http_receiver),
                                                 GB_FIELDS(http_receiver_fields)};

#define GB_STRUCT gb_bp_http_sender
static const struct gb_field http_sender_fields[] = {
    {"credentials_uri", GB_FIELD_TEXT, 0, AT(credentials_uri)},
    {"mode", GB_FIELD_WORD, 0, AT(mode), .words = sse_modes},
    {"path", GB_FIELD_TEXT, 0, AT(path)},
    {"api_key", GB_FIELD_TEXT, GB_FIELD_SECRET, AT(api_key)},
    {"heartbeat_interval", GB_FIELD_DURATION, GB_FIELD_ZERO_DEFAULT, AT(heartbeat_interval),
     .max = GB_FOREVER, .def = 30 * GB_SEC},
    {"write_timeout", GB_FIELD_DURATION, GB_FIELD_ZERO_DEFAULT, AT(write_timeout),
     .max = GB_FOREVER, .def = 15 * GB_SEC},
    {"max_clients", GB_FIELD_INT, GB_FIELD_ZERO_DEFAULT, AT(max_clients), .max = 1000000,
     .def = 10000},
    {"client_buffer_size", GB_FIELD_INT, GB_FIELD_ZERO_DEFAULT, AT(client_buffer_size),
     .max = 1000000, .def = 256},
    {"at_most_once_accept_loss", GB_FIELD_BOOL, 0, AT(at_most_once_accept_loss)},
    {"fail_on_zero_delivery", GB_FIELD_BOOL, 0, AT(fail_on_zero_delivery)},
    {"redirect_endpoint", GB_FIELD_TEXT, 0, AT(redirect_endpoint)},
};
#undef GB_STRUCT
const struct gb_block gb_schema_http_sender = {"options", sizeof(struct gb_bp_http_sender),
                                               GB_FIELDS(http_sender_fields)};

/* ---- telemetry (spec 08 §8) ---- */

static const struct gb_word metric_exporters[] = {{"none", GB_BP_EXPORT_NONE},
                                                  {"noop", GB_BP_EXPORT_NONE},
                                                  {"cloudwatch", GB_BP_EXPORT_CLOUDWATCH},
                                                  {"otlp", GB_BP_EXPORT_OTLP},
                                                  {"emf", GB_BP_EXPORT_EMF},
                                                  {"prometheus", GB_BP_EXPORT_PROMETHEUS},
                                                  {0}};
static const struct gb_word trace_exporters[] = {
    {"none", GB_BP_EXPORT_NONE}, {"otlp", GB_BP_EXPORT_OTLP}, {0}};

#define GB_STRUCT gb_bp_metrics
static const struct gb_field metrics_fields[] = {
    {"exporter", GB_FIELD_WORD, 0, AT(exporter), .words = metric_exporters},
    {"namespace", GB_FIELD_TEXT, 0, AT(metrics_namespace), .text_def = "GoBridge/Runtime"},
    {"interval", GB_FIELD_DURATION, 0, AT(interval), .min = 1, .max = GB_FOREVER,
     .def = 60 * GB_SEC},
    {"buffer", GB_FIELD_INT, GB_FIELD_ZERO_DEFAULT, AT(buffer), .max = 1000000, .def = 1000},
    {"max_requeue", GB_FIELD_INT, GB_FIELD_ZERO_DEFAULT, AT(max_requeue), .max = 1000000,
     .def = 10000},
    {"region", GB_FIELD_TEXT, 0, AT(region)},
    {"endpoint", GB_FIELD_TEXT, 0, AT(endpoint)},
    {"default_tags", GB_FIELD_TEXT_MAP, 0, AT(default_tags)},
    {"rollup", GB_FIELD_TEXTS, 0, AT(rollup)},
    {"instance_tag", GB_FIELD_BOOL, 0, AT(instance_tag)},
};
#undef GB_STRUCT
static const struct gb_block metrics = {"metrics", sizeof(struct gb_bp_metrics),
                                        GB_FIELDS(metrics_fields)};

#define GB_STRUCT gb_bp_tracing
static const struct gb_field tracing_fields[] = {
    {"exporter", GB_FIELD_WORD, 0, AT(exporter), .words = trace_exporters},
    {"endpoint", GB_FIELD_TEXT, 0, AT(endpoint)},
    {"service_name", GB_FIELD_TEXT, 0, AT(service_name), .text_def = "gobridge"},
    {"environment", GB_FIELD_TEXT, 0, AT(environment)},
    {"sampling_ratio", GB_FIELD_NUMBER, 0, AT(sampling_ratio), .num_min = 0, .num_max = 1,
     .num_def = 1.0},
};
#undef GB_STRUCT
static const struct gb_block tracing = {"tracing", sizeof(struct gb_bp_tracing),
                                        GB_FIELDS(tracing_fields)};

static const struct gb_field telemetry_fields[] = {
    {"metrics", GB_FIELD_BLOCK, 0, GB_FIELD_AT(gb_bp_telemetry, metrics), .block = &metrics},
    {"tracing", GB_FIELD_BLOCK, 0, GB_FIELD_AT(gb_bp_telemetry, tracing), .block = &tracing},
};
const struct gb_block gb_schema_telemetry = {"telemetry", sizeof(struct gb_bp_telemetry),
                                             GB_FIELDS(telemetry_fields)};
