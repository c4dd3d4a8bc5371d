#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/dynamodb/dynamodb_dlq_parts.h"
#include "adapters/dynamodb/dynamodb_lease_row.h"
#include "adapters/dynamodb/dynamodb_outbox_row.h"
#include "adapters/dynamodb/dynamodb_subscriptions_row.h"
#include "base/assert.h"
#include "domain/envelope_json.h"
#include "domain/takeover.h"
#include "fuzz/dynamodb_row_items.h"

/* Any item as a row of each store: it is read or refused with the code that says so, and what was
 * read comes back the same when it is written and read once more. The first byte chooses the store;
 * the rest is the item ('0' to '3') or what one is built from ('4' to '7'). */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct gb_dynamodb_source from = {"t", "Query"};

static bool same_envelope(const struct gb_envelope *a, const struct gb_envelope *b)
{
    struct gb_str x = {0};
    struct gb_str y = {0};
    gb_envelope_encode(&x, a);
    gb_envelope_encode(&y, b);
    bool same = !x.failed && gb_bytes_equal(gb_str_bytes(&x), gb_str_bytes(&y));
    gb_str_deinit(&x);
    gb_str_deinit(&y);
    return same;
}

/* --- outbox --- */

static void check_same(const struct gb_dbox_row *a, const struct gb_dbox_row *b)
{
    GB_ASSERT(gb_bytes_equal(a->record.id, b->record.id));
    GB_ASSERT(gb_bytes_equal(a->record.route_id, b->record.route_id));
    GB_ASSERT(gb_bytes_equal(a->record.binding_id, b->record.binding_id));
    GB_ASSERT(gb_bytes_equal(a->record.session_id, b->record.session_id));
    GB_ASSERT(gb_bytes_equal(a->record.address, b->record.address));
    GB_ASSERT(gb_bytes_equal(a->record.dispatch_headers, b->record.dispatch_headers));
    GB_ASSERT(gb_bytes_equal(a->record.ordering_key, b->record.ordering_key));
    GB_ASSERT(a->record.created_at_ms == b->record.created_at_ms && a->record.seq == b->record.seq);
    GB_ASSERT(a->record.expires_at_ms == b->record.expires_at_ms);
    GB_ASSERT(same_envelope(a->record.envelope, b->record.envelope));
    GB_ASSERT(gb_dbox_row_compare(a, b) == 0);
}

static void write_again(const struct gb_dbox_row *row, bool direct)
{
    const struct gb_token token = {gb_bytes_c("o"), 7};
    struct gb_str json = {0};
    struct gb_str scratch = {0};
    struct gb_str texts = {0};
    struct gb_json_writer w;
    struct gb_dbox_row again;
    gb_json_w_init(&w, &json);
    gb_json_w_object(&w);
    if (direct) {
        gb_dbox_write_direct(&w, row->partition, &row->record, &token, 5, &scratch);
    } else {
        gb_dbox_write_record(&w, row->partition, &row->record, &scratch);
    }
    gb_json_w_object_end(&w);
    GB_ASSERT(!json.failed);
    struct gb_err err = gb_dbox_row_read(&from, gb_str_bytes(&json), &texts, &again);
    GB_ASSERT(!gb_failed(err) && again.direct == direct);
    GB_ASSERT(again.status == (direct ? GB_OUTBOX_CLAIMED : GB_OUTBOX_PENDING));
    GB_ASSERT(!gb_failed(gb_dbox_row_decode(&again)));
    check_same(row, &again);
    gb_envelope_unref(again.record.envelope);
    gb_str_deinit(&texts);
    gb_str_deinit(&scratch);
    gb_str_deinit(&json);
}

static void check_outbox(struct gb_bytes item)
{
    struct gb_str scratch = {0};
    struct gb_dbox_row row;
    struct gb_err err = gb_dbox_row_read(&from, item, &scratch, &row);
    GB_ASSERT(err.code == GB_OK || err.code == GB_INVALID_OUTBOX_RECORD ||
              err.code == GB_UNAVAILABLE);
    if (!gb_failed(err)) {
        err = gb_dbox_row_decode(&row);
        GB_ASSERT(err.code == GB_OK || err.code == GB_INVALID_OUTBOX_RECORD);
    }
    if (!gb_failed(err)) {
        write_again(&row, false);
        write_again(&row, true);
        gb_envelope_unref(row.record.envelope);
    }
    gb_str_deinit(&scratch);
}

/* --- DLQ --- */

