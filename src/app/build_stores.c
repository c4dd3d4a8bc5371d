#include "adapters/dynamodb/dynamodb_dlq.h"
#include "adapters/dynamodb/dynamodb_outbox.h"
#include "adapters/dynamodb/dynamodb_subscriptions.h"
#include "adapters/memory/memory_dlq.h"
#include "adapters/memory/memory_outbox.h"
#include "adapters/sqlite/sqlite_dlq.h"
#include "adapters/sqlite/sqlite_outbox.h"
#include "adapters/sqlite/sqlite_subscriptions.h"
#include "app/runtime_parts.h"

/* Requests that may wait for a store: every route slot, every drained record and some for
 * housekeeping. */
enum { STORE_QUEUE_MAX = 65536 };
/* A volatile outbox suppresses duplicates of this many ended records: some 1 MiB. */
enum { MEMORY_ENDED_MAX = 2000 };

/* What this process's drainer may do in a partition at this moment. */
static bool holds(void *arg, struct gb_bytes partition, struct gb_token *out)
{
    const struct gb_runtime *r = arg;
    const struct gb_built_drainer *b =
        r->drainer_count == 0 ? NULL : gb_map_get(&r->by_partition, partition);
    return b != NULL && b->holder.current(b->holder.ctx, out);
}

static struct gb_err build_outbox(struct gb_runtime *r, const struct gb_bp_store *s)
{
    if (s->type.value == GB_BP_MEMORY) {
        return gb_memory_outbox_new(
            r->reactor, &(struct gb_memory_outbox_cfg){.ended_max = MEMORY_ENDED_MAX}, &r->outbox);
    }
    if (s->type.value == GB_BP_DYNAMODB) {
        const struct gb_dynamodb_outbox_cfg shared = {
            .reactor = r->reactor,
            .client = r->dynamodb.client,
            .table = s->options.table_name,
            .stale_claim_ns = gb_blueprint_stale_claim_ns(r->cfg.blueprint),
            .compaction_grace_ns = s->options.compaction_grace.ns,
            .metrics = r->cfg.metrics,
            .holds = holds,
            .holds_arg = r,
        };
        return gb_dynamodb_outbox_new(&shared, &r->outbox);
    }
    const struct gb_sqlite_outbox_cfg cfg = {
        .path = s->options.path,
        .stale_claim_ns = gb_blueprint_stale_claim_ns(r->cfg.blueprint),
        .retention_ns = s->options.retention.ns,
        .queue_max = STORE_QUEUE_MAX,
    };
    return gb_sqlite_outbox_new(r->sqlite, &cfg, &r->outbox);
}

static struct gb_err build_dlq(struct gb_runtime *r, const struct gb_bp_store *s)
{
    if (s->type.value == GB_BP_MEMORY)
        return gb_memory_dlq_new(r->reactor, &(struct gb_memory_dlq_cfg){0}, &r->dlq);
    if (s->type.value == GB_BP_DYNAMODB) {
        const struct gb_dynamodb_dlq_cfg shared = {
            .reactor = r->reactor,
            .client = r->dynamodb.client,
            .table = s->options.table_name,
            .retention_ns = s->options.retention.ns,
            .max_scan_pages = s->options.max_scan_pages.value,
        };
        return gb_dynamodb_dlq_new(&shared, &r->dlq);
    }
    const struct gb_sqlite_dlq_cfg cfg = {
        .path = s->options.path,
        .retention_ns = s->options.retention.ns,
        .queue_max = STORE_QUEUE_MAX,
    };
    return gb_sqlite_dlq_new(r->sqlite, &cfg, &r->dlq);
}

static struct gb_err build_subscriptions(struct gb_runtime *r, const struct gb_bp_store *s)
{
    if (s->type.value == GB_BP_DYNAMODB) {
        const struct gb_dynamodb_subscriptions_cfg shared = {
            .reactor = r->reactor,
            .client = r->dynamodb.client,
            .table = s->options.table_name,
        };
        return gb_dynamodb_subscriptions_new(&shared, &r->subscriptions);
    }
    const struct gb_sqlite_subscriptions_cfg cfg = {
        .path = s->options.path,
        .queue_max = STORE_QUEUE_MAX,
    };
    return gb_sqlite_subscriptions_new(r->sqlite, &cfg, &r->subscriptions);
}

struct gb_err gb_build_stores(struct gb_runtime *r)
{
    static const struct {
        enum gb_bp_role role;
        const char *name;
        struct gb_err (*build)(struct gb_runtime *, const struct gb_bp_store *);
    } rows[] = {
        {GB_BP_LEASE, "stores.lease", gb_build_lease_store},
        {GB_BP_OUTBOX, "stores.outbox", build_outbox},
        {GB_BP_DLQ, "stores.dlq", build_dlq},
        {GB_BP_SUBSCRIPTIONS, "stores.managed_subscriptions", build_subscriptions},
    };
    const struct gb_sqlite_pool_cfg pool = {.loop = r->cfg.loop, .metrics = r->cfg.metrics};
    struct gb_err opened = gb_sqlite_pool_new(&pool, &r->sqlite);
    if (gb_failed(opened)) {
        return opened;
    }
    r->want_count = gb_app_wants(r->cfg.blueprint, r->wants);
    if (r->want_count > 0) {
        opened = gb_app_dynamodb_new(&r->dynamodb, r->cfg.loop, r->http, r->cfg.instance_id);
        if (gb_failed(opened)) return gb_err_in(opened, "stores of type dynamodb");
    }
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct gb_bp_store *s = &r->cfg.blueprint->stores[rows[i].role];
        if (s->node == NULL) continue;
        struct gb_err err = rows[i].build(r, s);
        if (gb_failed(err)) return gb_err_in(err, "%s", rows[i].name);
    }
    return gb_ok();
}
