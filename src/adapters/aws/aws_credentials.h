#ifndef GB_ADAPTERS_AWS_AWS_CREDENTIALS_H
#define GB_ADAPTERS_AWS_AWS_CREDENTIALS_H

#include "adapters/aws/sigv4.h"
#include "base/op.h"
#include "io/http.h"

/* The credential chain with refresh (spec 04 A4, A5): static keys, profile, environment, web
 * identity, shared files, container, instance metadata v2 — first that applies wins. One refresh at
 * a time; it starts 5 min + 0-60 s before expiry; on failure the old set serves until it really
 * expires.
 * Owns:   its current set; secrets are wiped when replaced. Shared by clients of one source
 *         (reference counted).
 * Thread: loop thread only.
 * Errors: GB_NOT_AUTHORIZED (no provider; lists those tried), GB_TEMPORARY_AUTH_FAILURE (expired,
 *         refresh fails), GB_INVALID_CONFIG (credential_process, SSO, forbidden container URI). No
 *         text holds a secret. */
struct gb_aws_credentials;

/* What the chain reads from outside, so that tests need no process environment. */
struct gb_aws_env {
    const char *(*get)(void *ctx, const char *name);                             /* NULL = unset */
    struct gb_err (*read_file)(void *ctx, const char *path, struct gb_str *out); /* at most 1 MiB */
    void *ctx;
};
struct gb_aws_env gb_aws_env_process(void); /* io/file.h */

struct gb_aws_credentials_cfg {
    struct gb_reactor *reactor;
    struct gb_http *http;
    struct gb_aws_env env;
    /* option `profile`, outranks the environment keys; NULL = none */
    const char *profile;
    const char *access_key_id; /* from credentials_uri: nothing else is consulted */
    const char *secret_access_key;
    const char *instance_id; /* default role session name gobridge-<instance_id> */
    const char *region;      /* for STS; NULL = chain of spec 04 A3 */
};
struct gb_err gb_aws_credentials_new(const struct gb_aws_credentials_cfg *cfg,
                                     struct gb_aws_credentials **out);
struct gb_aws_credentials *gb_aws_credentials_ref(struct gb_aws_credentials *c);
void gb_aws_credentials_unref(struct gb_aws_credentials *c); /* cancels a refresh; NULL ok */

/* The current set without waiting, or false: then call gb_aws_credentials_get. Valid until the next
 * turn. */
bool gb_aws_credentials_current(struct gb_aws_credentials *c, struct gb_sigv4_credentials *out);
/* Completes when a usable set is there (then `current` is true in `done`), or with the error. */
void gb_aws_credentials_get(struct gb_aws_credentials *c, struct gb_op *op, gb_done_fn *done,
                            void *arg);
/* Changes with each new set, so that a late ExpiredToken answer does not throw the next set
 * away. */
uint64_t gb_aws_credentials_generation(const struct gb_aws_credentials *c);
/* ExpiredToken*: the set is not to be used again; the next get refreshes. */
void gb_aws_credentials_invalidate(struct gb_aws_credentials *c);

/* Region (spec 04 A3): option, AWS_REGION, AWS_DEFAULT_REGION, profile; GB_INVALID_CONFIG when
 * none. */
struct gb_err gb_aws_region(const struct gb_aws_env *env, const char *option, const char *profile,
                            struct gb_str *out);
/* Endpoint (spec 04 A3): option, AWS_ENDPOINT_URL_<SERVICE>, AWS_ENDPOINT_URL,
 * https://<service>.<region>... */
struct gb_err gb_aws_endpoint(const struct gb_aws_env *env, const char *option, const char *service,
                              const char *region, struct gb_str *out);

#endif
