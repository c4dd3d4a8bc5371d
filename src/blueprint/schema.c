#include "blueprint/schema.h"

#define AT(member) GB_FIELD_AT(GB_STRUCT, member)

static const struct gb_word modes[] = {
    {"standalone", GB_BP_STANDALONE}, {"clustered", GB_BP_CLUSTERED}, {0}};
static const struct gb_word levels[] = {{"debug", GB_LOG_DEBUG}, {"info", GB_LOG_INFO},
                                        {"warn", GB_LOG_WARN},   {"warning", GB_LOG_WARN},
                                        {"error", GB_LOG_ERROR}, {0}};
static const struct gb_word rollouts[] = {{"refuse", GB_BP_ROLLOUT_REFUSE},
                                          {"independent", GB_BP_ROLLOUT_INDEPENDENT},
                                          {"coordinated", GB_BP_ROLLOUT_COORDINATED},
                                          {0}};
static const struct gb_word watches[] = {
    {"notify", GB_BP_WATCH_NOTIFY}, {"poll", GB_BP_WATCH_POLL}, {0}};
static const struct gb_word store_types[] = {
    {"memory", GB_BP_MEMORY}, {"sqlite", GB_BP_SQLITE}, {"dynamodb", GB_BP_DYNAMODB}, {0}};
static const struct gb_word session_kinds[] = {
    {"mqtt", GB_BP_MQTT}, {"mqtt.paho", GB_BP_MQTT}, {0}};
const struct gb_word gb_schema_kinds[] = {
    {"mqtt", GB_BP_MQTT}, {"mqtt.paho", GB_BP_MQTT}, {"sqs", GB_BP_SQS}, {"http", GB_BP_HTTP}, {0}};
static const struct gb_word session_modes[] = {{"ephemeral", GB_BP_EPHEMERAL},
                                               {"persistent", GB_BP_PERSISTENT},
                                               {"exclusive", GB_BP_EXCLUSIVE},
                                               {0}};
static const struct gb_word processor_types[] = {{"filter", GB_BP_FILTER},
                                                 {"transform", GB_BP_TRANSFORM},
                                                 {"circuitbreaker", GB_BP_CIRCUITBREAKER},
                                                 {"tenant", GB_BP_TENANT},
                                                 {0}};

#define GB_STRUCT gb_bp_locator
static const struct gb_field locator_fields[] = {
    {"fail_open", GB_FIELD_BOOL, 0, AT(fail_open)},
    {"cache_ttl", GB_FIELD_DURATION, GB_FIELD_ZERO_DEFAULT, AT(cache_ttl), .max = GB_FOREVER,
     .def = 2 * GB_SEC},
    {"breaker_failures", GB_FIELD_INT, GB_FIELD_ZERO_DEFAULT, AT(breaker_failures),
     .max = INT32_MAX, .def = 3},
    {"breaker_cooldown", GB_FIELD_DURATION, GB_FIELD_ZERO_DEFAULT, AT(breaker_cooldown),
     .max = GB_FOREVER, .def = 5 * GB_SEC},
};
#undef GB_STRUCT
static const struct gb_block locator = {"locator", sizeof(struct gb_bp_locator),
                                        GB_FIELDS(locator_fields)};

#define GB_STRUCT gb_bp_forwarder
static const struct gb_field forwarder_fields[] = {
    {"timeout", GB_FIELD_DURATION, GB_FIELD_ZERO_DEFAULT, AT(timeout), .max = GB_FOREVER,
     .def = 30 * GB_SEC},
    {"idle_conn_timeout", GB_FIELD_DURATION, GB_FIELD_ZERO_DEFAULT, AT(idle_conn_timeout),
     .max = GB_FOREVER, .def = 90 * GB_SEC},
    {"max_retries", GB_FIELD_INT, 0, AT(max_retries), .max = 100, .def = 2},
    {"retry_initial_delay", GB_FIELD_DURATION, GB_FIELD_ZERO_DEFAULT, AT(retry_initial_delay),
     .max = GB_FOREVER, .def = 100 * GB_MS},
    {"retry_max_delay", GB_FIELD_DURATION, GB_FIELD_ZERO_DEFAULT, AT(retry_max_delay),
     .max = GB_FOREVER, .def = 200 * GB_MS},
    {"max_idle_conns_per_host", GB_FIELD_INT, GB_FIELD_ZERO_DEFAULT, AT(max_idle_conns_per_host),
     .max = 65535, .def = 32},
    {"max_conns_per_host", GB_FIELD_INT, GB_FIELD_ZERO_DEFAULT, AT(max_conns_per_host),
     .max = 65535, .def = 64},
    {"forward_token", GB_FIELD_TEXT, GB_FIELD_SECRET, AT(forward_token)},
    {"cluster_api_key", GB_FIELD_TEXT, GB_FIELD_SECRET, AT(cluster_api_key)},
    {"receiver_api_keys", GB_FIELD_TEXT_MAP, GB_FIELD_SECRET, AT(receiver_api_keys)},
};
#undef GB_STRUCT
static const struct gb_block forwarder = {"forwarder", sizeof(struct gb_bp_forwarder),
                                          GB_FIELDS(forwarder_fields)};

