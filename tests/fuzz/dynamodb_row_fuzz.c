#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "adapters/dynamodb/dynamodb_dlq_parts.h"
#include "adapters/dynamodb/dynamodb_lease_row.h"
#include "adapters/dynamodb/dynamodb_outbox_row.h"
#include "adapters/dynamodb/dynamodb_subscriptions_row.h"
#include "base/assert.h"
#include "domain/envelope_json.h"

/* Any item as a row of each store: it is read or refused with the code that says so, and what was
 * read comes back the same when it is written and read once more. The first byte chooses the store,
 * the rest is the item. */

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

static void write_entry_again(const struct gb_dlq_entry *e)
{
    static const char opening[] = "\"Item\":";
    struct gb_dynamodb_call call = {0};
    struct gb_str scratch = {0};
    struct gb_dlq_entry *again = NULL;
    gb_dynamodb_begin(&call, GB_DYNAMODB_PUT_ITEM, "t");
    gb_ddlq_write_item(&call, e, 60, &scratch);
    struct gb_bytes body = gb_str_bytes(&call.aws.body);
    const char *at = memmem(body.data, body.size, opening, sizeof opening - 1);
    GB_ASSERT(!call.aws.body.failed && at != NULL);
    at += sizeof opening - 1;
    struct gb_bytes item = gb_bytes(at, body.size - (size_t)(at - (const char *)body.data));
    GB_ASSERT(!gb_failed(gb_ddlq_entry_read(&from, item, &scratch, &again)));
    GB_ASSERT(strcmp(again->id, e->id) == 0 && again->failed_at_ms == e->failed_at_ms);
    GB_ASSERT(strcmp(again->last_error, e->last_error) == 0 && again->attempts == e->attempts);
    GB_ASSERT(strcmp(again->extra_info, e->extra_info) == 0);
    GB_ASSERT(same_envelope(again->envelope, e->envelope));
    gb_dlq_entry_free(again);
    gb_str_deinit(&scratch);
    gb_dynamodb_call_deinit(&call);
}

static void check_dlq(struct gb_bytes item)
{
    struct gb_str scratch = {0};
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
        write_entry_again(e);
        gb_dlq_entry_free(e);
    }
    gb_str_deinit(&scratch);
}

/* --- leases and subscriptions --- */

static void check_lease(struct gb_bytes item)
{
    struct gb_str scratch = {0};
    struct gb_dlease_row row;
    struct gb_err err = gb_dlease_row_read(&from, item, gb_bytes_c("plant"), &scratch, &row);
    GB_ASSERT(err.code == GB_OK || err.code == GB_INVALID_CONFIG || err.code == GB_UNAVAILABLE ||
              err.code == GB_NOT_FOUND);
    if (!gb_failed(err)) GB_ASSERT(row.endpoint_count <= GB_DLEASE_ENDPOINTS_MAX);
    gb_str_deinit(&scratch);
}

static void check_subscriptions(struct gb_bytes item)
{
    struct gb_str scratch = {0};
    struct gb_filter_list list = {0};
    struct gb_err err = gb_dsub_row_read(&from, item, "id", &scratch, &list);
    GB_ASSERT(err.code == GB_OK || err.code == GB_INVALID_CONFIG || err.code == GB_UNAVAILABLE ||
              err.code == GB_NOT_FOUND);
    GB_ASSERT(!gb_failed(err) || list.count == 0);
    for (size_t i = 1; i < list.count; i++)
        GB_ASSERT(strcmp(list.filters[i - 1], list.filters[i]) <= 0);
    gb_filter_list_free(&list);
    gb_str_deinit(&scratch);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const checks[])(struct gb_bytes) = {check_outbox, check_dlq, check_lease,
                                                      check_subscriptions};
    if (size == 0) return 0;
    checks[data[0] % 4](gb_bytes(data + 1, size - 1));
    return 0;
}
