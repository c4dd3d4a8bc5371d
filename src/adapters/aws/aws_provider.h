#ifndef GB_ADAPTERS_AWS_AWS_PROVIDER_H
#define GB_ADAPTERS_AWS_AWS_PROVIDER_H

#include "adapters/aws/aws_profile.h"
#include "adapters/aws/aws_url.h"

/* One run of the credential chain. A provider is a step function without waiting of its own: it
 * looks at `stage` and at the answer of the request it asked for, and says what is next;
 * aws_credentials.c runs it.
 * Owns:   the fetch owns its texts; all of them are wiped by gb_aws_fetch_deinit.
 * Thread: loop thread only.
 * Errors: in `err` with GB_AWS_DONE; no text holds a secret. */

struct gb_aws_set {
    char *access_key_id, *secret_access_key, *session_token; /* token may be NULL */
    int64_t expires_ms;                                      /* epoch; 0 = never */
};
void gb_aws_set_wipe(struct gb_aws_set *s); /* overwrites, frees, zeroes; accepts zeroed memory */
/* Replaces `s` by copies; an empty token becomes NULL. GB_UNAVAILABLE (out of memory). */
struct gb_err gb_aws_set_copy(struct gb_aws_set *s, struct gb_bytes access_key_id,
                              struct gb_bytes secret_access_key, struct gb_bytes session_token,
                              int64_t expires_ms);
struct gb_sigv4_credentials gb_aws_set_view(const struct gb_aws_set *s);

enum gb_aws_step {
    GB_AWS_SKIP,    /* this provider does not apply */
    GB_AWS_DONE,    /* `set` or `err` */
    GB_AWS_REQUEST, /* send `http`, then step again with stage + 1 */
};

enum { GB_AWS_ROLE_HOPS_MAX = 5 };
struct gb_aws_role {
    struct gb_bytes arn, external_id, session_name;
};

struct gb_aws_fetch;
/* gb-exception: a function type, whose result is an enum. */
typedef enum gb_aws_step gb_aws_step_fn(struct gb_aws_fetch *f);

struct gb_aws_fetch {
    const struct gb_aws_credentials_cfg *cfg;
    uint32_t stage; /* 0 = first step of this provider */
    struct gb_http_request http;
    bool once;                                     /* no further tries of this request */
    struct gb_str url, token, date, authorization; /* what http borrows */
    struct gb_aws_set set;
    struct gb_err err;
    /* provider_profile */
    struct gb_aws_files files;
    gb_aws_step_fn *base;                          /* where the first set comes from */
    struct gb_aws_role hops[GB_AWS_ROLE_HOPS_MAX]; /* assumed from the last to the first */
    uint32_t hop_count;
    bool has_base_set;
    struct gb_aws_role web_role; /* of a profile; else the environment's */
    struct gb_bytes web_token_file;
};
void gb_aws_fetch_deinit(struct gb_aws_fetch *f); /* wipes; accepts zeroed memory */
/* Prepares `http` anew; the texts it borrows are the provider's. */
void gb_aws_fetch_request(struct gb_aws_fetch *f, const char *method, const char *url);
void gb_aws_fetch_header(struct gb_aws_fetch *f, const char *name, const char *value);
enum gb_aws_step gb_aws_fetch_fail(struct gb_aws_fetch *f, struct gb_err err);
const char *gb_aws_fetch_env(const struct gb_aws_fetch *f, const char *name); /* NULL: unset */
/* The answer as an error, or GB_OK for a 2xx one; `what` names the source. */
struct gb_err gb_aws_fetch_answer(const struct gb_aws_fetch *f, const char *what);
/* Takes `set` from a container or metadata document. */
struct gb_err gb_aws_fetch_document(struct gb_aws_fetch *f, const char *what);

gb_aws_step_fn gb_aws_provider_static;
gb_aws_step_fn gb_aws_provider_env;
gb_aws_step_fn gb_aws_provider_web_identity;
gb_aws_step_fn gb_aws_provider_profile;
gb_aws_step_fn gb_aws_provider_container;
gb_aws_step_fn gb_aws_provider_imds;

#endif
