#include "contract/outbox_dynamodb.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const int64_t start_ms = INT64_C(1700000000000);

const struct gb_dynamodb_table outbox_dynamodb_shape = {
    .hash = {"PK", GB_DYNAMODB_S},
    .range = {"SK", GB_DYNAMODB_S},
    .indexes =
        {{"ExpiryIndex",
          {"has_expiry", GB_DYNAMODB_S},
          {"expires_at", GB_DYNAMODB_N},
          GB_DYNAMODB_KEYS_ONLY},
         {"RecordIDIndex", {"record_id", GB_DYNAMODB_S}, {0}, GB_DYNAMODB_KEYS_ONLY},
         {"ClaimIndex", {"PK", GB_DYNAMODB_S}, {"claim_sort", GB_DYNAMODB_S}, GB_DYNAMODB_ALL}},
    .index_count = 3,
};

enum gb_code outbox_dynamodb_run(struct outbox_dynamodb *d, struct gb_dynamodb_call *call)
{
    return dynamodb_driver_run(&d->client, call);
}

struct gb_bytes outbox_dynamodb_get(struct outbox_dynamodb *d, struct gb_dynamodb_call *call,
                                    const char *partition, const char *sort_key)
{
    gb_dynamodb_begin(call, GB_DYNAMODB_GET_ITEM, d->table);
    gb_dynamodb_object(call, GB_DYNAMODB_KEY);
    gb_dynamodb_w_s_c(&call->w, "PK", partition);
    gb_dynamodb_w_s_c(&call->w, "SK", sort_key);
    gb_dynamodb_object_end(call);
    gb_dynamodb_flag(call, GB_DYNAMODB_CONSISTENT_READ);
    assert_int_equal(outbox_dynamodb_run(d, call), GB_OK);
    return call->answer.item;
}

/* --- what is held --- */

static struct outbox_held *held_of(struct outbox_dynamodb *d, struct gb_bytes partition)
{
    for (size_t i = 0; i < OUTBOX_HELD_MAX; i++) {
        struct outbox_held *h = &d->held[i];
        if (h->partition[0] == '\0' || gb_bytes_equal_c(partition, h->partition)) return h;
    }
    fail_msg("more than %d partitions are held", OUTBOX_HELD_MAX);
    return NULL;
}

static void hold(struct outbox_dynamodb *d, struct gb_bytes partition, const struct gb_token *token)
{
    struct outbox_held *h = held_of(d, partition);
    (void)snprintf(h->partition, sizeof h->partition, "%.*s", (int)partition.size,
                   (const char *)partition.data);
    (void)snprintf(h->owner, sizeof h->owner, "%.*s", (int)token->owner.size,
                   (const char *)token->owner.data);
    h->version = token->version;
}

void outbox_dynamodb_hold(struct outbox_dynamodb *d, const char *partition, const char *owner,
                          uint64_t version)
{
    hold(d, gb_bytes_c(partition), &(struct gb_token){gb_bytes_c(owner), version});
}

static bool holds(void *arg, struct gb_bytes partition, struct gb_token *out)
{
    const struct outbox_held *h = held_of(arg, partition);
    *out = (struct gb_token){gb_bytes_c(h->owner), h->version};
    return h->version > 0;
}

static struct outbox_dynamodb *of(struct gb_outbox *o)
{
    return GB_CONTAINER_OF(o, struct outbox_dynamodb, port);
}

static void persist(struct gb_outbox *o, struct gb_outbox_persist *q, gb_done_fn *done, void *arg)
{
    of(o)->inner->ops->persist(of(o)->inner, q, done, arg);
}

static void claim(struct gb_outbox *o, struct gb_outbox_claim *q, gb_done_fn *done, void *arg)
{
    struct outbox_dynamodb *d = of(o);
    if (gb_token_valid(&q->token) && q->token.version >= held_of(d, q->partition)->version)
        hold(d, q->partition, &q->token);
    d->inner->ops->claim(d->inner, q, done, arg);
}

static void settle(struct gb_outbox *o, struct gb_outbox_settle *q, gb_done_fn *done, void *arg)
{
    of(o)->inner->ops->settle(of(o)->inner, q, done, arg);
}

static void expire(struct gb_outbox *o, struct gb_outbox_expire *q, gb_done_fn *done, void *arg)
{
    of(o)->inner->ops->expire(of(o)->inner, q, done, arg);
}

static void depth(struct gb_outbox *o, struct gb_outbox_depth *q, gb_done_fn *done, void *arg)
{
    of(o)->inner->ops->depth(of(o)->inner, q, done, arg);
}

static void stats(struct gb_outbox *o, struct gb_outbox_stats *q, gb_done_fn *done, void *arg)
{
    of(o)->inner->ops->stats(of(o)->inner, q, done, arg);
}

static void close_inner(struct gb_outbox *o, struct gb_op *op, gb_done_fn *done, void *arg)
{
    of(o)->inner->ops->close(of(o)->inner, op, done, arg);
}

