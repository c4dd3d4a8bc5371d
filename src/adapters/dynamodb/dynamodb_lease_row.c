#include "adapters/dynamodb/dynamodb_lease_row.h"

#include <string.h>

static const char prefix[] = "LEASE#";

void gb_dlease_write_key(struct gb_json_writer *w, struct gb_bytes lease_id)
{
    struct gb_str key = {0};
    gb_str_append_c(&key, prefix);
    gb_str_append(&key, lease_id);
    if (key.failed) w->out->failed = true;
    gb_dynamodb_w_s(w, "PK", gb_str_bytes(&key));
    gb_str_deinit(&key);
}

void gb_dlease_write_endpoints(struct gb_json_writer *w, const char *name,
                               const struct gb_lease_endpoint *endpoints, size_t count)
{
    if (count == 0) return;
    gb_dynamodb_w_map(w, name);
    for (size_t i = 0; i < count; i++) {
        struct gb_str capability = {0};
        gb_str_append(&capability, endpoints[i].capability);
        if (capability.failed) w->out->failed = true;
        if (!capability.failed) gb_dynamodb_w_s(w, capability.data, endpoints[i].url);
        gb_str_deinit(&capability);
    }
    gb_dynamodb_w_map_end(w);
}

static struct gb_err corrupt(struct gb_err err, struct gb_bytes lease_id)
{
    char shown[64];
    gb_bytes_show(lease_id, shown, sizeof shown);
    return err.code == GB_INVALID_CONFIG ? gb_err_in(err, "lease %s: corrupt row", shown) : err;
}

static struct gb_err read_endpoints(struct gb_bytes map, struct gb_str *scratch,
                                    struct gb_dlease_row *out)
{
    struct gb_dynamodb_cursor c;
    struct gb_dynamodb_value v;
    gb_dynamodb_cursor_init(&c, GB_DYNAMODB_M, map, scratch);
    while (gb_dynamodb_next(&c, &v)) {
        if (v.type != GB_DYNAMODB_S || out->endpoint_count == GB_DLEASE_ENDPOINTS_MAX) {
            return gb_err(GB_INVALID_CONFIG, "endpoints is no map of at most %d texts",
                          GB_DLEASE_ENDPOINTS_MAX);
        }
        out->endpoints[out->endpoint_count++] = (struct gb_lease_endpoint){v.name, v.text};
    }
    return c.err;
}

/* The id without its prefix; a key without it is nobody's. */
static struct gb_bytes id_of(struct gb_bytes key)
{
    size_t size = sizeof prefix - 1;
    if (key.size < size || memcmp(key.data, prefix, size) != 0) return gb_bytes(NULL, 0);
    return gb_bytes(key.data + size, key.size - size);
}

struct gb_err gb_dlease_row_read(const struct gb_dynamodb_source *from, struct gb_bytes item,
                                 struct gb_bytes lease_id, struct gb_str *scratch,
                                 struct gb_dlease_row *out)
{
    *out = (struct gb_dlease_row){.row = {.key = {0}}};
    struct gb_lease_row *row = &out->row;
    struct gb_bytes key = {0};
    struct gb_bytes endpoints = {0};
    enum { ENDPOINTS = 6, EVIDENCE = 7, FIELDS = 10 };
    struct gb_dynamodb_field fields[FIELDS] = {
        {"PK", GB_DYNAMODB_FIELD_S, true, &key, false},
        {"owner", GB_DYNAMODB_FIELD_S, true, &row->owner, false},
        {"version", GB_DYNAMODB_FIELD_U64, true, &row->version, false},
        {"acquired_at", GB_DYNAMODB_FIELD_I64, true, &row->acquired_ms, false},
        {"renewed_at", GB_DYNAMODB_FIELD_I64, true, &row->renewed_ms, false},
        {"expires_at", GB_DYNAMODB_FIELD_I64, true, &row->expires_ms, false},
        {"endpoints", GB_DYNAMODB_FIELD_M, false, &endpoints, false},
        {"takeover_observation_fingerprint", GB_DYNAMODB_FIELD_S, false, &row->evidence.fingerprint,
         false},
        {"takeover_observation_elapsed_ns", GB_DYNAMODB_FIELD_I64, false, &row->evidence.elapsed_ns,
         false},
        {"takeover_observation_generation", GB_DYNAMODB_FIELD_U64, false, &row->evidence.generation,
         false},
    };
    gb_str_clear(scratch);
    struct gb_err err = gb_dynamodb_item_read(from, item, scratch, fields, FIELDS);
    if (gb_failed(err)) return corrupt(err, lease_id);
    row->key = id_of(key);
    for (size_t i = EVIDENCE; i < FIELDS; i++) row->evidence_parts += fields[i].present;
    err = gb_lease_row_check(row, lease_id);
    if (gb_failed(err)) return gb_err_in(err, "table \"%s\"", from->table);
    if (fields[ENDPOINTS].present) err = read_endpoints(endpoints, scratch, out);
    return corrupt(err, lease_id);
}
