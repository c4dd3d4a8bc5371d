#include "blueprint/schema.h"

#define AT(member) GB_FIELD_AT(GB_STRUCT, member)

enum { COUNT_MAX = 1000000 };

static const struct gb_word deliveries[] = {
    {"direct_hold", GB_DIRECT_HOLD}, {"shared_outbox", GB_SHARED_OUTBOX}, {0}};
static const struct gb_word dispatches[] = {
    {"single", GB_DISPATCH_SINGLE}, {"fan_out", GB_DISPATCH_FAN_OUT}, {0}};
static const struct gb_word acks[] = {
    {"target_accept", GB_BP_ACK_TARGET_ACCEPT}, {"outbox_persist", GB_BP_ACK_OUTBOX_PERSIST}, {0}};
static const struct gb_word actions[] = {{"drop", GB_ACTION_DROP}, {"dlq", GB_ACTION_DLQ}, {0}};
static const struct gb_word resolvers[] = {{"rules", GB_BP_RULES},
                                           {"header_map", GB_BP_HEADER_MAP},
                                           {"all", GB_BP_ALL},
                                           {"static", GB_BP_STATIC},
                                           {0}};
static const struct gb_word operators[] = {{"eq", GB_BP_EQ},         {"ne", GB_BP_NE},
                                           {"prefix", GB_BP_PREFIX}, {"contains", GB_BP_CONTAINS},
                                           {"regex", GB_BP_REGEX},   {"gt", GB_BP_GT},
                                           {"lt", GB_BP_LT},         {"gte", GB_BP_GTE},
                                           {"lte", GB_BP_LTE},       {"exists", GB_BP_EXISTS},
                                           {"in", GB_BP_IN},         {0}};
static const struct gb_word strategies[] = {
    {"adaptive_backoff", GB_DRAIN_ADAPTIVE}, {"fixed_poll", GB_DRAIN_FIXED}, {0}};

#define GB_STRUCT gb_bp_backoff
static const struct gb_field backoff_fields[] = {
    {"initial_interval", GB_FIELD_DURATION, GB_FIELD_ZERO_DEFAULT, AT(initial_interval),
     .max = GB_FOREVER, .def = GB_SEC},
    {"max_interval", GB_FIELD_DURATION, GB_FIELD_ZERO_DEFAULT, AT(max_interval), .max = GB_FOREVER,
     .def = 30 * GB_SEC},
    {"multiplier", GB_FIELD_NUMBER, 0, AT(multiplier), .num_min = 1, .num_max = 1e6,
     .num_def = 2.0},
    {"jitter", GB_FIELD_NUMBER, 0, AT(jitter), .num_min = 0, .num_max = 1, .num_def = 0.2},
};
#undef GB_STRUCT
static const struct gb_block backoff = {"backoff", sizeof(struct gb_bp_backoff),
                                        GB_FIELDS(backoff_fields)};

#define GB_STRUCT gb_bp_policy
static const struct gb_field policy_fields[] = {
    {"max_in_flight", GB_FIELD_INT, GB_FIELD_ZERO_DEFAULT, AT(max_in_flight), .max = COUNT_MAX,
     .def = 100},
    {"ack_after", GB_FIELD_WORD, 0, AT(ack_after), .words = acks},
    {"max_replay_attempts", GB_FIELD_INT, GB_FIELD_ZERO_DEFAULT, AT(max_replay_attempts),
     .max = COUNT_MAX, .def = 5},
    {"replay_budget", GB_FIELD_DURATION, GB_FIELD_ZERO_DEFAULT, AT(replay_budget),
     .max = GB_FOREVER, .def = 15 * GB_MINUTE},
    {"send_retry_budget", GB_FIELD_DURATION, 0, AT(send_retry_budget), .max = GB_FOREVER,
     .def = 60 * GB_SEC},
    {"max_outbox_depth", GB_FIELD_INT, GB_FIELD_ZERO_DEFAULT, AT(max_outbox_depth),
     .max = INT32_MAX, .def = 10000},
    {"depth_cache_ttl", GB_FIELD_DURATION, 0, AT(depth_cache_ttl), .min = 1, .max = GB_FOREVER,
     .def = GB_SEC},
    {"send_timeout", GB_FIELD_DURATION, 0, AT(send_timeout), .min = 1, .max = GB_FOREVER,
     .def = 30 * GB_SEC},
    {"processor_timeout", GB_FIELD_DURATION, 0, AT(processor_timeout), .min = 1, .max = GB_FOREVER,
     .def = 30 * GB_SEC},
    {"on_expired", GB_FIELD_WORD, 0, AT(on_expired), .words = actions, .def = GB_ACTION_DLQ},
    {"on_permanent_failure", GB_FIELD_WORD, 0, AT(on_permanent_failure), .words = actions,
     .def = GB_ACTION_DLQ},
    {"on_filtered", GB_FIELD_WORD, 0, AT(on_filtered), .words = actions, .def = GB_ACTION_DROP},
    {"allow_unfenced", GB_FIELD_BOOL, 0, AT(allow_unfenced)},
    {"allow_retry_drop", GB_FIELD_BOOL, 0, AT(allow_retry_drop)},
    {"backoff", GB_FIELD_BLOCK, 0, AT(backoff), .block = &backoff},
};
#undef GB_STRUCT
static const struct gb_block policy = {"policy", sizeof(struct gb_bp_policy),
                                       GB_FIELDS(policy_fields)};

