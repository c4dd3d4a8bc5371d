#include "adapters/dynamodb/dynamodb_outbox_row.h"

#include <inttypes.h>
#include <stdio.h>

#include "domain/envelope_json.h"

static const char *const status_names[] = {
    [GB_OUTBOX_PENDING] = "pending",
    [GB_OUTBOX_CLAIMED] = "claimed",
    [GB_OUTBOX_COMPLETED] = "completed",
    [GB_OUTBOX_EXPIRED] = "expired",
};

/* --- writing --- */

static void append_escaped(struct gb_str *out, struct gb_bytes text)
{
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] == '%') {
            gb_str_append_c(out, "%25");
        } else if (text.data[i] == '#') {
            gb_str_append_c(out, "%23");
        } else {
            gb_str_append_char(out, (char)text.data[i]);
        }
    }
}

void gb_dbox_sort_key(struct gb_str *out, struct gb_bytes envelope_id, struct gb_bytes binding_id)
{
    gb_str_append_c(out, GB_DBOX_PREFIX);
    append_escaped(out, envelope_id);
    gb_str_append_char(out, '#');
    append_escaped(out, binding_id);
}

void gb_dbox_claim_sort(char out[GB_DBOX_CLAIM_SORT_SIZE], int64_t created_at_ms, uint64_t seq)
{
    int64_t ms = created_at_ms < 0 ? 0 : created_at_ms;
    (void)snprintf(out, GB_DBOX_CLAIM_SORT_SIZE, "%019" PRId64 "#%020" PRIu64, ms, seq);
}

void gb_dbox_write_key(struct gb_json_writer *w, struct gb_bytes partition,
                       struct gb_bytes sort_key)
{
    gb_dynamodb_w_s(w, "PK", partition);
    gb_dynamodb_w_s(w, "SK", sort_key);
}

/* What every record has, whatever its state. */
static void write_identity(struct gb_json_writer *w, struct gb_bytes partition,
                           const struct gb_outbox_record *r, struct gb_str *scratch)
{
    gb_str_clear(scratch);
    gb_dbox_sort_key(scratch, r->envelope->id, r->binding_id);
    gb_dbox_write_key(w, partition, gb_str_bytes(scratch));
    if (scratch->failed) w->out->failed = true;
    gb_dynamodb_w_s(w, "route_id", r->route_id);
    gb_dynamodb_w_s(w, "envelope_id", r->envelope->id);
    gb_dynamodb_w_s(w, "binding_id", r->binding_id);
    gb_dynamodb_w_s(w, "session_id", r->session_id);
    gb_dynamodb_w_s(w, "address", r->address);
    if (r->dispatch_headers.size > 0) gb_dynamodb_w_s(w, "headers_json", r->dispatch_headers);
    gb_dynamodb_w_i64(w, "completed_at", 0);
    gb_dynamodb_w_i64(w, "created_at", r->created_at_ms);
    gb_dynamodb_w_i64(w, "expires_at", r->expires_at_ms);
    gb_dynamodb_w_u64(w, "seq", r->seq);
    if (r->ordering_key.size > 0) gb_dynamodb_w_s(w, "ordering_key", r->ordering_key);
}

static void write_envelope(struct gb_json_writer *w, const char *name, const struct gb_envelope *e,
                           struct gb_str *scratch)
{
    gb_str_clear(scratch);
    gb_envelope_encode(scratch, e);
    gb_dynamodb_w_s(w, name, gb_str_bytes(scratch));
    if (scratch->failed) w->out->failed = true;
}

static void write_claim_sort(struct gb_json_writer *w, const char *name,
                             const struct gb_outbox_record *r)
{
    char claim_sort[GB_DBOX_CLAIM_SORT_SIZE];
    gb_dbox_claim_sort(claim_sort, r->created_at_ms, r->seq);
    gb_dynamodb_w_s_c(w, name, claim_sort);
}

