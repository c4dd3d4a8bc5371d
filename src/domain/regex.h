#ifndef GB_DOMAIN_REGEX_H
#define GB_DOMAIN_REGEX_H

#include "base/bytes.h"
#include "base/err.h"

/* Regular expressions of resolver rules and filters (spec 02 §8.2): PCRE2 syntax over UTF-8,
 * unanchored. A match that would take more than a fixed number of steps or memory counts as no
 * match, so that time stays bounded whatever pattern and value are.
 * Owns:   gb_regex_free releases it, also NULL. The pattern is not kept.
 * Thread: any; a compiled expression is constant.
 * Errors: GB_INVALID_CONFIG: the pattern is too long or malformed (the message says where and what,
 *         not the pattern itself); GB_UNAVAILABLE: out of memory. */

enum {
    GB_REGEX_CHARACTERS_MAX = 4096, /* of a pattern */
    GB_REGEX_VALUE_MAX = 65536,     /* bytes; longer values never match */
    GB_REGEX_STEPS_MAX = 100000,    /* PCRE2's match limit */
    GB_REGEX_HEAP_KIB_MAX = 1024,
};

struct gb_regex;

struct gb_err gb_regex_new(struct gb_bytes pattern, struct gb_regex **out);
void gb_regex_free(struct gb_regex *regex);
/* False also for values that are too long or no UTF-8, and when memory runs out. */
bool gb_regex_matches(const struct gb_regex *regex, struct gb_bytes value);

#endif