#define GB_STRUCT gb_bp_condition
static const struct gb_field condition_fields[] = {
    {"field", GB_FIELD_TEXT, GB_FIELD_REQUIRED, AT(field)},
    {"operator", GB_FIELD_WORD, GB_FIELD_REQUIRED, AT(op), .words = operators},
    {"value", GB_FIELD_RAW, GB_FIELD_CONDITION, AT(value)},
};
#undef GB_STRUCT
static const struct gb_block condition = {"condition", sizeof(struct gb_bp_condition),
                                          GB_FIELDS(condition_fields)};

#define GB_STRUCT gb_bp_rule
static const struct gb_field rule_fields[] = {
    {"binding_id", GB_FIELD_TEXT, GB_FIELD_REQUIRED, AT(binding_id)},
    {"match", GB_FIELD_BLOCKS, 0, AT(match),
     .count_offset = offsetof(struct gb_bp_rule, match_count), .block = &condition},
};
#undef GB_STRUCT
static const struct gb_block rule = {"rule", sizeof(struct gb_bp_rule), GB_FIELDS(rule_fields)};

#define GB_STRUCT gb_bp_resolver
static const struct gb_field resolver_fields[] = {
    {"type", GB_FIELD_WORD, GB_FIELD_REQUIRED, AT(type), .words = resolvers},
    {"default_binding", GB_FIELD_TEXT, 0, AT(default_binding)},
    {"header_key", GB_FIELD_TEXT, 0, AT(header_key)},
    {"header_map", GB_FIELD_TEXT_MAP, 0, AT(header_map)},
    {"rules", GB_FIELD_BLOCKS, 0, AT(rules),
     .count_offset = offsetof(struct gb_bp_resolver, rule_count), .block = &rule},
};
#undef GB_STRUCT
static const struct gb_block resolver = {"resolver", sizeof(struct gb_bp_resolver),
                                         GB_FIELDS(resolver_fields)};

#define GB_STRUCT gb_bp_drain_strategy
static const struct gb_field strategy_fields[] = {
    {"type", GB_FIELD_WORD, 0, AT(type), .words = strategies, .def = GB_DRAIN_ADAPTIVE},
    {"interval", GB_FIELD_DURATION, 0, AT(interval), .min = 1, .max = GB_FOREVER, .def = GB_SEC},
    {"min_interval", GB_FIELD_DURATION, 0, AT(min_interval), .min = 1, .max = GB_FOREVER,
     .def = 100 * GB_MS},
    {"max_interval", GB_FIELD_DURATION, 0, AT(max_interval), .min = 1, .max = GB_FOREVER,
     .def = 30 * GB_SEC},
    {"multiplier", GB_FIELD_NUMBER, 0, AT(multiplier), .num_min = 1, .num_max = 1e6,
     .num_def = 2.0},
};
#undef GB_STRUCT
static const struct gb_block strategy = {"drain_strategy", sizeof(struct gb_bp_drain_strategy),
                                         GB_FIELDS(strategy_fields)};

