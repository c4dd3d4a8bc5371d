#ifndef GB_APP_SECRETS_H
#define GB_APP_SECRETS_H

#include "base/op.h"
#include "blueprint/blueprint.h"
#include "domain/credential_set.h"
#include "io/loop.h"

/* The credentials that a document refers to by credentials_uri (spec 04 D), fetched once before its
 * runtime is built; what is used then are copies.
 * Owns:   what it fetched, overwritten by gb_secrets_free; borrows loop and blueprint until then.
 * Thread: loop thread only; files are read on it.
 * Errors: of gb_secrets_resolve: GB_NOT_FOUND, GB_NOT_AUTHORIZED, GB_INVALID_CONFIG,
 *         GB_INVALID_PAYLOAD, GB_UNAVAILABLE, GB_TIMEOUT, GB_CANCELLED; the text names the entry,
 *         and of its URI the scheme alone. */
struct gb_secrets;
struct gb_secrets_cfg {
    struct gb_loop *loop;
    const struct gb_blueprint *blueprint;
    const char *credentials_dir; /* root of file:// URIs */
    const char *instance_id;
};
struct gb_err gb_secrets_new(const struct gb_secrets_cfg *cfg, struct gb_secrets **out);
/* Fetches all; can be cancelled. Nothing to fetch completes as well. */
void gb_secrets_resolve(struct gb_secrets *s, struct gb_op *op, gb_done_fn *done, void *arg);
void gb_secrets_free(struct gb_secrets *s); /* not while resolving; NULL ok */
/* What the URI led to; NULL for NULL. */
const struct gb_credential_set *gb_secrets_find(const struct gb_secrets *s, const char *uri);

#endif
