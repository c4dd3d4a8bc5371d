#include "blueprint/blueprint_processors.h"
#include "blueprint/schema.h"

/* `config` of the processors (spec 02 §9). */

#define AT(member) GB_FIELD_AT(GB_STRUCT, member)

static const struct gb_word filter_actions[] = {
    {"pass", GB_BP_PASS}, {"drop", GB_BP_DROP}, {"route", GB_BP_ROUTE}, {0}};
/* As for resolvers, less `prefix` (spec 02 §8.2). */
static const struct gb_word filter_operators[] = {{"eq", GB_BP_EQ},
                                                  {"ne", GB_BP_NE},
                                                  {"contains", GB_BP_CONTAINS},
                                                  {"regex", GB_BP_REGEX},
                                                  {"gt", GB_BP_GT},
                                                  {"lt", GB_BP_LT},
                                                  {"gte", GB_BP_GTE},
                                                  {"lte", GB_BP_LTE},
                                                  {"in", GB_BP_IN},
                                                  {"exists", GB_BP_EXISTS},
                                                  {0}};
static const struct gb_word transforms[] = {{"string", GB_BP_TO_STRING},
                                            {"int", GB_BP_TO_INT},
                                            {"float", GB_BP_TO_FLOAT},
                                            {"bool", GB_BP_TO_BOOL},
                                            {"base64encode", GB_BP_BASE64_ENCODE},
                                            {"base64decode", GB_BP_BASE64_DECODE},
                                            {0}};

#define GB_STRUCT gb_bp_condition
static const struct gb_field condition_fields[] = {
    {"field", GB_FIELD_TEXT, GB_FIELD_REQUIRED, AT(field)},
    {"operator", GB_FIELD_WORD, GB_FIELD_REQUIRED, AT(op), .words = filter_operators},
    {"value", GB_FIELD_RAW, GB_FIELD_CONDITION, AT(value)},
};
#undef GB_STRUCT
static const struct gb_block condition = {"condition", sizeof(struct gb_bp_condition),
                                          GB_FIELDS(condition_fields), .camel = true};

#define PAYLOAD_MAX                                                                                \
    {                                                                                              \
        "maxPayloadBytes", GB_FIELD_INT, GB_FIELD_ZERO_DEFAULT, AT(max_payload_bytes),             \
            .max = INT32_MAX, .def = 4194304                                                       \
    }

#define GB_STRUCT gb_bp_filter
static const struct gb_field filter_fields[] = {
    {"name", GB_FIELD_TEXT, 0, AT(name), .text_def = "filter"},
    {"conditions", GB_FIELD_BLOCKS, 0, AT(conditions),
     .count_offset = offsetof(struct gb_bp_filter, condition_count), .block = &condition},
    {"action", GB_FIELD_WORD, 0, AT(action), .words = filter_actions},
    {"routeTo", GB_FIELD_TEXT, 0, AT(route_to)},
    {"invert", GB_FIELD_BOOL, 0, AT(invert)},
    PAYLOAD_MAX,
};
#undef GB_STRUCT

#define GB_STRUCT gb_bp_mapping
static const struct gb_field mapping_fields[] = {
    {"source", GB_FIELD_TEXT, GB_FIELD_REQUIRED, AT(source)},
    {"target", GB_FIELD_TEXT, GB_FIELD_REQUIRED, AT(target)},
    {"transform", GB_FIELD_WORD, 0, AT(transform), .words = transforms},
    {"defaultValue", GB_FIELD_RAW, 0, AT(default_value)},
    {"required", GB_FIELD_BOOL, 0, AT(required)},
};
#undef GB_STRUCT
static const struct gb_block mapping = {"mapping", sizeof(struct gb_bp_mapping),
                                        GB_FIELDS(mapping_fields), .camel = true};

#define GB_STRUCT gb_bp_transform
static const struct gb_field transform_fields[] = {
    {"name", GB_FIELD_TEXT, 0, AT(name), .text_def = "transform"},
    {"mappings", GB_FIELD_BLOCKS, 0, AT(mappings),
     .count_offset = offsetof(struct gb_bp_transform, mapping_count), .block = &mapping},
    {"dropUnmapped", GB_FIELD_BOOL, 0, AT(drop_unmapped)},
    {"failOnError", GB_FIELD_BOOL, 0, AT(fail_on_error)},
    PAYLOAD_MAX,
};
#undef GB_STRUCT

#define GB_STRUCT gb_bp_circuitbreaker
static const struct gb_field breaker_fields[] = {
    {"failureThreshold", GB_FIELD_INT, GB_FIELD_ZERO_DEFAULT, AT(failure_threshold),
     .max = INT32_MAX, .def = 5},
    {"successThreshold", GB_FIELD_INT, GB_FIELD_ZERO_DEFAULT, AT(success_threshold),
     .max = INT32_MAX, .def = 2},
    {"resetTimeout", GB_FIELD_DURATION, GB_FIELD_ZERO_DEFAULT, AT(reset_timeout), .max = GB_FOREVER,
     .def = 30 * GB_SEC},
    {"halfOpenMaxProbes", GB_FIELD_INT, GB_FIELD_ZERO_DEFAULT, AT(half_open_max_probes),
     .max = INT32_MAX, .def = 1},
    {"key", GB_FIELD_TEXT, 0, AT(key), .text_def = "global"},
};
#undef GB_STRUCT

#define GB_STRUCT gb_bp_tenant_entry
static const struct gb_field tenant_entry_fields[] = {
    {"active", GB_FIELD_BOOL, 0, AT(active), .def = true},
    {"maxMessageBytes", GB_FIELD_INT, 0, AT(max_message_bytes), .max = INT32_MAX},
    {"maxInFlight", GB_FIELD_INT, 0, AT(max_in_flight), .max = INT32_MAX},
};
#undef GB_STRUCT
static const struct gb_block tenant_entry = {"tenant", sizeof(struct gb_bp_tenant_entry),
                                             GB_FIELDS(tenant_entry_fields), .camel = true};

#define GB_STRUCT gb_bp_tenant
static const struct gb_field tenant_fields[] = {
    {"name", GB_FIELD_TEXT, 0, AT(name), .text_def = "tenant"},
    {"tenantHeader", GB_FIELD_TEXT, 0, AT(tenant_header), .text_def = "x-bridge.tenant-id"},
    {"requireTenant", GB_FIELD_BOOL, 0, AT(require_tenant)},
    {"tenants", GB_FIELD_BLOCK_MAP, 0, AT(tenants),
     .count_offset = offsetof(struct gb_bp_tenant, tenant_count), .block = &tenant_entry},
};
#undef GB_STRUCT

static const struct gb_block blocks[] = {
    [GB_BP_PROCESSOR_NONE] = {0},
    [GB_BP_FILTER] = {"config", sizeof(struct gb_bp_filter), GB_FIELDS(filter_fields),
                      .camel = true},
    [GB_BP_TRANSFORM] = {"config", sizeof(struct gb_bp_transform), GB_FIELDS(transform_fields),
                         .camel = true},
    [GB_BP_CIRCUITBREAKER] = {"config", sizeof(struct gb_bp_circuitbreaker),
                              GB_FIELDS(breaker_fields), .camel = true},
    [GB_BP_TENANT] = {"config", sizeof(struct gb_bp_tenant), GB_FIELDS(tenant_fields),
                      .camel = true},
};

const struct gb_block *gb_schema_processor_config(enum gb_bp_processor_type type)
{
    return blocks[type].name == NULL ? NULL : &blocks[type];
}
