#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/dynamodb/dynamodb_subscriptions.h"
#include "adapters/sqlite/sqlite_subscriptions.h"
#include "app/document.h"
#include "app/dynamodb.h"
#include "app/process.h"
#include "app/seed_list.h"
#include "base/log.h"
#include "domain/mqtt_topic.h"

/* -seed-managed-subscriptions (spec 03 §8.1, 08 §2): baselines are written through the store that
 * the bridge reads. */

struct seeding {
    struct gb_loop *loop;
    struct gb_metrics *metrics;
    struct gb_app_aws aws;       /* for a store of type dynamodb, */
    struct gb_sqlite_pool *pool; /* else */
    struct gb_subscriptions *store;
    struct gb_seed *seeds;
    size_t count, next;
    struct gb_subscriptions_change change;
    struct gb_op close;
    struct gb_err result;
};

/* Identity of the broker session, equal to what the bridge computes (spec 03 §3.4). */
static struct gb_err find_identity(const struct gb_blueprint *b, struct gb_seed *s)
{
    const struct gb_bp_session *bp = gb_blueprint_session(b, s->session_id);
    if (bp == NULL)
        return gb_err(GB_INVALID_CONFIG, "session_id \"%s\" not found in sessions", s->session_id);
    if (bp->session_mode.value == GB_BP_EPHEMERAL) {
        return gb_err(GB_INVALID_CONFIG, "session %s is ephemeral and has no baseline",
                      s->session_id);
    }
    if (bp->mqtt.client_id_suffix.value == GB_BP_SUFFIX_HOSTNAME) {
        return gb_err(GB_NOT_SUPPORTED,
                      "session %s: seeding with client_id_suffix hostname is not supported yet; "
                      "write the client_id in full",
                      s->session_id);
    }
    struct gb_mqtt_endpoint endpoint;
    struct gb_err err = gb_mqtt_endpoint_parse(gb_bytes_c(bp->mqtt.urls.items[0]), &endpoint);
    if (gb_failed(err)) return err;
    gb_mqtt_storage_identity(&endpoint, gb_bytes_c(bp->mqtt.client_id), s->identity);
    return gb_ok();
}

static void closed(struct gb_op *op, void *arg)
{
    struct seeding *g = arg;
    if (gb_failed(op->result) && !gb_failed(g->result)) g->result = op->result;
    gb_loop_stop(g->loop);
}

static void remembered(struct gb_op *op, void *arg);

static void seed_next(struct seeding *g)
{
    if (g->next == g->count || gb_failed(g->result)) {
        g->store->ops->close(g->store, &g->close, closed, g);
        return;
    }
    struct gb_seed *s = &g->seeds[g->next];
    memset(&g->change, 0, sizeof g->change);
    g->change.identity = s->identity;
    g->change.filters = s->filters;
    g->change.count = s->count;
    g->change.op.deadline_ns =
        gb_reactor_now_ns(gb_loop_reactor(g->loop)) + 30 * UINT64_C(1000000000);
    g->store->ops->remember(g->store, &g->change, remembered, g);
}

static void remembered(struct gb_op *op, void *arg)
{
    struct seeding *g = arg;
    const struct gb_seed *s = &g->seeds[g->next];
    if (gb_failed(op->result)) {
        g->result = gb_err_in(op->result, "session %s", s->session_id);
    } else {
        GB_LOG(GB_LOG_INFO, "managed subscription baseline seeded",
               gb_lf_str("session_id", s->session_id), gb_lf_int("filters", (int64_t)s->count));
        g->next++;
    }
    seed_next(g);
}

static struct gb_err open_dynamodb(struct seeding *g, const struct gb_bp_store *store)
{
    struct gb_err err = gb_app_aws_open(&g->aws, g->loop);
    if (gb_failed(err)) return err;
    const struct gb_dynamodb_subscriptions_cfg cfg = {
        .reactor = gb_loop_reactor(g->loop),
        .client = g->aws.d.client,
        .table = store->options.table_name,
    };
    return gb_dynamodb_subscriptions_new(&cfg, &g->store);
}

static struct gb_err open_sqlite(struct seeding *g, const struct gb_bp_store *store)
{
    const struct gb_sqlite_subscriptions_cfg cfg = {.path = store->options.path, .queue_max = 16};
    const struct gb_sqlite_pool_cfg pool = {.loop = g->loop, .metrics = g->metrics};
    struct gb_err err = gb_sqlite_pool_new(&pool, &g->pool);
    return gb_failed(err) ? err : gb_sqlite_subscriptions_new(g->pool, &cfg, &g->store);
}

static struct gb_err write_seeds(struct seeding *g, const struct gb_blueprint *b)
{
    const struct gb_bp_store *store = &b->stores[GB_BP_SUBSCRIPTIONS];
    if (store->node == NULL)
        return gb_err(GB_INVALID_CONFIG, "stores.managed_subscriptions is not configured");
    struct gb_err err = gb_loop_new(&g->loop);
    if (gb_failed(err)) return err;
    err = gb_metrics_new(&g->metrics);
    if (gb_failed(err)) return err;
    err = store->type.value == GB_BP_DYNAMODB ? open_dynamodb(g, store) : open_sqlite(g, store);
    if (gb_failed(err)) return gb_err_in(err, "stores.managed_subscriptions");
    seed_next(g);
    gb_loop_run(g->loop);
    return g->result;
}

static int report(const struct gb_err *err, int exit_code)
{
    (void)fprintf(stderr, "gobridge: -seed-managed-subscriptions: %s\n", err->message);
    return exit_code;
}

int gb_process_seed(const struct gb_options *o)
{
    struct gb_blueprint *blueprint = NULL;
    struct seeding g = {.count = o->seed_count};
    int exit_code = 0;
    g.seeds = calloc(o->seed_count, sizeof *g.seeds);
    if (g.seeds == NULL) {
        struct gb_err no_memory = gb_err_no_memory("seeds");
        return report(&no_memory, 1);
    }
    struct gb_err err = gb_seeds_read(o, g.seeds);
    if (gb_failed(err)) {
        exit_code = report(&err, 2);
        goto out;
    }
    err = gb_document_load(o, o->config, GB_DOCUMENT_RUN, &blueprint);
    for (size_t i = 0; i < o->seed_count && !gb_failed(err); i++)
        err = find_identity(blueprint, &g.seeds[i]);
    if (!gb_failed(err)) err = write_seeds(&g, blueprint);
    if (gb_failed(err)) exit_code = report(&err, 1);
out:
    gb_app_aws_close(&g.aws);
    gb_sqlite_pool_free(g.pool);
    if (g.loop != NULL) {
        gb_loop_drain_closing(g.loop);
        gb_loop_free(g.loop);
    }
    gb_metrics_free(g.metrics);
    gb_blueprint_free(blueprint);
    for (size_t i = 0; i < o->seed_count; i++) gb_seed_deinit(&g.seeds[i]);
    free(g.seeds);
    return exit_code;
}