/* Its PK as it stands there; empty without one. */
static struct gb_bytes key_of(struct gb_bytes item, struct gb_str *scratch)
{
    struct gb_bytes key = {0};
    struct gb_dynamodb_field field = {"PK", GB_DYNAMODB_FIELD_S, true, &key, false};
    return gb_failed(gb_dynamodb_item_read(&from, item, scratch, &field, 1)) ? gb_bytes(NULL, 0)
                                                                             : key;
}

static void check_same_entry(const struct gb_dlq_entry *a, const struct gb_dlq_entry *b)
{
    const char *const texts[][2] = {
        {a->id, b->id},
        {a->route_id, b->route_id},
        {a->category, b->category},
        {a->binding_id, b->binding_id},
        {a->session_id, b->session_id},
        {a->source_id, b->source_id},
        {a->correlation_id, b->correlation_id},
        {a->address, b->address},
        {a->reason, b->reason},
        {a->error_code, b->error_code},
        {a->last_error, b->last_error},
        {a->redrive_mode, b->redrive_mode},
        {a->extra_info, b->extra_info},
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        GB_ASSERT(strcmp(texts[i][0], texts[i][1]) == 0);
    GB_ASSERT(a->failed_at_ms == b->failed_at_ms && a->attempts == b->attempts);
    GB_ASSERT(same_envelope(a->envelope, b->envelope));
}

static void write_entry_again(const struct gb_dlq_entry *e, struct gb_bytes key)
{
    static const char opening[] = "\"Item\":";
    struct gb_dynamodb_call call = {0};
    struct gb_str scratch = {0};
    struct gb_str texts = {0};
    struct gb_dlq_entry *again = NULL;
    gb_dynamodb_begin(&call, GB_DYNAMODB_PUT_ITEM, "t");
    gb_ddlq_write_item(&call, e, 60, &scratch);
    struct gb_bytes body = gb_str_bytes(&call.aws.body);
    const char *at = memmem(body.data, body.size, opening, sizeof opening - 1);
    GB_ASSERT(!call.aws.body.failed && at != NULL);
    at += sizeof opening - 1;
    struct gb_bytes item = gb_bytes(at, body.size - (size_t)(at - (const char *)body.data));
    GB_ASSERT(!gb_failed(gb_ddlq_entry_read(&from, item, &scratch, &again)));
    check_same_entry(e, again);
    GB_ASSERT(gb_bytes_equal(key_of(item, &texts), key)); /* a removal hits this row, no other */
    gb_dlq_entry_free(again);
    gb_str_deinit(&texts);
    gb_str_deinit(&scratch);
    gb_dynamodb_call_deinit(&call);
}

static void check_dlq(struct gb_bytes item)
{
    struct gb_str scratch = {0};
    struct gb_str texts = {0};
    struct gb_dlq_entry *e = NULL;
    struct gb_ddlq_key key;
    struct gb_err err = gb_ddlq_entry_read(&from, item, &scratch, &e);
    GB_ASSERT(err.code == GB_OK || err.code == GB_INVALID_OUTBOX_RECORD ||
              err.code == GB_UNAVAILABLE);
    struct gb_err key_err = gb_ddlq_key_read(&from, item, &scratch, &key);
    GB_ASSERT(key_err.code == GB_OK || key_err.code == GB_INVALID_OUTBOX_RECORD ||
              key_err.code == GB_UNAVAILABLE);
    if (!gb_failed(err)) {
        GB_ASSERT(!gb_failed(key_err) && strcmp(key.id, e->id) == 0);
        GB_ASSERT(key.failed_at_ms == e->failed_at_ms);
        write_entry_again(e, key_of(item, &texts));
        gb_dlq_entry_free(e);
    }
    gb_str_deinit(&texts);
    gb_str_deinit(&scratch);
}

/* --- leases --- */

static void write_evidence(struct gb_json_writer *w, const struct gb_lease_evidence *e)
{
    gb_dynamodb_w_s(w, "takeover_observation_fingerprint", e->fingerprint);
    gb_dynamodb_w_i64(w, "takeover_observation_elapsed_ns", e->elapsed_ns);
    gb_dynamodb_w_u64(w, "takeover_observation_generation", e->generation);
}

static void write_lease_again(const struct gb_dlease_row *r)
{
    struct gb_str json = {0};
    struct gb_str texts = {0};
    struct gb_json_writer w;
    struct gb_dlease_row again;
    const struct gb_lease_row *a = &r->row;
    const struct gb_lease_row *b = &again.row;
    gb_json_w_init(&w, &json);
    gb_json_w_object(&w);
    gb_dlease_write_key(&w, a->key);
    gb_dynamodb_w_s(&w, "owner", a->owner);
    gb_dynamodb_w_u64(&w, "version", a->version);
    gb_dynamodb_w_i64(&w, "acquired_at", a->acquired_ms);
    gb_dynamodb_w_i64(&w, "renewed_at", a->renewed_ms);
    gb_dynamodb_w_i64(&w, "expires_at", a->expires_ms);
    gb_dlease_write_endpoints(&w, "endpoints", r->endpoints, r->endpoint_count);
    if (a->evidence_parts > 0) write_evidence(&w, &a->evidence);
    gb_json_w_object_end(&w);
    GB_ASSERT(!json.failed);
    GB_ASSERT(!gb_failed(gb_dlease_row_read(&from, gb_str_bytes(&json), a->key, &texts, &again)));
    GB_ASSERT(gb_bytes_equal(a->owner, b->owner) && a->version == b->version);
    GB_ASSERT(a->acquired_ms == b->acquired_ms && a->renewed_ms == b->renewed_ms);
    GB_ASSERT(a->expires_ms == b->expires_ms && a->evidence_parts == b->evidence_parts);
    GB_ASSERT(gb_bytes_equal(a->evidence.fingerprint, b->evidence.fingerprint));
    GB_ASSERT(a->evidence.elapsed_ns == b->evidence.elapsed_ns);
    GB_ASSERT(a->evidence.generation == b->evidence.generation);
    GB_ASSERT(r->endpoint_count == again.endpoint_count);
    for (size_t i = 0; i < r->endpoint_count; i++) {
        /* ours are texts without U+0000, which is where a written name ends */
        const struct gb_bytes *name = &r->endpoints[i].capability;
        size_t size = name->size == 0 ? 0 : strnlen((const char *)name->data, name->size);
        GB_ASSERT(gb_bytes_equal(gb_bytes(name->data, size), again.endpoints[i].capability));
        GB_ASSERT(gb_bytes_equal(r->endpoints[i].url, again.endpoints[i].url));
    }
    gb_str_deinit(&texts);
    gb_str_deinit(&json);
}

/* No row makes a standby take what it has not seen unchanged for as long as the row says. */
static void watch(const struct gb_lease_row *row)
{
    enum { POLLS = 4 };
    struct gb_takeover t = {0};
    struct gb_takeover_verdict v = {0};
    const struct gb_bytes me = gb_bytes_c("me#1");
    bool free_to_take = gb_lease_is_released(row) || gb_bytes_equal(row->owner, me);
    for (uint64_t i = 1; i <= POLLS; i++) {
        struct gb_err err = gb_takeover_judge(&t, row, me, i << 40, &v);
        GB_ASSERT(err.code == GB_OK || err.code == GB_INVALID_CONFIG);
        if (gb_failed(err)) return;
        bool takes = v.step == GB_TAKEOVER_SEIZE || v.then_seize;
        GB_ASSERT(!free_to_take || v.step == GB_TAKEOVER_SEIZE);
        GB_ASSERT(!takes || free_to_take || v.elapsed_ns >= gb_lease_required_ns(row));
        if (v.step == GB_TAKEOVER_OBSERVE) gb_takeover_observed(&t, &v, i << 40);
    }
}

static void check_holder(const struct gb_dlease_row *r)
{
    struct gb_lease_holder h = {0};
    GB_ASSERT(!gb_failed(gb_lease_holder_set(&h, &r->row, r->endpoints, r->endpoint_count)));
    GB_ASSERT(gb_bytes_equal_c(r->row.owner, h.owner)); /* conditions are written from it */
    GB_ASSERT(h.version == r->row.version && h.endpoint_count == r->endpoint_count);
    gb_lease_holder_deinit(&h);
}

static void check_lease(struct gb_bytes item)
{
    static const size_t prefix = sizeof "LEASE#" - 1;
    struct gb_str scratch = {0};
    struct gb_str texts = {0};
    struct gb_dlease_row row;
    struct gb_bytes id = key_of(item, &texts);
    id = id.size > prefix ? gb_bytes(id.data + prefix, id.size - prefix) : gb_bytes_c("s");
    struct gb_err err = gb_dlease_row_read(&from, item, id, &scratch, &row);
    GB_ASSERT(err.code == GB_OK || err.code == GB_INVALID_CONFIG || err.code == GB_UNAVAILABLE);
    if (!gb_failed(err)) {
        GB_ASSERT(row.endpoint_count <= GB_DLEASE_ENDPOINTS_MAX);
        write_lease_again(&row);
        watch(&row.row);
        check_holder(&row);
    }
    err = gb_dlease_row_read(&from, item, gb_bytes_c("another's"), &scratch, &row);
    GB_ASSERT(gb_failed(err) || gb_bytes_equal_c(id, "another's"));
    gb_str_deinit(&texts);
    gb_str_deinit(&scratch);
}

/* --- subscriptions --- */

static void write_filters_again(const struct gb_filter_list *a)
{
    struct gb_str json = {0};
    struct gb_str scratch = {0};
    struct gb_json_writer w;
    struct gb_filter_list b = {0};
    struct gb_bytes *texts = calloc(a->count + 1, sizeof *texts);
    GB_ASSERT(texts != NULL);
    for (size_t i = 0; i < a->count; i++) texts[i] = gb_bytes_c(a->filters[i]);
    gb_json_w_init(&w, &json);
    gb_json_w_object(&w);
    gb_dynamodb_w_bool(&w, "baseline", true);
    gb_dynamodb_w_ss(&w, "filters", texts, a->count);
    gb_json_w_object_end(&w);
    GB_ASSERT(!gb_failed(gb_dsub_row_read(&from, gb_str_bytes(&json), "id", &scratch, &b)));
    GB_ASSERT(a->count == b.count);
    for (size_t i = 0; i < a->count; i++) GB_ASSERT(strcmp(a->filters[i], b.filters[i]) == 0);
    gb_filter_list_free(&b);
    free(texts);
    gb_str_deinit(&scratch);
    gb_str_deinit(&json);
}

static void check_subscriptions(struct gb_bytes item)
{
    struct gb_str scratch = {0};
    struct gb_filter_list list = {0};
    struct gb_err err = gb_dsub_row_read(&from, item, "id", &scratch, &list);
    GB_ASSERT(err.code == GB_OK || err.code == GB_INVALID_CONFIG || err.code == GB_UNAVAILABLE ||
              err.code == GB_NOT_FOUND);
    GB_ASSERT(!gb_failed(err) || list.count == 0);
    for (size_t i = 1; i < list.count; i++) /* sorted, none twice */
        GB_ASSERT(strcmp(list.filters[i - 1], list.filters[i]) < 0);
    if (!gb_failed(err)) write_filters_again(&list);
    gb_filter_list_free(&list);
    gb_str_deinit(&scratch);
}

static const struct row_attribute outbox[] = {
    {"PK", "SESSION#"},     {"SK", "OUTBOX#"},     {"record_id", "S"},
    {"rid", "S"},           {"route_id", "S"},     {"envelope_id", "S"},
    {"binding_id", "S"},    {"session_id", "S"},   {"address", "S"},
    {"headers_json", "S"},  {"ordering_key", "S"}, {"status", "?"},
    {"envelope_json", "E"}, {"env", "E"},          {"body", "B"},
    {"claim_version", "N"}, {"replay_count", "N"}, {"completed_at", "N"},
    {"created_at", "N"},    {"expires_at", "N"},   {"seq", "N"},
    {"claimed_by", "S"},    {"claimed_at", "N"},   {"first_attempted_at", "N"},
};
static const struct row_attribute dlq[] = {
    {"PK", "DLQ#"},      {"envelope_json", "E"},  {"failed_at", "N"},    {"attempts", "N"},
    {"route_id", "S"},   {"category", "S"},       {"binding_id", "S"},   {"session_id", "S"},
    {"source_id", "S"},  {"correlation_id", "S"}, {"address", "S"},      {"reason", "S"},
    {"error_code", "S"}, {"last_error", "S"},     {"redrive_mode", "S"}, {"extra_info", "S"},
};
static const struct row_attribute lease[] = {
    {"PK", "LEASE#"},
    {"owner", "S"},
    {"version", "N"},
    {"acquired_at", "N"},
    {"renewed_at", "N"},
    {"expires_at", "N"},
    {"endpoints", "M"},
    {"takeover_observation_fingerprint", "S"},
    {"takeover_observation_elapsed_ns", "N"},
    {"takeover_observation_generation", "N"},
};
static const struct row_attribute subscriptions[] = {{"baseline", "BOOL"}, {"filters", "SS"}};

#define COUNT(array) (sizeof(array) / sizeof(array)[0])
static const struct store {
    void (*check)(struct gb_bytes item);
    const struct row_attribute *attributes;
    size_t count;
} stores[] = {
    {check_outbox, outbox, COUNT(outbox)},
    {check_dlq, dlq, COUNT(dlq)},
    {check_lease, lease, COUNT(lease)},
    {check_subscriptions, subscriptions, COUNT(subscriptions)},
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) return 0;
    const struct store *s = &stores[data[0] % 4];
    struct gb_bytes item = gb_bytes(data + 1, size - 1);
    struct gb_str built = {0};
    if (data[0] % 8 >= 4) {
        row_build(&built, item, s->attributes, s->count);
        item = gb_str_bytes(&built);
    }
    s->check(item);
    gb_str_deinit(&built);
    return 0;
}
