#include "blueprint/rules.h"

#include "base/assert.h"

static const struct {
    const char *name, *asks;
} rules[GB_RULE_COUNT] = {[GB_RULE_NONE] = {"", ""},
#define ITEM(rule, text) [GB_RULE_##rule] = {#rule, text},
                          GB_RULES(ITEM)
#undef ITEM
};

const char *gb_rule_name(enum gb_rule rule)
{
    GB_ASSERT(rule < GB_RULE_COUNT);
    return rules[rule].name;
}

const char *gb_rule_asks(enum gb_rule rule)
{
    GB_ASSERT(rule < GB_RULE_COUNT);
    return rules[rule].asks;
}