/* Lease keys without a default here derive from the others (spec 01 §4). */
#define GB_STRUCT gb_bp_route_session
static const struct gb_field route_session_fields[] = {
    {"session_id", GB_FIELD_TEXT, GB_FIELD_REQUIRED, AT(session_id)},
    {"sender_id", GB_FIELD_TEXT, GB_FIELD_REQUIRED, AT(sender_id)},
    {"lease_ttl", GB_FIELD_DURATION, 0, AT(lease_ttl), .min = 1, .max = GB_FOREVER},
    {"renew_interval", GB_FIELD_DURATION, 0, AT(renew_interval), .min = 1, .max = GB_FOREVER},
    {"lease_renew_jitter", GB_FIELD_DURATION, 0, AT(lease_renew_jitter), .max = GB_FOREVER},
    {"renew_call_timeout", GB_FIELD_DURATION, 0, AT(renew_call_timeout), .max = GB_FOREVER},
    {"acquire_poll_interval", GB_FIELD_DURATION, 0, AT(acquire_poll_interval), .max = GB_FOREVER},
    {"max_renew_fails", GB_FIELD_INT, GB_FIELD_ZERO_DEFAULT, AT(max_renew_fails), .max = COUNT_MAX,
     .def = 3},
    {"step_down_grace", GB_FIELD_DURATION, 0, AT(step_down_grace), .max = GB_FOREVER},
    {"connect_after_lease", GB_FIELD_BOOL, 0, AT(connect_after_lease), .def = true},
    {"failover_slo", GB_FIELD_DURATION, 0, AT(failover_slo), .min = 1, .max = GB_FOREVER,
     .rule = GB_RULE_V42},
    {"startup_allowance", GB_FIELD_DURATION, 0, AT(startup_allowance), .max = 10 * GB_MINUTE,
     .rule = GB_RULE_V42},
    {"broker_health_step_down", GB_FIELD_DURATION, GB_FIELD_OFF, AT(broker_health_step_down),
     .min = 1, .max = GB_FOREVER},
    {"drain_interval", GB_FIELD_DURATION, 0, AT(drain_interval), .min = 1, .max = GB_FOREVER},
    {"drain_batch_size", GB_FIELD_INT, 0, AT(drain_batch_size), .min = 1, .max = 10000, .def = 100},
    {"drain_max_batch_size", GB_FIELD_INT, 0, AT(drain_max_batch_size), .min = 1, .max = 10000,
     .def = 500},
    {"drain_max_concurrency", GB_FIELD_INT, 0, AT(drain_max_concurrency), .min = 1, .max = 10000,
     .def = 10},
    {"drain_strategy", GB_FIELD_BLOCK, 0, AT(drain_strategy), .block = &strategy},
};
#undef GB_STRUCT
static const struct gb_block route_session = {"session", sizeof(struct gb_bp_route_session),
                                              GB_FIELDS(route_session_fields)};

#define GB_STRUCT gb_bp_route
static const struct gb_field route_fields[] = {
    {"id", GB_FIELD_TEXT, GB_FIELD_REQUIRED, AT(id)},
    {"receiver_id", GB_FIELD_TEXT, GB_FIELD_REQUIRED, AT(receiver_id)},
    {"delivery_mode", GB_FIELD_WORD, 0, AT(delivery_mode), .words = deliveries},
    {"dispatch_mode", GB_FIELD_WORD, 0, AT(dispatch_mode), .words = dispatches},
    {"bindings", GB_FIELD_TEXTS, 0, AT(binding_ids)},
    {"processors", GB_FIELD_TEXTS, 0, AT(processors)},
    {"trust_bridge_headers", GB_FIELD_BOOL, 0, AT(trust_bridge_headers)},
    {"policy", GB_FIELD_BLOCK, 0, AT(policy), .block = &policy},
    {"resolver", GB_FIELD_BLOCK, 0, AT(resolver), .block = &resolver},
    {"session", GB_FIELD_BLOCK, 0, AT(session), .block = &route_session},
};
#undef GB_STRUCT
const struct gb_block gb_schema_route = {"route", sizeof(struct gb_bp_route),
                                         GB_FIELDS(route_fields)};
