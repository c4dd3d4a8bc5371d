#ifndef GB_BLUEPRINT_BLUEPRINT_PROCESSORS_H
#define GB_BLUEPRINT_BLUEPRINT_PROCESSORS_H

#include "blueprint/blueprint_model.h"

/* `config` of the processors by type (spec 02 §9), behind gb_bp_processor.config.
 * Owns:   nothing; strings and arrays live as long as the blueprint.
 * Thread: any; constant once loaded.
 * Errors: none; the decoder has checked types, bounds and words, validation the rest. */

enum gb_bp_filter_action { GB_BP_PASS = 0, GB_BP_DROP, GB_BP_ROUTE };
enum gb_bp_transform_type {
    GB_BP_TO_NOTHING = 0, /* as it is */
    GB_BP_TO_STRING,
    GB_BP_TO_INT,
    GB_BP_TO_FLOAT,
    GB_BP_TO_BOOL,
    GB_BP_BASE64_ENCODE,
    GB_BP_BASE64_DECODE
};

struct gb_bp_filter {
    const struct gb_node *node;
    const char *name, *route_to;
    struct gb_bp_condition *conditions;
    size_t condition_count;
    struct gb_opt_word action; /* enum gb_bp_filter_action */
    struct gb_opt_bool invert;
    struct gb_opt_int max_payload_bytes;
};
struct gb_bp_mapping {
    const struct gb_node *node;
    const char *source, *target;
    struct gb_opt_word transform;        /* enum gb_bp_transform_type */
    const struct gb_node *default_value; /* as written; NULL when absent */
    struct gb_opt_bool required;
};
struct gb_bp_transform {
    const struct gb_node *node;
    const char *name;
    struct gb_bp_mapping *mappings;
    size_t mapping_count;
    struct gb_opt_bool drop_unmapped, fail_on_error;
    struct gb_opt_int max_payload_bytes;
};
struct gb_bp_circuitbreaker {
    const struct gb_node *node;
    const char *key;
    struct gb_opt_int failure_threshold, success_threshold, half_open_max_probes;
    struct gb_opt_ns reset_timeout;
};
struct gb_bp_tenant_entry {
    const struct gb_node *node;
    const char *name;
    struct gb_opt_bool active;
    struct gb_opt_int max_message_bytes, max_in_flight;
};
struct gb_bp_tenant {
    const struct gb_node *node;
    const char *name, *tenant_header;
    struct gb_opt_bool require_tenant;
    struct gb_bp_tenant_entry *tenants;
    size_t tenant_count;
};

#endif
