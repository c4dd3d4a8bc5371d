#ifndef GB_PORTS_AUTHORITY_H
#define GB_PORTS_AUTHORITY_H

#include "domain/token.h"

/* Who may drain a partition: a lease (cluster) or the local token of a standalone bridge (spec 02
 * §2.4).
 * Owns:   the token's owner text is valid while the authority lives.
 * Thread: loop thread only.
 * Errors: false = no authority at present (spec 02 §7.3 item 2). */
struct gb_authority {
    bool (*current)(void *ctx, struct gb_token *out);
    void *ctx;
};

#endif
