#include "contract/lease_contract.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/duration.h"

static struct lease_backend *backend; /* of this executable; cmocka hands tests no argument */
static struct gb_err last_error;
static struct gb_lease_current last_current;

static const struct gb_lease_endpoint endpoints[] = {
    {{(const uint8_t *)"http", 4}, {(const uint8_t *)"http://10.0.0.1:8082", 20}},
    {{(const uint8_t *)"caf\xC3\xA9", 5}, {(const uint8_t *)"\"x\"", 3}},
};

enum gb_code lease_acquire(struct lease_backend *b, const char *id, const char *owner,
                           int64_t ttl_ns, uint64_t *version, struct gb_lease_holder *seen)
{
    struct gb_lease_acquire q = {
        .lease_id = gb_bytes_c(id),
        .owner = gb_bytes_c(owner),
        .ttl_ns = ttl_ns,
        .endpoints = endpoints,
        .endpoint_count = 2,
    };
    store_driver_expect(&b->driver);
    b->store->ops->acquire(b->store, &q, store_driver_done, &b->driver);
    store_driver_run(&b->driver);
    if (version != NULL) *version = q.version;
    if (seen != NULL) {
        gb_lease_holder_deinit(seen);
        *seen = q.seen;
    } else {
        gb_lease_holder_deinit(&q.seen);
    }
    last_error = q.op.result;
    return q.op.result.code;
}

enum gb_code lease_renew(struct lease_backend *b, const char *id, const char *owner,
                         uint64_t version, int64_t ttl_ns)
{
    struct gb_lease_renew q = {
        .lease_id = gb_bytes_c(id),
        .token = {gb_bytes_c(owner), version},
        .ttl_ns = ttl_ns,
        .endpoints = endpoints,
        .endpoint_count = 1,
    };
    store_driver_expect(&b->driver);
    b->store->ops->renew(b->store, &q, store_driver_done, &b->driver);
    store_driver_run(&b->driver);
    last_error = q.op.result;
    return q.op.result.code;
}

enum gb_code lease_release(struct lease_backend *b, const char *id, const char *owner,
                           uint64_t version)
{
    struct gb_lease_release q = {.lease_id = gb_bytes_c(id), .token = {gb_bytes_c(owner), version}};
    store_driver_expect(&b->driver);
    b->store->ops->release(b->store, &q, store_driver_done, &b->driver);
    store_driver_run(&b->driver);
    last_error = q.op.result;
    return q.op.result.code;
}

enum gb_code lease_current(struct lease_backend *b, const char *id,
                           const struct gb_lease_holder **holder)
{
    gb_lease_holder_deinit(&last_current.holder);
    last_current = (struct gb_lease_current){.lease_id = gb_bytes_c(id)};
    store_driver_expect(&b->driver);
    b->store->ops->current(b->store, &last_current, store_driver_done, &b->driver);
    store_driver_run(&b->driver);
    if (holder != NULL) *holder = &last_current.holder;
    last_error = last_current.op.result;
    return last_error.code;
}

const char *lease_message(void)
{
    return last_error.message;
}

static int set_up(void **state)
{
    backend->set_up(backend);
    *state = backend;
    return 0;
}

static int tear_down(void **state)
{
    struct lease_backend *b = *state;
    gb_lease_holder_deinit(&last_current.holder);
    b->tear_down(b);
    return 0;
}

static void check_05_26_versions_only_grow(void **state)
{
    struct lease_backend *b = *state;
    uint64_t version = 0;
    assert_int_equal(lease_current(b, "s", NULL), GB_NOT_FOUND);
    for (uint64_t i = 1; i <= 3; i++) {
        assert_int_equal(lease_acquire(b, "s", "a#1", GB_MINUTE, &version, NULL), GB_OK);
        assert_int_equal(version, i);
        assert_int_equal(lease_release(b, "s", "a#1", version), GB_OK);
        assert_int_equal(lease_current(b, "s", NULL), GB_NOT_FOUND);
    }
    assert_int_equal(lease_acquire(b, "s", "b#1", GB_MINUTE, &version, NULL), GB_OK);
    assert_int_equal(version, 4);
    assert_int_equal(lease_acquire(b, "other", "b#1", GB_MINUTE, &version, NULL), GB_OK);
    assert_int_equal(version, 1);
}

static void the_holder_is_shown(void **state)
{
    struct lease_backend *b = *state;
    const struct gb_lease_holder *h;
    assert_int_equal(lease_acquire(b, "s", "a#1", 45 * GB_SEC, NULL, NULL), GB_OK);
    assert_int_equal(lease_current(b, "s", &h), GB_OK);
    assert_string_equal(h->owner, "a#1");
    assert_int_equal(h->version, 1);
    assert_int_equal(h->expires_ms - h->renewed_ms, 45000);
    assert_int_equal(h->acquired_ms, h->renewed_ms);
    assert_int_equal(h->endpoint_count, 2);
    for (size_t i = 0; i < 2; i++) { /* in whichever order */
        size_t k = gb_bytes_equal(h->endpoints[i].capability, endpoints[0].capability) ? 0 : 1;
        assert_true(gb_bytes_equal(h->endpoints[i].capability, endpoints[k].capability));
        assert_true(gb_bytes_equal(h->endpoints[i].url, endpoints[k].url));
    }
    assert_false(gb_bytes_equal(h->endpoints[0].url, h->endpoints[1].url));
}

