#include "domain/lease_row.h"

#include <string.h>

#include "base/duration.h"

static struct gb_err corrupt(struct gb_bytes lease_id, const char *rule)
{
    char shown[64];
    gb_bytes_show(lease_id, shown, sizeof shown);
    return gb_err(GB_INVALID_CONFIG,
                  "lease %s: corrupt row: %s; stop all its users, keep the version, write a valid "
                  "row",
                  shown, rule);
}

static struct gb_err check_evidence(const struct gb_lease_row *row, struct gb_bytes lease_id)
{
    const struct gb_lease_evidence *e = &row->evidence;
    if (row->evidence_parts == 0) return gb_ok();
    if (row->evidence_parts != 3) return corrupt(lease_id, "the takeover evidence is incomplete");
    if (e->fingerprint.size == 0)
        return corrupt(lease_id, "takeover_observation_fingerprint is empty");
    if (e->elapsed_ns < 0) return corrupt(lease_id, "takeover_observation_elapsed_ns is negative");
    if (e->generation == 0 || e->generation > GB_LEASE_VERSION_MAX)
        return corrupt(lease_id, "takeover_observation_generation is out of range");
    return gb_ok();
}

struct gb_err gb_lease_row_check(const struct gb_lease_row *row, struct gb_bytes lease_id)
{
    int64_t duration_ns = 0;
    if (!gb_bytes_equal(row->key, lease_id))
        return corrupt(lease_id, "PK is not that of the lease");
    if (row->version == 0 || row->version > GB_LEASE_VERSION_MAX)
        return corrupt(lease_id, "version is out of range");
    if (row->owner.size > 0 && memchr(row->owner.data, '\0', row->owner.size) != NULL)
        return corrupt(lease_id, "owner holds U+0000");
    if (row->renewed_ms <= 0) return corrupt(lease_id, "renewed_at is not positive");
    if (gb_lease_is_released(row)) {
        if (row->expires_ms != 0) return corrupt(lease_id, "released, but expires_at is not 0");
    } else if (row->expires_ms <= row->renewed_ms) {
        return corrupt(lease_id, "expires_at is not after renewed_at");
    } else if (!gb_mul_i64(row->expires_ms - row->renewed_ms, GB_MS, &duration_ns)) {
        return corrupt(lease_id, "the time from renewed_at to expires_at is out of range");
    }
    return check_evidence(row, lease_id);
}

void gb_lease_fingerprint(const struct gb_lease_row *row, char out[GB_SHA256_HEX])
{
    uint8_t numbers[3][8];
    uint8_t digest[GB_SHA256_SIZE];
    gb_put_u64(numbers[0], row->version);
    gb_put_u64(numbers[1], (uint64_t)row->renewed_ms);
    gb_put_u64(numbers[2], (uint64_t)row->expires_ms);
    const struct gb_bytes parts[] = {
        row->key,
        row->owner,
        gb_bytes(numbers[0], sizeof numbers[0]),
        gb_bytes(numbers[1], sizeof numbers[1]),
        gb_bytes(numbers[2], sizeof numbers[2]),
    };
    gb_sha256_parts(parts, sizeof parts / sizeof parts[0], 4, digest);
    gb_hex(gb_bytes(digest, sizeof digest), out);
}

int64_t gb_lease_required_ns(const struct gb_lease_row *row)
{
    return (row->expires_ms - row->renewed_ms) * GB_MS;
}
