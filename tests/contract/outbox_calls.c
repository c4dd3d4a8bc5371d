#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "contract/outbox_contract.h"

/* Every call of the port as a function that waits. */

static struct made {
    struct gb_envelope *envelopes[RECORDS_MADE_MAX];
    char ids[RECORDS_MADE_MAX][40];
    size_t count;
    unsigned long next_id; /* never reused, so that a durable store sees no old id again */
} made;

struct gb_outbox_record outbox_record(const struct outbox_spec *spec)
{
    assert_true(made.count < RECORDS_MADE_MAX);
    struct gb_envelope *e = NULL;
    assert_int_equal(gb_envelope_new(64, &e).code, GB_OK);
    assert_int_equal(gb_envelope_set_id(e, gb_bytes_c(spec->envelope_id)).code, GB_OK);
    const char *payload = spec->payload == NULL ? "payload" : spec->payload;
    assert_int_equal(gb_envelope_set_payload(e, gb_bytes_c(payload)).code, GB_OK);
    char *id = made.ids[made.count];
    if (spec->id != NULL) {
        (void)snprintf(id, sizeof made.ids[0], "%s", spec->id);
    } else {
        (void)snprintf(id, sizeof made.ids[0], "%032lx", ++made.next_id);
    }
    made.envelopes[made.count++] = e;
    return (struct gb_outbox_record){
        .id = gb_bytes_c(id),
        .route_id = gb_bytes_c("route"),
        .binding_id = gb_bytes_c(spec->binding_id),
        .session_id = gb_bytes_c(spec->session_id),
        .address = gb_bytes_c("topic/a"),
        .envelope = e,
        .ordering_key = gb_bytes_c(spec->key),
        .created_at_ms = spec->created_at_ms,
        .expires_at_ms = spec->expires_at_ms,
    };
}

void outbox_records_free(void)
{
    for (size_t i = 0; i < made.count; i++) gb_envelope_unref(made.envelopes[i]);
    made.count = 0;
}

const char *outbox_envelope_id(const struct gb_outbox_record *r)
{
    static char text[256];
    (void)snprintf(text, sizeof text, "%.*s", (int)r->envelope->id.size,
                   (const char *)r->envelope->id.data);
    return text;
}

enum gb_code outbox_persist(struct outbox_backend *b, const struct gb_outbox_record *records,
                            size_t count, size_t *stored)
{
    struct gb_outbox_persist q = {.records = records, .count = count};
    store_driver_expect(&b->driver);
    b->store->ops->persist(b->store, &q, store_driver_done, &b->driver);
    store_driver_run(&b->driver);
    if (stored != NULL) *stored = q.stored;
    return q.op.result.code;
}

enum gb_code outbox_store(struct outbox_backend *b, const struct outbox_spec *spec)
{
    struct gb_outbox_record record = outbox_record(spec);
    return outbox_persist(b, &record, 1, NULL);
}

static struct gb_outbox_batch *claim_until(struct outbox_backend *b, struct gb_outbox_claim *q,
                                           enum gb_code *code)
{
    store_driver_expect(&b->driver);
    b->store->ops->claim(b->store, q, store_driver_done, &b->driver);
    store_driver_run(&b->driver);
    if (code != NULL) {
        *code = q->op.result.code;
    } else {
        assert_int_equal(q->op.result.code, GB_OK);
    }
    assert_true(q->batch == NULL || (q->op.result.code == GB_OK && q->batch->count > 0));
    return q->batch;
}

struct gb_outbox_batch *outbox_claim(struct outbox_backend *b, const char *partition,
                                     const char *owner, uint64_t version, uint32_t limit,
                                     enum gb_code *code)
{
    struct gb_outbox_claim q = {
        .partition = gb_bytes_c(partition), .token = {gb_bytes_c(owner), version}, .limit = limit};
    return claim_until(b, &q, code);
}

struct gb_outbox_batch *outbox_claim_within(struct outbox_backend *b, const char *partition,
                                            const struct gb_token *token, uint32_t limit,
                                            uint64_t timeout_ns, enum gb_code *code)
{
    struct gb_outbox_claim q = {
        .partition = gb_bytes_c(partition), .token = *token, .limit = limit};
    q.op.deadline_ns = gb_reactor_now_ns(b->driver.reactor) + timeout_ns;
    return claim_until(b, &q, code);
}

void outbox_batch_is(const struct gb_outbox_batch *batch, const char *want)
{
    char got[2048] = "";
    size_t size = 0;
    for (size_t i = 0; batch != NULL && i < batch->count; i++) {
        int added = snprintf(got + size, sizeof got - size, "%s%s", i == 0 ? "" : " ",
                             outbox_envelope_id(&batch->records[i]));
        size += (size_t)added;
        assert_true(size < sizeof got);
    }
    assert_string_equal(got, want);
}

void outbox_claim_is(struct outbox_backend *b, const char *partition, const char *owner,
                     uint64_t version, uint32_t limit, const char *want)
{
    struct gb_outbox_batch *batch = outbox_claim(b, partition, owner, version, limit, NULL);
    outbox_batch_is(batch, want);
    gb_outbox_batch_free(batch);
}

enum gb_code outbox_settle(struct outbox_backend *b, enum gb_outbox_settle_kind kind,
                           const char *partition, struct gb_bytes id, const char *owner,
                           uint64_t version)
{
    struct gb_outbox_settle q = {.kind = kind,
                                 .partition = gb_bytes_c(partition),
                                 .id = id,
                                 .token = {gb_bytes_c(owner), version}};
    store_driver_expect(&b->driver);
    b->store->ops->settle(b->store, &q, store_driver_done, &b->driver);
    store_driver_run(&b->driver);
    return q.op.result.code;
}

enum gb_code outbox_expire(struct outbox_backend *b, const char *partition, const char *owner,
                           uint64_t version, int64_t cutoff_ms, uint64_t *expired)
{
    struct gb_outbox_expire q = {.partition = gb_bytes_c(partition),
                                 .token = {gb_bytes_c(owner), version},
                                 .cutoff_ms = cutoff_ms};
    store_driver_expect(&b->driver);
    b->store->ops->expire(b->store, &q, store_driver_done, &b->driver);
    store_driver_run(&b->driver);
    *expired = q.expired;
    return q.op.result.code;
}

struct gb_outbox_stats outbox_stats(struct outbox_backend *b, const char *partition)
{
    struct gb_outbox_stats q = {.partition = gb_bytes_c(partition)};
    store_driver_expect(&b->driver);
    b->store->ops->stats(b->store, &q, store_driver_done, &b->driver);
    store_driver_run(&b->driver);
    assert_int_equal(q.op.result.code, GB_OK);
    return q;
}

uint64_t outbox_depth(struct outbox_backend *b, const char *partition, uint64_t limit)
{
    struct gb_outbox_depth q = {.partition = gb_bytes_c(partition), .limit = limit};
    store_driver_expect(&b->driver);
    b->store->ops->depth(b->store, &q, store_driver_done, &b->driver);
    store_driver_run(&b->driver);
    assert_int_equal(q.op.result.code, GB_OK);
    return q.pending;
}
