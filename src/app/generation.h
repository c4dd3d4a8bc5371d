#ifndef GB_APP_GENERATION_H
#define GB_APP_GENERATION_H

#include "app/document.h"
#include "app/runtime.h"
#include "app/secrets.h"

/* One document on its way to a runtime: what was read, its credentials, the engine built from them.
 * A document that ran can be built again.
 * Owns:   all of it.
 * Thread: loop thread only.
 * Errors: GB_INVALID_CONFIG after printing the findings, and those of what is built. */
struct gb_generation {
    struct gb_blueprint *blueprint;
    struct gb_secrets *secrets;
    struct gb_op secrets_op;
    struct gb_runtime *runtime; /* NULL: not built */
    char *instance_id, *owner;
};
struct gb_generation_cfg {
    struct gb_loop *loop;
    struct gb_metrics *metrics;
    const struct gb_options *options;
    const struct gb_bootstrap *bootstrap;
    const char *nonce;
    const char *fallback_id; /* instance id where nobody gives one */
    bool again;              /* a document ran before */
};
/* `texts` and `digest` as in gb_document_load_deployed. */
struct gb_err gb_generation_read(const struct gb_generation_cfg *cfg,
                                 const struct gb_source_texts *texts, char digest[GB_SHA256_HEX],
                                 struct gb_generation **out);
/* `runtime` may be there after an error, too: it has to be stopped. */
struct gb_err gb_generation_build(struct gb_generation *g, const struct gb_generation_cfg *cfg,
                                  void (*started)(void *arg),
                                  void (*terminal)(void *arg, struct gb_err cause), void *arg);
void gb_generation_free(struct gb_generation *g); /* its runtime has ended; NULL ok */

#endif
