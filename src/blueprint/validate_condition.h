#ifndef GB_BLUEPRINT_VALIDATE_CONDITION_H
#define GB_BLUEPRINT_VALIDATE_CONDITION_H

#include "blueprint/validate.h"

/* Conditions of resolver rules and filter processors (spec 01 §3.6, 02 §8.2).
 * Owns:   nothing.
 * Thread: one at a time.
 * Errors: findings under `rule`; their texts begin with `path`, the place of the condition. */

struct gb_check_condition {
    enum gb_rule rule;
    const char *path; /* resolver.rules[0].match[1] */
    const struct gb_node *node;
    const char *field;
    const struct gb_opt_word *op;
    const struct gb_node *value;
    bool exists_needs_value; /* the filter's, whose `exists` has no default */
};

void gb_validate_condition(struct gb_check *c, const struct gb_check_condition *m);

#endif
