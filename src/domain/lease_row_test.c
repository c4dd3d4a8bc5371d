#include "domain/lease_row.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/duration.h"
#include "domain/lease_holder.h"

static struct gb_lease_row active(void)
{
    return (struct gb_lease_row){.key = gb_bytes_c("s"),
                                 .owner = gb_bytes_c("a#1"),
                                 .version = 7,
                                 .acquired_ms = 1000,
                                 .renewed_ms = 2000,
                                 .expires_ms = 8000};
}

static struct gb_lease_row released(void)
{
    struct gb_lease_row r = active();
    r.owner = gb_bytes_c("");
    r.expires_ms = 0;
    return r;
}

static struct gb_lease_row observed(void)
{
    struct gb_lease_row r = active();
    r.evidence_parts = 3;
    r.evidence = (struct gb_lease_evidence){gb_bytes_c("f"), 0, 1};
    return r;
}

/* 06 check 10: table 5.1, one change of a valid row at a time. */
static void table_5_1(void **state)
{
    (void)state;
    struct gb_lease_row rows[32];
    const char *says[32]; /* NULL: valid */
    size_t n = 0;
#define ROW(base, change, text)                                                                    \
    do {                                                                                           \
        struct gb_lease_row r = base();                                                            \
        change;                                                                                    \
        rows[n] = r;                                                                               \
        says[n++] = text;                                                                          \
    } while (0)
    ROW(active, (void)r, NULL);
    ROW(released, (void)r, NULL);
    ROW(observed, (void)r, NULL);
    ROW(active, r.version = GB_LEASE_VERSION_MAX, NULL);
    ROW(active, r.version = UINT64_MAX, "version is out of range");
    ROW(active, r.version = 0, "version is out of range");
    ROW(active, r.key = gb_bytes_c("t"), "PK is not that of the lease");
    ROW(active, r.key = gb_bytes_c(""), "PK is not that of the lease");
    ROW(active, r.owner = gb_bytes("a\0b", 3), "owner holds U+0000");
    ROW(active, r.renewed_ms = 0, "renewed_at is not positive");
    ROW(active, r.renewed_ms = -5, "renewed_at is not positive");
    ROW(active, r.expires_ms = 2000, "expires_at is not after renewed_at");
    ROW(active, r.expires_ms = 0, "expires_at is not after renewed_at");
    ROW(active, r.expires_ms = 2001, NULL);
    ROW(active, r.expires_ms = 2000 + INT64_MAX / GB_MS, NULL);
    ROW(active, r.expires_ms = 2001 + INT64_MAX / GB_MS, "is out of range");
    ROW(active, r.expires_ms = INT64_MAX, "is out of range");
    ROW(released, r.expires_ms = 1, "released, but expires_at is not 0");
    ROW(released, r.renewed_ms = 0, "renewed_at is not positive");
    ROW(released, r.version = 0, "version is out of range");
    ROW(observed, r.evidence_parts = 1, "incomplete");
    ROW(observed, r.evidence_parts = 2, "incomplete");
    ROW(observed, r.evidence.fingerprint = gb_bytes_c(""), "fingerprint is empty");
    ROW(observed, r.evidence.elapsed_ns = -1, "elapsed_ns is negative");
    ROW(observed, r.evidence.elapsed_ns = INT64_MAX, NULL);
    ROW(observed, r.evidence.generation = 0, "generation is out of range");
    ROW(observed, r.evidence.generation = UINT64_MAX, "generation is out of range");
    ROW(observed, r.evidence.generation = GB_LEASE_VERSION_MAX, NULL);
    for (size_t i = 0; i < n; i++) {
        struct gb_err err = gb_lease_row_check(&rows[i], gb_bytes_c("s"));
        assert_int_equal(err.code, says[i] == NULL ? GB_OK : GB_INVALID_CONFIG);
        if (says[i] == NULL) continue;
        if (strstr(err.message, says[i]) == NULL) fail_msg("row %zu: %s", i, err.message);
        assert_non_null(strstr(err.message, "lease s: corrupt row"));
    }
}

static void fingerprint_covers_the_tuple(void **state)
{
    (void)state;
    char base[GB_SHA256_HEX], other[GB_SHA256_HEX];
    struct gb_lease_row r = active();
    gb_lease_fingerprint(&r, base);
    r.acquired_ms = 5; /* no part of it */
    r.evidence_parts = 3;
    gb_lease_fingerprint(&r, other);
    assert_string_equal(base, other);
    struct gb_lease_row changed[] = {active(), active(), active(), active(), active(), active()};
    changed[0].key = gb_bytes_c("sa");
    changed[0].owner = gb_bytes_c("#1"); /* lengths keep them apart */
    changed[1].owner = gb_bytes_c("a#2");
    changed[2].version = 8;
    changed[3].renewed_ms = 2001;
    changed[4].expires_ms = 8001;
    changed[5].key = gb_bytes_c("S");
    for (size_t i = 0; i < 6; i++) {
        gb_lease_fingerprint(&changed[i], other);
        assert_string_not_equal(base, other);
    }
}

static void required_is_the_rows_own_duration(void **state)
{
    (void)state;
    struct gb_lease_row r = active();
    assert_int_equal(gb_lease_required_ns(&r), 6 * GB_SEC);
}

static void holder_is_a_copy(void **state)
{
    (void)state;
    struct gb_lease_holder h = {0};
    struct gb_lease_row r = active();
    struct gb_lease_endpoint e[] = {{gb_bytes_c("http"), gb_bytes_c("http://a")},
                                    {gb_bytes_c("x"), gb_bytes_c("")}};
    assert_int_equal(gb_lease_holder_set(&h, &r, e, 2).code, GB_OK);
    assert_string_equal(h.owner, "a#1");
    assert_int_equal(h.version, 7);
    assert_int_equal(h.endpoint_count, 2);
    assert_true(gb_bytes_equal_c(h.endpoints[0].url, "http://a"));
    assert_int_equal(h.endpoints[1].url.size, 0);
    r = released();
    assert_int_equal(gb_lease_holder_set(&h, &r, NULL, 0).code, GB_OK);
    assert_string_equal(h.owner, "");
    assert_null(h.endpoints);
    gb_lease_holder_deinit(&h);
    assert_null(h.owner);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(table_5_1),
        cmocka_unit_test(fingerprint_covers_the_tuple),
        cmocka_unit_test(required_is_the_rows_own_duration),
        cmocka_unit_test(holder_is_a_copy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