void gb_dbox_write_record(struct gb_json_writer *w, struct gb_bytes partition,
                          const struct gb_outbox_record *r, struct gb_str *scratch)
{
    write_identity(w, partition, r, scratch);
    gb_dynamodb_w_s(w, "record_id", r->id);
    write_envelope(w, "envelope_json", r->envelope, scratch);
    gb_dynamodb_w_s_c(w, "status", status_names[GB_OUTBOX_PENDING]);
    gb_dynamodb_w_i64(w, "claim_version", 0);
    gb_dynamodb_w_i64(w, "replay_count", 0);
    write_claim_sort(w, "claim_sort", r);
    if (r->expires_at_ms > 0) gb_dynamodb_w_s_c(w, "has_expiry", "1");
}

void gb_dbox_write_direct(struct gb_json_writer *w, struct gb_bytes partition,
                          const struct gb_outbox_record *r, const struct gb_token *token,
                          int64_t now_ms, struct gb_str *scratch)
{
    struct gb_envelope head = *r->envelope; /* only to be encoded */
    head.payload = gb_bytes(NULL, 0);
    write_identity(w, partition, r, scratch);
    gb_dynamodb_w_s(w, "rid", r->id);
    write_envelope(w, "env", &head, scratch);
    if (r->envelope->payload.size > 0) gb_dynamodb_w_b(w, "body", r->envelope->payload);
    gb_dynamodb_w_s_c(w, "status", status_names[GB_OUTBOX_CLAIMED]);
    gb_dynamodb_w_s(w, "claimed_by", token->owner);
    gb_dynamodb_w_u64(w, "claim_version", token->version);
    gb_dynamodb_w_i64(w, "claimed_at", now_ms);
    gb_dynamodb_w_i64(w, "first_attempted_at", now_ms);
    gb_dynamodb_w_i64(w, "replay_count", 1);
}

const char *gb_dbox_index_set(const struct gb_outbox_record *r)
{
    return r->expires_at_ms > 0 ? "record_id = :id, claim_sort = :sort, envelope_json = :json, "
                                  "has_expiry = :has"
                                : "record_id = :id, claim_sort = :sort, envelope_json = :json";
}

void gb_dbox_write_index_values(struct gb_json_writer *w, const struct gb_outbox_record *r,
                                struct gb_str *scratch)
{
    gb_dynamodb_w_s(w, ":id", r->id);
    write_claim_sort(w, ":sort", r);
    write_envelope(w, ":json", r->envelope, scratch);
    if (r->expires_at_ms > 0) gb_dynamodb_w_s_c(w, ":has", "1");
}

/* --- reading --- */

static struct gb_err bad_row(const struct gb_dynamodb_source *from, const struct gb_dbox_row *row,
                             const char *why)
{
    char sort_key[80];
    gb_bytes_show(row->sort_key, sort_key, sizeof sort_key);
    return gb_err(GB_INVALID_OUTBOX_RECORD, "table \"%s\", %s, outbox row %s: %s", from->table,
                  from->operation, sort_key, why);
}

static bool read_status(struct gb_bytes text, enum gb_outbox_status *out)
{
    for (size_t i = 0; i < sizeof status_names / sizeof status_names[0]; i++) {
        if (!gb_bytes_equal_c(text, status_names[i])) continue;
        *out = (enum gb_outbox_status)i;
        return true;
    }
    return false;
}

