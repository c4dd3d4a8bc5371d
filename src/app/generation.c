#include "app/generation.h"

#include <stdlib.h>

#include "base/log.h"

static struct gb_err name_it(struct gb_generation *g, const struct gb_generation_cfg *cfg)
{
    const char *given = gb_blueprint_instance_id(g->blueprint);
    g->instance_id = gb_strdup(given == NULL ? cfg->fallback_id : given);
    if (g->instance_id != NULL) g->owner = gb_asprintf("%s#%s", g->instance_id, cfg->nonce);
    return g->owner == NULL ? gb_err_no_memory("instance id") : gb_ok();
}

struct gb_err gb_generation_read(const struct gb_generation_cfg *cfg,
                                 const struct gb_source_texts *texts, char digest[GB_SHA256_HEX],
                                 struct gb_generation **out)
{
    struct gb_generation *g = calloc(1, sizeof *g);
    if (g == NULL) return gb_err_no_memory("document");
    struct gb_err err =
        gb_document_load_deployed(cfg->options, cfg->bootstrap, texts, digest, &g->blueprint);
    if (!gb_failed(err)) err = name_it(g, cfg);
    if (!gb_failed(err)) {
        const struct gb_secrets_cfg secrets = {
            .loop = cfg->loop,
            .blueprint = g->blueprint,
            .credentials_dir = cfg->options->credentials_dir,
            .instance_id = g->instance_id,
        };
        err = gb_secrets_new(&secrets, &g->secrets);
    }
    if (gb_failed(err)) {
        gb_generation_free(g);
    } else {
        *out = g;
    }
    return err;
}

struct gb_err gb_generation_build(struct gb_generation *g, const struct gb_generation_cfg *cfg,
                                  void (*started)(void *arg),
                                  void (*terminal)(void *arg, struct gb_err cause), void *arg)
{
    const struct gb_runtime_cfg runtime = {
        .loop = cfg->loop,
        .metrics = cfg->metrics,
        .blueprint = g->blueprint,
        .secrets = g->secrets,
        .again = cfg->again,
        .instance_id = g->instance_id,
        .owner = g->owner,
        .started = started,
        .terminal = terminal,
        .arg = arg,
    };
    gb_log_set_instance(g->instance_id);
    struct gb_err err = gb_runtime_new(&runtime, &g->runtime);
    if (!gb_failed(err)) gb_runtime_start(g->runtime);
    return err;
}

void gb_generation_free(struct gb_generation *g)
{
    if (g == NULL) return;
    gb_runtime_free(g->runtime);
    gb_secrets_free(g->secrets);
    gb_blueprint_free(g->blueprint);
    free(g->instance_id);
    free(g->owner);
    free(g);
}