#define GB_STRUCT gb_bp_cluster
static const struct gb_field cluster_fields[] = {
    {"endpoints", GB_FIELD_TEXT_MAP, 0, AT(endpoints)},
    {"rollout", GB_FIELD_WORD, 0, AT(rollout), .words = rollouts},
    {"members", GB_FIELD_TEXTS, GB_FIELD_SET, AT(members)},
    {"confirm_window", GB_FIELD_DURATION, 0, AT(confirm_window), .max = GB_FOREVER},
    {"locator", GB_FIELD_BLOCK, 0, AT(locator), .block = &locator},
    {"forwarder", GB_FIELD_BLOCK, 0, AT(forwarder), .block = &forwarder},
};
#undef GB_STRUCT
static const struct gb_block cluster = {"cluster", sizeof(struct gb_bp_cluster),
                                        GB_FIELDS(cluster_fields)};

#define GB_STRUCT gb_bp_bridge
static const struct gb_field bridge_fields[] = {
    {"id", GB_FIELD_TEXT, 0, AT(id)}, /* its absence is V1, also for the empty document */
    {"instance_id", GB_FIELD_TEXT, 0, AT(instance_id)},
    {"deployment_mode", GB_FIELD_WORD, 0, AT(deployment_mode), .words = modes},
    {"shutdown_timeout", GB_FIELD_DURATION, GB_FIELD_FILLED, AT(shutdown_timeout), .min = 1,
     .max = GB_FOREVER, .def = 30 * GB_SEC},
    {"drain_timeout", GB_FIELD_DURATION, GB_FIELD_FILLED, AT(drain_timeout), .min = 1,
     .max = GB_FOREVER, .def = 30 * GB_SEC},
    {"per_record_drain_timeout", GB_FIELD_DURATION, 0, AT(per_record_drain_timeout), .min = 1,
     .max = GB_FOREVER, .def = 3 * GB_SEC},
    {"max_drain_timeout", GB_FIELD_DURATION, 0, AT(max_drain_timeout), .min = 1, .max = GB_FOREVER,
     .def = 10 * GB_SEC},
    {"log_level", GB_FIELD_WORD, GB_FIELD_ANY_CASE, AT(log_level), .words = levels,
     .def = GB_LOG_INFO},
    {"cluster", GB_FIELD_BLOCK, 0, AT(cluster), .block = &cluster},
};
#undef GB_STRUCT
static const struct gb_block bridge = {"bridge", sizeof(struct gb_bp_bridge),
                                       GB_FIELDS(bridge_fields)};

#define GB_STRUCT gb_bp_config_watch
static const struct gb_field watch_fields[] = {
    {"mode", GB_FIELD_WORD, 0, AT(mode), .words = watches},
    {"poll_interval", GB_FIELD_DURATION, 0, AT(poll_interval), .min = 1, .max = GB_FOREVER,
     .def = 30 * GB_SEC},
    {"debounce", GB_FIELD_DURATION, 0, AT(debounce), .min = 1, .max = GB_FOREVER,
     .def = 100 * GB_MS},
};
#undef GB_STRUCT
static const struct gb_block watch = {"config_watch", sizeof(struct gb_bp_config_watch),
                                      GB_FIELDS(watch_fields)};

#define GB_STRUCT gb_bp_store
static const struct gb_field store_fields[] = {
    {"type", GB_FIELD_WORD, GB_FIELD_REQUIRED, AT(type), .words = store_types},
    {"options", GB_FIELD_RAW, 0, AT(raw), .options_of = gb_schema_options_of_store},
};
/* Only the DLQ knows the window: on other roles the key is an error (spec 01 §3.3). */
static const struct gb_field dlq_fields[] = {
    {"type", GB_FIELD_WORD, GB_FIELD_REQUIRED, AT(type), .words = store_types},
    {"options", GB_FIELD_RAW, 0, AT(raw), .options_of = gb_schema_options_of_store},
    {"auto_redrive_window", GB_FIELD_DURATION, 0, AT(auto_redrive_window), .max = GB_FOREVER,
     .def = 24 * GB_HOUR},
};
#undef GB_STRUCT
static const struct gb_block store = {"store", sizeof(struct gb_bp_store), GB_FIELDS(store_fields)};
static const struct gb_block dlq = {"dlq", sizeof(struct gb_bp_store), GB_FIELDS(dlq_fields)};

