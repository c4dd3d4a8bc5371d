#include <stdio.h>
#include <string.h>

#include "adapters/dynamodb/dynamodb_dlq_parts.h"
#include "domain/envelope_json.h"

#define PREFIX "DLQ#"

enum { KEY_SIZE = sizeof PREFIX + GB_DDLQ_ID_SIZE };

static void write_pk(struct gb_json_writer *w, const char *id)
{
    char key[KEY_SIZE];
    int size = snprintf(key, sizeof key, PREFIX "%s", id);
    if (size < 0 || (size_t)size >= sizeof key) w->out->failed = true; /* no id of ours */
    gb_dynamodb_w_s_c(w, "PK", key);
}

void gb_ddlq_write_key(struct gb_dynamodb_call *call, const char *id)
{
    gb_dynamodb_object(call, GB_DYNAMODB_KEY);
    write_pk(&call->w, id);
    gb_dynamodb_object_end(call);
}

static void write_unless_empty(struct gb_json_writer *w, const char *name, const char *text)
{
    if (text[0] != '\0') gb_dynamodb_w_s_c(w, name, text);
}

void gb_ddlq_write_item(struct gb_dynamodb_call *call, const struct gb_dlq_entry *e,
                        int64_t retention_s, struct gb_str *scratch)
{
    struct gb_json_writer *w = &call->w;
    gb_dynamodb_object(call, GB_DYNAMODB_ITEM);
    write_pk(w, e->id);
    write_unless_empty(w, "route_id", e->route_id); /* keys of indexes must not be empty */
    write_unless_empty(w, "category", e->category);
    gb_dynamodb_w_s_c(w, "binding_id", e->binding_id);
    gb_dynamodb_w_s_c(w, "session_id", e->session_id);
    gb_dynamodb_w_s_c(w, "source_id", e->source_id);
    gb_dynamodb_w_s_c(w, "correlation_id", e->correlation_id);
    gb_dynamodb_w_s_c(w, "address", e->address);
    gb_dynamodb_w_s_c(w, "reason", e->reason);
    gb_dynamodb_w_s_c(w, "error_code", e->error_code);
    gb_dynamodb_w_s_c(w, "last_error", e->last_error);
    gb_str_clear(scratch);
    gb_envelope_encode(scratch, e->envelope);
    if (scratch->failed) w->out->failed = true;
    gb_dynamodb_w_s(w, "envelope_json", gb_str_bytes(scratch));
    gb_dynamodb_w_i64(w, "failed_at", e->failed_at_ms);
    gb_dynamodb_w_u64(w, "attempts", e->attempts);
    write_unless_empty(w, "redrive_mode", e->redrive_mode);
    if (strcmp(e->extra_info, "{}") != 0) write_unless_empty(w, "extra_info", e->extra_info);
    int64_t ttl = 0;
    if (retention_s > 0 && !__builtin_add_overflow(e->failed_at_ms / 1000, retention_s, &ttl))
        gb_dynamodb_w_i64(w, "ttl", ttl);
    gb_dynamodb_object_end(call);
}

/* --- reading --- */

static struct gb_err bad_row(const struct gb_dynamodb_source *from, struct gb_bytes key,
                             const char *why)
{
    char shown[80];
    gb_bytes_show(key, shown, sizeof shown);
    return gb_err(GB_INVALID_OUTBOX_RECORD, "table \"%s\", %s, DLQ row %s: %s", from->table,
                  from->operation, shown, why);
}

static struct gb_err take_id(const struct gb_dynamodb_source *from, struct gb_bytes key,
                             char id[GB_DDLQ_ID_SIZE])
{
    size_t prefix = sizeof PREFIX - 1;
    if (key.size <= prefix || memcmp(key.data, PREFIX, prefix) != 0)
        return bad_row(from, key, "PK does not begin with " PREFIX);
    if (key.size - prefix >= GB_DDLQ_ID_SIZE) return bad_row(from, key, "id is too long");
    if (memchr(key.data, '\0', key.size) != NULL) /* as an id it would name another row */
        return bad_row(from, key, "id holds U+0000");
    memcpy(id, key.data + prefix, key.size - prefix);
    id[key.size - prefix] = '\0';
    return gb_ok();
}

struct gb_err gb_ddlq_key_read(const struct gb_dynamodb_source *from, struct gb_bytes item,
                               struct gb_str *scratch, struct gb_ddlq_key *out)
{
    struct gb_bytes key = {0};
    struct gb_dynamodb_field fields[] = {
        {"PK", GB_DYNAMODB_FIELD_S, true, &key, false},
        {"failed_at", GB_DYNAMODB_FIELD_I64, true, &out->failed_at_ms, false},
    };
    gb_str_clear(scratch);
    struct gb_err err = gb_dynamodb_item_read(from, item, scratch, fields, 2);
    if (err.code == GB_INVALID_CONFIG) return bad_row(from, key, err.message);
    return gb_failed(err) ? err : take_id(from, key, out->id);
}

