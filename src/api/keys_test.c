#include "api/keys.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define ADMIN "0123456789abcdef"
#define MONITOR "fedcba9876543210"
static const uint64_t second = 1000000000ull;

static struct gb_keys *keys_of(const char *first, const char *other)
{
    struct gb_keys *k = NULL;
    assert_false(gb_failed(gb_keys_new((const char *const[]){first, other}, 2, &k)));
    return k;
}

static void either_header_may_match(void **state)
{
    (void)state;
    struct gb_keys *k =
        keys_of(ADMIN, "{\"ops\": \"" MONITOR "\", \"ci\": \"\\u0041aaaaaaaaaaaaaaa\"}");
    assert_int_equal(gb_keys_check(k, ADMIN, NULL, "a", 0), GB_KEYS_OK);
    assert_int_equal(gb_keys_check(k, MONITOR, NULL, "a", 0), GB_KEYS_OK);
    assert_int_equal(gb_keys_check(k, "Aaaaaaaaaaaaaaaa", NULL, "a", 0), GB_KEYS_OK);
    assert_int_equal(gb_keys_check(k, NULL, "Bearer " ADMIN, "a", 0), GB_KEYS_OK);
    assert_int_equal(gb_keys_check(k, "wrong", "bearer " MONITOR, "a", 0), GB_KEYS_OK);
    assert_int_equal(gb_keys_check(k, NULL, NULL, "a", 0), GB_KEYS_REFUSED);
    assert_int_equal(gb_keys_check(k, "", "Basic " ADMIN, "a", 0), GB_KEYS_REFUSED);
    assert_int_equal(gb_keys_check(k, ADMIN "x", ADMIN, "a", 0), GB_KEYS_REFUSED);
    gb_keys_free(k);
}

static void no_key_opens_nothing(void **state)
{
    (void)state;
    struct gb_keys *k = keys_of(NULL, "");
    assert_false(gb_keys_any(k));
    assert_int_equal(gb_keys_check(k, "", "Bearer ", "a", 0), GB_KEYS_REFUSED);
    gb_keys_free(k);
}

static void bad_sets(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "short",
        "{",
        "{}x",
        "{\"a\": 1}",
        "{\"a\"}",
        "{\"a\": \"short\"}",
        "{\"\": \"" ADMIN "\"}",
        "{\"A\": \"" ADMIN "\"}",
        "{\"a\": \"" ADMIN "\"",
        "{\"a\": \"" ADMIN "\"} {}",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct gb_keys *k = NULL;
        struct gb_err err = gb_keys_new(&bad[i], 1, &k);
        if (err.code != GB_INVALID_CONFIG || k != NULL) fail_msg("%s was accepted", bad[i]);
        assert_null(strstr(err.message, ADMIN));
    }
}

static void failing_peers_are_slowed(void **state)
{
    (void)state;
    struct gb_keys *k = keys_of(ADMIN, NULL);
    for (int i = 0; i < 5; i++)
        assert_int_equal(gb_keys_check(k, "x", NULL, "a", second), GB_KEYS_REFUSED);
    assert_int_equal(gb_keys_check(k, "x", NULL, "a", second), GB_KEYS_THROTTLED);
    assert_int_equal(gb_keys_check(k, "x", NULL, "b", second), GB_KEYS_REFUSED);
    assert_int_equal(gb_keys_check(k, "x", NULL, "a", 60 * second), GB_KEYS_THROTTLED);
    assert_int_equal(gb_keys_check(k, "x", NULL, "a", 61 * second), GB_KEYS_REFUSED);
    for (int i = 0; i < 4; i++) (void)gb_keys_check(k, "x", NULL, "a", 61 * second);
    assert_int_equal(gb_keys_check(k, "x", NULL, "a", 61 * second), GB_KEYS_THROTTLED);
    assert_int_equal(gb_keys_check(k, ADMIN, NULL, "a", 61 * second), GB_KEYS_OK);
    assert_int_equal(gb_keys_check(k, "x", NULL, "a", 61 * second), GB_KEYS_REFUSED);
    gb_keys_free(k);
}

static void peers_are_bounded(void **state)
{
    (void)state;
    struct gb_keys *k = keys_of(ADMIN, NULL);
    char name[16];
    for (int i = 0; i < 6; i++) (void)gb_keys_check(k, "x", NULL, "first", second);
    assert_int_equal(gb_keys_check(k, "x", NULL, "first", second), GB_KEYS_THROTTLED);
    for (int i = 0; i < 10000; i++) {
        (void)snprintf(name, sizeof name, "%d", i);
        (void)gb_keys_check(k, "x", NULL, name, second);
    }
    assert_int_equal(gb_keys_check(k, "x", NULL, "first", second), GB_KEYS_REFUSED);
    gb_keys_free(k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(either_header_may_match),
        cmocka_unit_test(no_key_opens_nothing),
        cmocka_unit_test(bad_sets),
        cmocka_unit_test(failing_peers_are_slowed),
        cmocka_unit_test(peers_are_bounded),
    };
    return cmocka_run_group_tests_name("keys", tests, NULL, NULL);
}