struct gb_err gb_dbox_row_read(const struct gb_dynamodb_source *from, struct gb_bytes item,
                               struct gb_str *scratch, struct gb_dbox_row *out)
{
    *out = (struct gb_dbox_row){0};
    struct gb_outbox_record *r = &out->record;
    struct gb_bytes status = {0};
    struct gb_bytes direct_id = {0};
    struct gb_bytes head = {0};
    struct gb_dynamodb_field fields[] = {
        {"PK", GB_DYNAMODB_FIELD_S, true, &out->partition, false},
        {"SK", GB_DYNAMODB_FIELD_S, true, &out->sort_key, false},
        {"ordering_key", GB_DYNAMODB_FIELD_S, false, &r->ordering_key, false},
        {"record_id", GB_DYNAMODB_FIELD_S, false, &r->id, false},
        {"rid", GB_DYNAMODB_FIELD_S, false, &direct_id, false},
        {"env", GB_DYNAMODB_FIELD_S, false, &head, false},
        {"body", GB_DYNAMODB_FIELD_B, false, &out->body, false},
        {"route_id", GB_DYNAMODB_FIELD_S, true, &r->route_id, false},
        {"envelope_id", GB_DYNAMODB_FIELD_S, true, &out->envelope_id, false},
        {"binding_id", GB_DYNAMODB_FIELD_S, true, &r->binding_id, false},
        {"session_id", GB_DYNAMODB_FIELD_S, true, &r->session_id, false},
        {"address", GB_DYNAMODB_FIELD_S, true, &r->address, false},
        {"envelope_json", GB_DYNAMODB_FIELD_S, false, &out->envelope_json, false},
        {"headers_json", GB_DYNAMODB_FIELD_S, false, &r->dispatch_headers, false},
        {"status", GB_DYNAMODB_FIELD_S, true, &status, false},
        {"claim_version", GB_DYNAMODB_FIELD_U64, true, &r->claim_version, false},
        {"replay_count", GB_DYNAMODB_FIELD_U64, true, &out->replays, false},
        {"completed_at", GB_DYNAMODB_FIELD_I64, false, &out->completed_at_ms, false},
        {"created_at", GB_DYNAMODB_FIELD_I64, true, &r->created_at_ms, false},
        {"expires_at", GB_DYNAMODB_FIELD_I64, true, &r->expires_at_ms, false},
        {"seq", GB_DYNAMODB_FIELD_U64, true, &r->seq, false},
        {"claimed_by", GB_DYNAMODB_FIELD_S, false, &out->claimed_by, false},
        {"claimed_at", GB_DYNAMODB_FIELD_I64, false, &out->claimed_at_ms, false},
        {"first_attempted_at", GB_DYNAMODB_FIELD_I64, false, &r->first_attempted_at_ms, false},
    };
    struct gb_err err =
        gb_dynamodb_item_read(from, item, scratch, fields, sizeof fields / sizeof fields[0]);
    if (err.code == GB_INVALID_CONFIG) return bad_row(from, out, err.message);
    if (gb_failed(err)) return err;
    r->replay_count = out->replays > UINT32_MAX ? UINT32_MAX : (uint32_t)out->replays;
    out->direct = direct_id.size > 0;
    if (out->direct) r->id = direct_id;
    if (out->envelope_json.size == 0) out->envelope_json = head;
    if (!read_status(status, &out->status))
        return bad_row(from, out, "status is none of pending, claimed, completed, expired");
    if (r->id.size == 0) return bad_row(from, out, "record_id is missing");
    if (out->direct && out->status == GB_OUTBOX_CLAIMED && out->claimed_by.size == 0)
        return bad_row(from, out, "claimed_by is missing");
    bool live = out->status == GB_OUTBOX_PENDING || out->status == GB_OUTBOX_CLAIMED;
    if (live && out->envelope_json.size == 0) return bad_row(from, out, "envelope_json is missing");
    return gb_ok();
}

struct gb_err gb_dbox_row_decode(struct gb_dbox_row *row)
{
    static const struct gb_dynamodb_source from = {"outbox", "envelope_json"};
    struct gb_err err = gb_envelope_decode(row->envelope_json, &row->record.envelope);
    if (err.code == GB_UNAVAILABLE) return err; /* out of memory says nothing about the row */
    if (gb_failed(err)) return bad_row(&from, row, err.message);
    bool same = gb_bytes_equal(row->record.envelope->id, row->envelope_id);
    if (same && row->body.size > 0) err = gb_envelope_set_payload(row->record.envelope, row->body);
    if (same && !gb_failed(err)) return err;
    gb_envelope_unref(row->record.envelope);
    row->record.envelope = NULL;
    return same ? err : bad_row(&from, row, "envelope_json and envelope_id differ");
}

int gb_dbox_row_compare(const struct gb_dbox_row *a, const struct gb_dbox_row *b)
{
    const struct gb_outbox_record *x = &a->record;
    const struct gb_outbox_record *y = &b->record;
    if (x->created_at_ms != y->created_at_ms) return x->created_at_ms < y->created_at_ms ? -1 : 1;
    if (x->seq != y->seq) return x->seq < y->seq ? -1 : 1;
    return gb_bytes_compare(a->envelope_id, b->envelope_id);
}