struct stores {
    const struct gb_node *node;
    struct gb_bp_store roles[GB_BP_ROLE_COUNT];
};
_Static_assert(offsetof(struct gb_blueprint, stores) - offsetof(struct gb_blueprint, stores_node) ==
                   offsetof(struct stores, roles),
               "the root's stores are laid out as the block");
#define ROLE(role) .offset = offsetof(struct stores, roles) + (role) * sizeof(struct gb_bp_store)
static const struct gb_field stores_fields[] = {
    {"lease", GB_FIELD_BLOCK, 0, ROLE(GB_BP_LEASE), .block = &store},
    {"outbox", GB_FIELD_BLOCK, 0, ROLE(GB_BP_OUTBOX), .block = &store},
    {"dlq", GB_FIELD_BLOCK, 0, ROLE(GB_BP_DLQ), .block = &dlq},
    {"managed_subscriptions", GB_FIELD_BLOCK, 0, ROLE(GB_BP_SUBSCRIPTIONS), .block = &store},
};
static const struct gb_block stores = {"stores", sizeof(struct stores), GB_FIELDS(stores_fields)};

const char *gb_schema_role_name(enum gb_bp_role role)
{
    return stores_fields[role].key;
}

#define GB_STRUCT gb_bp_session
static const struct gb_field session_fields[] = {
    {"id", GB_FIELD_TEXT, GB_FIELD_REQUIRED, AT(id)},
    {"transport", GB_FIELD_WORD, GB_FIELD_REQUIRED | GB_FIELD_KIND, AT(transport),
     .words = session_kinds},
    {"session_mode", GB_FIELD_WORD, 0, AT(session_mode), .words = session_modes},
    {"options", GB_FIELD_RAW, 0, AT(raw), .options_of = gb_schema_options_of_session},
};
#undef GB_STRUCT
static const struct gb_block session = {"session", sizeof(struct gb_bp_session),
                                        GB_FIELDS(session_fields)};

#define GB_STRUCT gb_bp_topic
static const struct gb_field topic_fields[] = {
    {"topic", GB_FIELD_TEXT, GB_FIELD_REQUIRED, AT(topic)},
    {"qos", GB_FIELD_INT, 0, AT(qos), .max = 2},
    {"options", GB_FIELD_RAW, 0, AT(raw), .options_of = gb_schema_options_of_topic},
};
#undef GB_STRUCT
static const struct gb_block topic = {"topic", sizeof(struct gb_bp_topic), GB_FIELDS(topic_fields)};

#define GB_STRUCT gb_bp_receiver
static const struct gb_field receiver_fields[] = {
    {"id", GB_FIELD_TEXT, GB_FIELD_REQUIRED, AT(id)},
    {"transport", GB_FIELD_WORD, GB_FIELD_KIND, AT(transport), .words = gb_schema_kinds},
    {"session_id", GB_FIELD_TEXT, 0, AT(session_id)},
    {"topics", GB_FIELD_BLOCKS, 0, AT(topics),
     .count_offset = offsetof(struct gb_bp_receiver, topic_count), .block = &topic},
    {"options", GB_FIELD_RAW, 0, AT(raw), .options_of = gb_schema_options_of_receiver},
};
#undef GB_STRUCT
static const struct gb_block receiver = {"receiver", sizeof(struct gb_bp_receiver),
                                         GB_FIELDS(receiver_fields)};

#define GB_STRUCT gb_bp_sender
static const struct gb_field sender_fields[] = {
    {"id", GB_FIELD_TEXT, GB_FIELD_REQUIRED, AT(id)},
    {"transport", GB_FIELD_WORD, GB_FIELD_KIND, AT(transport), .words = gb_schema_kinds},
    {"session_id", GB_FIELD_TEXT, 0, AT(session_id)},
    {"options", GB_FIELD_RAW, 0, AT(raw), .options_of = gb_schema_options_of_sender},
};
#undef GB_STRUCT
static const struct gb_block sender = {"sender", sizeof(struct gb_bp_sender),
                                       GB_FIELDS(sender_fields)};

