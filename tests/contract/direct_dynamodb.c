#include "contract/direct_dynamodb.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/duration.h"

#define ATTEMPT_NS (2 * GB_SEC)

struct direct_bench direct_bench;

static struct outbox_backend *const first = &direct_bench.backend[0];
static struct outbox_backend *const second = &direct_bench.backend[1];

static int direct_set_up_with(size_t direct_max)
{
    direct_bench.dynamodb[0] = (struct outbox_dynamodb){.rig = direct_bench.rig,
                                                        .direct = true,
                                                        .direct_max = direct_max,
                                                        .through_proxy = true,
                                                        .attempt_timeout_ns = ATTEMPT_NS};
    *first = (struct outbox_backend){.ctx = &direct_bench.dynamodb[0]};
    outbox_dynamodb_set_up(first, 0);
    direct_bench.two = false;
    return 0;
}

int direct_set_up(void **state)
{
    (void)state;
    return direct_set_up_with(0);
}

int direct_set_up_small(void **state)
{
    (void)state;
    return direct_set_up_with(3);
}

void direct_open_second(void)
{
    *second = (struct outbox_backend){.ctx = &direct_bench.dynamodb[1]};
    outbox_dynamodb_share(second, first);
    direct_bench.two = true;
}

int direct_tear_down(void **state)
{
    (void)state;
    dynamodb_rig_clear(direct_bench.rig);
    gb_dynamodb_call_deinit(&direct_bench.call);
    direct_bench.call = (struct gb_dynamodb_call){0};
    if (direct_bench.two) STORE_CLOSE(&second->driver, second->store);
    outbox_dynamodb_tear_down(first);
    outbox_records_free();
    return 0;
}

void direct_pass(int64_t ms)
{
    first->driver.wall_ms += ms;
    if (direct_bench.two) second->driver.wall_ms += ms;
}

struct outbox_spec direct_spec(const char *envelope_id, const char *key)
{
    return (struct outbox_spec){
        .envelope_id = envelope_id, .binding_id = "b1", .session_id = "s1", .key = key};
}

void direct_store(struct outbox_backend *b, const char *envelope_id)
{
    struct outbox_spec spec = direct_spec(envelope_id, NULL);
    assert_int_equal(outbox_store(b, &spec), GB_OK);
    direct_pass(1);
}

/* A claim that leaves the partition empty and `owner` its holder. */
void direct_own(struct outbox_backend *b, const char *owner, uint64_t version)
{
    outbox_claim_is(b, DIRECT_S1, owner, version, 10, "");
}

/* --- what the table holds --- */

static struct gb_bytes direct_row(const char *envelope_id)
{
    char sort_key[64];
    (void)snprintf(sort_key, sizeof sort_key, "OUTBOX#%s#b1", envelope_id);
    struct gb_bytes item =
        outbox_dynamodb_get(&direct_bench.dynamodb[0], &direct_bench.call, DIRECT_S1, sort_key);
    assert_true(item.size > 0);
    return item;
}

bool direct_has(const char *envelope_id, const char *what)
{
    struct gb_bytes item = direct_row(envelope_id);
    for (size_t i = 0; i + strlen(what) <= item.size; i++) {
        if (memcmp(item.data + i, what, strlen(what)) == 0) return true;
    }
    return false;
}

/* Either in all of the usual layout, or in none of it. */
bool direct_is(const char *envelope_id)
{
    bool direct = direct_has(envelope_id, "\"rid\"");
    assert_int_equal(!direct, direct_has(envelope_id, "\"claim_sort\""));
    assert_int_equal(!direct, direct_has(envelope_id, "\"record_id\""));
    assert_int_equal(!direct, direct_has(envelope_id, "\"envelope_json\""));
    assert_int_equal(direct, direct_has(envelope_id, "\"env\""));
    assert_int_equal(direct, direct_has(envelope_id, "\"body\""));
    return direct;
}