static const struct gb_outbox_ops watching = {persist, claim, settle,     expire,
                                              depth,   stats, close_inner};

/* --- the store --- */

void outbox_dynamodb_reopen(struct outbox_backend *b, size_t queue_max)
{
    struct outbox_dynamodb *d = b->ctx;
    if (b->store != NULL) STORE_CLOSE(&b->driver, b->store);
    const struct gb_dynamodb_outbox_cfg cfg = {
        .reactor = d->client.reactor,
        .client = d->client.client,
        .table = d->table,
        .stale_claim_ns = INT64_C(1000000) * OUTBOX_STALE_MS,
        .queue_max = queue_max,
        .metrics = d->metrics,
        .wall_ms = store_driver_wall_ms,
        .clock_arg = &b->driver,
        .holds = d->direct ? holds : NULL,
        .holds_arg = d,
        .direct_max = d->direct_max,
        .keyed_after_ns = d->keyed_after_ns,
    };
    assert_int_equal(gb_dynamodb_outbox_new(&cfg, &d->inner).code, GB_OK);
    d->port.ops = &watching;
    b->store = &d->port;
}

static void create_table(struct outbox_dynamodb *d)
{
    struct gb_dynamodb_call call = {0};
    gb_dynamodb_begin(&call, GB_DYNAMODB_CREATE_TABLE, d->table);
    gb_dynamodb_w_table(&call.w, &outbox_dynamodb_shape);
    assert_int_equal(outbox_dynamodb_run(d, &call), GB_OK);
    gb_dynamodb_call_deinit(&call);
}

void outbox_dynamodb_set_up(struct outbox_backend *b, size_t queue_max)
{
    struct outbox_dynamodb *d = b->ctx;
    char endpoint[DYNAMODB_ENDPOINT_SIZE];
    dynamodb_rig_table(d->rig, "outbox", d->table);
    if (d->through_proxy) {
        dynamodb_rig_client(d->rig, "A", endpoint);
    } else {
        (void)snprintf(endpoint, sizeof endpoint, "%s", dynamodb_rig_endpoint(d->rig));
    }
    dynamodb_driver_open(
        &d->client, &(struct dynamodb_driver_cfg){.endpoint = endpoint,
                                                  .attempt_timeout_ns = d->attempt_timeout_ns});
    b->driver = (struct store_driver){
        .loop = d->client.loop, .reactor = d->client.reactor, .wall_ms = start_ms};
    assert_int_equal(gb_metrics_new(&d->metrics).code, GB_OK);
    create_table(d);
    memset(d->held, 0, sizeof d->held);
    b->store = NULL;
    outbox_dynamodb_reopen(b, queue_max);
}

void outbox_dynamodb_tear_down(struct outbox_backend *b)
{
    struct outbox_dynamodb *d = b->ctx;
    STORE_CLOSE(&b->driver, b->store);
    assert_int_equal(b->driver.waiting, 0);
    dynamodb_driver_close(&d->client);
    gb_metrics_free(d->metrics);
}

void outbox_dynamodb_share(struct outbox_backend *b, const struct outbox_backend *first)
{
    struct outbox_dynamodb *d = b->ctx;
    *d = *(const struct outbox_dynamodb *)first->ctx;
    memset(d->held, 0, sizeof d->held);
    b->driver = first->driver;
    b->store = NULL;
    outbox_dynamodb_reopen(b, 0);
}

void outbox_dynamodb_join(struct outbox_backend *b, const struct outbox_backend *first,
                          const char *client)
{
    struct outbox_dynamodb *d = b->ctx;
    char endpoint[DYNAMODB_ENDPOINT_SIZE];
    *d = *(const struct outbox_dynamodb *)first->ctx;
    memset(d->held, 0, sizeof d->held);
    dynamodb_rig_client(d->rig, client, endpoint);
    dynamodb_driver_open(
        &d->client, &(struct dynamodb_driver_cfg){.endpoint = endpoint,
                                                  .attempt_timeout_ns = d->attempt_timeout_ns});
    b->driver = (struct store_driver){
        .loop = d->client.loop, .reactor = d->client.reactor, .wall_ms = first->driver.wall_ms};
    b->store = NULL;
    outbox_dynamodb_reopen(b, 0);
}

void outbox_dynamodb_crash(struct outbox_backend *b, const char *client)
{
    struct outbox_dynamodb *d = b->ctx;
    char rule[128];
    (void)snprintf(rule, sizeof rule, "\"effect\": \"drop\", \"client\": \"%s\", \"times\": 0",
                   client);
    dynamodb_rig_clear(d->rig);
    dynamodb_rig_rule(d->rig, rule);
    STORE_CLOSE(&b->driver, b->store);
    dynamodb_driver_close(&d->client);
    dynamodb_rig_clear(d->rig);
}