#define GB_STRUCT gb_bp_binding
static const struct gb_field binding_fields[] = {
    {"id", GB_FIELD_TEXT, GB_FIELD_REQUIRED, AT(id)},
    {"sender_id", GB_FIELD_TEXT, GB_FIELD_REQUIRED, AT(sender_id)},
    {"session_id", GB_FIELD_TEXT, 0, AT(session_id)},
    {"address", GB_FIELD_TEXT, GB_FIELD_REQUIRED, AT(address)},
    {"options", GB_FIELD_RAW, 0, AT(raw), .options_of = gb_schema_options_of_binding},
};
#undef GB_STRUCT
static const struct gb_block binding = {"binding", sizeof(struct gb_bp_binding),
                                        GB_FIELDS(binding_fields)};

#define GB_STRUCT gb_bp_processor
static const struct gb_field processor_fields[] = {
    {"type", GB_FIELD_WORD, GB_FIELD_REQUIRED, AT(type), .words = processor_types},
    {"config", GB_FIELD_RAW, 0, AT(raw), .options_of = gb_schema_config_of_processor},
};
#undef GB_STRUCT
static const struct gb_block processor = {"processor", sizeof(struct gb_bp_processor),
                                          GB_FIELDS(processor_fields)};

#define GB_STRUCT gb_bp_http
static const struct gb_field http_fields[] = {
    {"admin_addr", GB_FIELD_TEXT, 0, AT(admin_addr), .text_def = ":8080"},
    {"monitor_addr", GB_FIELD_TEXT, 0, AT(monitor_addr), .text_def = ":8081"},
    {"transport_addr", GB_FIELD_TEXT, 0, AT(transport_addr), .text_def = ":9090"},
    {"admin_api_key", GB_FIELD_TEXT, GB_FIELD_SECRET | GB_FIELD_REQUIRED, AT(admin_api_key),
     .rule = GB_RULE_V10},
    {"monitor_api_key", GB_FIELD_TEXT, GB_FIELD_SECRET, AT(monitor_api_key)},
    {"cors_origins", GB_FIELD_TEXTS, GB_FIELD_COMMAS, AT(cors_origins)},
    {"tls_cert_file", GB_FIELD_TEXT, 0, AT(tls_cert_file)},
    {"tls_key_file", GB_FIELD_TEXT, 0, AT(tls_key_file)},
};
#undef GB_STRUCT
static const struct gb_block http = {"http", sizeof(struct gb_bp_http), GB_FIELDS(http_fields)};

#define GB_STRUCT gb_blueprint
#define SECTION(key, how, many, one, table)                                                        \
    {                                                                                              \
        key, GB_FIELD_BLOCKS, GB_FIELD_SECTION | GB_FIELD_BY_ID | (how), AT(many),                 \
            .count_offset = offsetof(struct gb_blueprint, one##_count), .block = &(table)          \
    }
static const struct gb_field root_fields[] = {
    {"version", GB_FIELD_INT, GB_FIELD_NO_CONTENT, AT(version), .max = GB_FOREVER},
    {"bridge", GB_FIELD_BLOCK, GB_FIELD_MERGE, AT(bridge), .block = &bridge},
    {"config_watch", GB_FIELD_BLOCK, 0, AT(config_watch), .block = &watch},
    {"stores", GB_FIELD_BLOCK, GB_FIELD_MERGE, AT(stores_node), .block = &stores},
    SECTION("sessions", GB_FIELD_MERGE, sessions, session, session),
    SECTION("receivers", GB_FIELD_MERGE, receivers, receiver, receiver),
    SECTION("senders", GB_FIELD_MERGE, senders, sender, sender),
    SECTION("bindings", GB_FIELD_MERGE, bindings, binding, binding),
    SECTION("routes", 0, routes, route, gb_schema_route),
    {"processors", GB_FIELD_BLOCK_MAP, GB_FIELD_SECTION | GB_FIELD_MERGE, AT(processors),
     .count_offset = offsetof(struct gb_blueprint, processor_count), .block = &processor},
    {"http", GB_FIELD_BLOCK, GB_FIELD_MERGE, AT(http), .block = &http},
    {"telemetry", GB_FIELD_BLOCK, 0, AT(telemetry), .block = &gb_schema_telemetry},
};
#undef GB_STRUCT
const struct gb_block gb_schema_root = {"document", sizeof(struct gb_blueprint),
                                        GB_FIELDS(root_fields)};

const char *gb_schema_word_name(const struct gb_word *words, int value)
{
    for (; words->name != NULL; words++) {
        if (words->value == value) return words->name;
    }
    return "?";
}