static void renewing_keeps_the_version(void **state)
{
    struct lease_backend *b = *state;
    const struct gb_lease_holder *h;
    assert_int_equal(lease_acquire(b, "s", "a#1", GB_MINUTE, NULL, NULL), GB_OK);
    assert_int_equal(lease_renew(b, "s", "a#1", 1, 90 * GB_SEC), GB_OK);
    assert_int_equal(lease_current(b, "s", &h), GB_OK);
    assert_int_equal(h->version, 1);
    assert_int_equal(h->expires_ms - h->renewed_ms, 90000);
    assert_int_equal(h->endpoint_count, 1);
}

/* Spec 06 §6.2. */
static void lost_leases_are_told_apart(void **state)
{
    struct lease_backend *b = *state;
    assert_int_equal(lease_renew(b, "s", "a#1", 1, GB_MINUTE), GB_NOT_FOUND);
    assert_int_equal(lease_release(b, "s", "a#1", 1), GB_NOT_FOUND);
    assert_int_equal(lease_acquire(b, "s", "a#1", GB_MINUTE, NULL, NULL), GB_OK);
    assert_int_equal(lease_renew(b, "s", "b#1", 1, GB_MINUTE), GB_STALE_FENCING_TOKEN);
    assert_int_equal(lease_renew(b, "s", "a#1", 2, GB_MINUTE), GB_STALE_FENCING_TOKEN);
    assert_int_equal(lease_renew(b, "s", "a", 1, GB_MINUTE), GB_STALE_FENCING_TOKEN);
    assert_int_equal(lease_release(b, "s", "b#1", 1), GB_STALE_FENCING_TOKEN);
    assert_int_equal(lease_release(b, "s", "a#1", 2), GB_STALE_FENCING_TOKEN);
    assert_int_equal(lease_renew(b, "s", "a#1", 1, GB_MINUTE), GB_OK);
    assert_int_equal(lease_release(b, "s", "a#1", 1), GB_OK);
    assert_int_equal(lease_renew(b, "s", "a#1", 1, GB_MINUTE), GB_NOT_FOUND);
    assert_int_equal(lease_release(b, "s", "a#1", 1), GB_NOT_FOUND);
}

static void the_own_token_takes_at_once(void **state)
{
    struct lease_backend *b = *state;
    uint64_t version = 0;
    assert_int_equal(lease_acquire(b, "s", "a#1", GB_MINUTE, &version, NULL), GB_OK);
    assert_int_equal(lease_acquire(b, "s", "a#1", GB_MINUTE, &version, NULL), GB_OK);
    assert_int_equal(version, 2);
    assert_int_equal(lease_renew(b, "s", "a#1", 1, GB_MINUTE), GB_STALE_FENCING_TOKEN);
}

/* Equal instance ids, another boot: the whole token counts (spec 06 §2). */
static void another_boot_is_another_owner(void **state)
{
    struct lease_backend *b = *state;
    struct gb_lease_holder seen = {0};
    uint64_t version = 0;
    assert_int_equal(lease_acquire(b, "s", "a#1", GB_MINUTE, &version, NULL), GB_OK);
    enum gb_code code = lease_acquire(b, "s", "a#2", GB_MINUTE, &version, &seen);
    assert_int_equal(code, b->local ? GB_OK : GB_ALREADY_EXISTS);
    if (b->local) assert_int_equal(version, 2);
    assert_string_equal(seen.owner, "a#1");
    assert_int_equal(seen.version, 1);
    assert_int_equal(lease_renew(b, "s", "a#1", 1, GB_MINUTE),
                     b->local ? GB_STALE_FENCING_TOKEN : GB_OK);
    gb_lease_holder_deinit(&seen);
}

static void bad_requests(void **state)
{
    struct lease_backend *b = *state;
    assert_int_equal(lease_acquire(b, "s", "", GB_MINUTE, NULL, NULL), GB_INVALID_CONFIG);
    assert_int_equal(lease_acquire(b, "", "a#1", GB_MINUTE, NULL, NULL), GB_INVALID_CONFIG);
    assert_int_equal(lease_acquire(b, "s", "a#1", 0, NULL, NULL), GB_INVALID_CONFIG);
    assert_int_equal(lease_acquire(b, "s", "a#1", -1, NULL, NULL), GB_INVALID_CONFIG);
    assert_int_equal(lease_renew(b, "s", "a#1", 1, 0), GB_INVALID_CONFIG);
    assert_int_equal(lease_renew(b, "s", "", 1, GB_MINUTE), GB_INVALID_CONFIG);
    assert_int_equal(lease_current(b, "s", NULL), GB_NOT_FOUND); /* nothing was written */
}

static void versions_survive(void **state)
{
    struct lease_backend *b = *state;
    uint64_t version = 0;
    if (!b->durable) return;
    assert_int_equal(lease_acquire(b, "s", "a#1", GB_MINUTE, &version, NULL), GB_OK);
    assert_int_equal(lease_release(b, "s", "a#1", 1), GB_OK);
    b->reopen(b);
    assert_int_equal(lease_acquire(b, "s", "a#2", GB_MINUTE, &version, NULL), GB_OK);
    assert_int_equal(version, 2);
}

int lease_contract_run(struct lease_backend *b)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(check_05_26_versions_only_grow),
        TEST(the_holder_is_shown),
        TEST(renewing_keeps_the_version),
        TEST(lost_leases_are_told_apart),
        TEST(the_own_token_takes_at_once),
        TEST(another_boot_is_another_owner),
        TEST(bad_requests),
        TEST(versions_survive),
    };
#undef TEST
    backend = b;
    return cmocka_run_group_tests_name(b->name, tests, NULL, NULL);
}
