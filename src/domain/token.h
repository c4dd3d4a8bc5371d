#ifndef GB_DOMAIN_TOKEN_H
#define GB_DOMAIN_TOKEN_H

#include "base/bytes.h"

/* Fencing token (spec 05 §1.2): valid only if the owner is not empty and the version positive.
 * Owns:   nothing; `owner` is borrowed for the call or operation.
 * Thread: any.
 * Errors: none. */
struct gb_token {
    struct gb_bytes owner; /* instance_id#<boot-nonce> */
    uint64_t version;
};
static inline bool gb_token_valid(const struct gb_token *t)
{
    return t->owner.size > 0 && t->version > 0;
}

#endif