int gb_ddlq_key_compare(const struct gb_ddlq_key *a, const struct gb_ddlq_key *b)
{
    if (a->failed_at_ms != b->failed_at_ms) return a->failed_at_ms < b->failed_at_ms ? -1 : 1;
    return strcmp(a->id, b->id);
}

enum { EXTRA_INFO = 11, TEXTS };

static struct gb_err fill(struct gb_dlq_entry *e, const struct gb_bytes *texts)
{
    char **const members[EXTRA_INFO] = {
        &e->route_id,       &e->category,   &e->binding_id,   &e->session_id,
        &e->source_id,      &e->address,    &e->reason,       &e->error_code,
        &e->correlation_id, &e->last_error, &e->redrive_mode,
    };
    struct gb_err err = gb_dlq_entry_set_extra_info(e, texts[EXTRA_INFO]);
    for (size_t i = 0; i < EXTRA_INFO && !gb_failed(err); i++)
        if (texts[i].size > 0) err = gb_dlq_set(members[i], texts[i]);
    return err;
}

struct gb_err gb_ddlq_entry_read(const struct gb_dynamodb_source *from, struct gb_bytes item,
                                 struct gb_str *scratch, struct gb_dlq_entry **out)
{
    struct gb_bytes texts[TEXTS] = {{0}};
    struct gb_bytes key = {0};
    struct gb_bytes json = {0};
    int64_t failed_at_ms = 0;
    uint64_t attempts = 0;
    struct gb_dynamodb_field fields[] = {
        {"route_id", GB_DYNAMODB_FIELD_S, false, &texts[0], false},
        {"category", GB_DYNAMODB_FIELD_S, false, &texts[1], false},
        {"binding_id", GB_DYNAMODB_FIELD_S, false, &texts[2], false},
        {"session_id", GB_DYNAMODB_FIELD_S, false, &texts[3], false},
        {"source_id", GB_DYNAMODB_FIELD_S, false, &texts[4], false},
        {"address", GB_DYNAMODB_FIELD_S, false, &texts[5], false},
        {"reason", GB_DYNAMODB_FIELD_S, false, &texts[6], false},
        {"error_code", GB_DYNAMODB_FIELD_S, false, &texts[7], false},
        {"correlation_id", GB_DYNAMODB_FIELD_S, false, &texts[8], false},
        {"last_error", GB_DYNAMODB_FIELD_S, false, &texts[9], false},
        {"redrive_mode", GB_DYNAMODB_FIELD_S, false, &texts[10], false},
        {"extra_info", GB_DYNAMODB_FIELD_S, false, &texts[EXTRA_INFO], false},
        {"PK", GB_DYNAMODB_FIELD_S, true, &key, false},
        {"envelope_json", GB_DYNAMODB_FIELD_S, true, &json, false},
        {"failed_at", GB_DYNAMODB_FIELD_I64, true, &failed_at_ms, false},
        {"attempts", GB_DYNAMODB_FIELD_U64, false, &attempts, false},
    };
    struct gb_envelope *envelope = NULL;
    struct gb_dlq_entry *e = NULL;
    char id[GB_DDLQ_ID_SIZE];
    gb_str_clear(scratch);
    struct gb_err err =
        gb_dynamodb_item_read(from, item, scratch, fields, sizeof fields / sizeof fields[0]);
    if (err.code == GB_INVALID_CONFIG) return bad_row(from, key, err.message);
    if (!gb_failed(err)) err = take_id(from, key, id);
    if (gb_failed(err)) return err;
    err = gb_envelope_decode(json, &envelope);
    if (err.code == GB_UNAVAILABLE) return err; /* out of memory says nothing about the row */
    if (gb_failed(err)) return bad_row(from, key, err.message);
    err = gb_dlq_entry_new(envelope, &e);
    gb_envelope_unref(envelope); /* the entry has its own reference */
    if (!gb_failed(err)) err = fill(e, texts);
    if (gb_failed(err)) {
        gb_dlq_entry_free(e);
        return err;
    }
    memcpy(e->id, id, sizeof id);
    e->failed_at_ms = failed_at_ms;
    e->attempts = attempts > UINT32_MAX ? UINT32_MAX : (uint32_t)attempts;
    *out = e;
    return err;
}
