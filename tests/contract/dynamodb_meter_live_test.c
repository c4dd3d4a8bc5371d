#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "adapters/dynamodb/dynamodb_meter.h"
#include "base/duration.h"
#include "base/log.h"
#include "contract/dynamodb_driver.h"
#include "contract/dynamodb_rig.h"

/* Our meter beside what dynoxide reports, write for write and read for read: a random walk of puts,
 * updates and deletes over a few items that enter, leave and change two indexes, alone and in
 * transactions. */

enum { KEYS = 5, STEPS = 400, NAME_SIZE = 16 };

static struct fixture {
    struct dynamodb_rig *rig;
    struct dynamodb_driver driver;
    struct gb_dynamodb_call call;
    char table[DYNAMODB_TABLE_SIZE];
    struct gb_str items[KEYS]; /* as they are stored; empty: not there */
    uint64_t random;
} f;

static const struct gb_dynamodb_table shape = {
    .hash = {"PK", GB_DYNAMODB_S},
    .indexes = {{"All", {"hash", GB_DYNAMODB_S}, {"sort", GB_DYNAMODB_N}, GB_DYNAMODB_ALL},
                {"Keys", {"sort", GB_DYNAMODB_N}, {NULL, GB_DYNAMODB_S}, GB_DYNAMODB_KEYS_ONLY}},
    .index_count = 2,
};

static unsigned below(unsigned bound)
{
    f.random = f.random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)(f.random >> 33) % bound;
}

/* The members of a random item, without braces. */
static void write_item(struct gb_json_writer *w, unsigned key)
{
    static const size_t fillers[] = {0, 10, 700, 990, 1000, 1100, 2100, 5000};
    static const char *const numbers[] = {"1", "-12.5", "1234567890123456789012", "100"};
    char name[NAME_SIZE];
    struct gb_str filler = {0};
    (void)snprintf(name, sizeof name, "key-%u", key);
    size_t size = fillers[below(8)];
    for (size_t i = 0; i < size; i++) gb_str_append_char(&filler, i % 50 == 0 ? '\n' : 'x');
    gb_dynamodb_w_s_c(w, "PK", name);
    if (below(3) > 0) gb_dynamodb_w_s_c(w, "hash", below(2) == 0 ? "a" : "b");
    if (below(3) > 0) gb_dynamodb_w_n(w, "sort", gb_bytes_c(numbers[below(4)]));
    if (below(2) == 0) gb_dynamodb_w_bool(w, "flag", below(2) == 0);
    if (below(2) == 0) {
        gb_dynamodb_w_map(w, "map");
        gb_dynamodb_w_null(w, "none");
        gb_dynamodb_w_b(w, "bytes", gb_str_bytes(&filler));
        gb_dynamodb_w_map_end(w);
    }
    gb_dynamodb_w_s(w, "filler", gb_str_bytes(&filler));
    gb_str_deinit(&filler);
}

static void make_item(struct gb_str *out, unsigned key)
{
    struct gb_json_writer w;
    gb_str_clear(out);
    gb_json_w_init(&w, out);
    gb_json_w_object(&w);
    write_item(&w, key);
    gb_json_w_object_end(&w);
}

/* --- one write --- */

static void write_key(unsigned key)
{
    char name[NAME_SIZE];
    (void)snprintf(name, sizeof name, "key-%u", key);
    gb_dynamodb_object(&f.call, GB_DYNAMODB_KEY);
    gb_dynamodb_w_s_c(&f.call.w, "PK", name);
    gb_dynamodb_object_end(&f.call);
}

static void write_put(const struct gb_str *item)
{
    gb_json_w_key(&f.call.w, "Item");
    gb_json_w_raw(&f.call.w, gb_str_bytes(item));
}

static void begin(enum gb_dynamodb_action action, bool in_transaction)
{
    if (!in_transaction) {
        gb_dynamodb_begin(&f.call, action, f.table);
        return;
    }
    gb_dynamodb_begin(&f.call, GB_DYNAMODB_TRANSACT_WRITE_ITEMS, NULL);
    gb_dynamodb_action(&f.call, action, f.table);
}

static struct gb_dynamodb_usage so_far(void)
{
    return gb_dynamodb_usage_sum(f.driver.client, NULL, GB_DYNAMODB_ACTIONS);
}

struct index_sum {
    uint64_t table, index[2];
};

static void add_index(void *arg, const struct gb_dynamodb_usage *u)
{
    struct index_sum *sum = arg;
    if (u->index[0] == '\0') sum->table += u->write_units;
    for (size_t i = 0; i < 2; i++) {
        if (strcmp(u->index, shape.indexes[i].name) == 0) sum->index[i] += u->write_units;
    }
}

static struct index_sum by_index(void)
{
    struct index_sum sum = {0};
    gb_dynamodb_usage_visit(f.driver.client, add_index, &sum);
    return sum;
}

static void run(void)
{
    if (dynamodb_driver_run(&f.driver, &f.call) != GB_OK) fail_msg("%s", f.call.op.result.message);
}

static void step(unsigned n)
{
    unsigned key = below(KEYS);
    bool in_transaction = below(3) == 0;
    bool deletes = below(4) == 0;
    struct gb_str *stored = &f.items[key];
    struct gb_str next = {0};
    struct gb_dynamodb_units want = {0};
    if (below(8) == 0) {
        gb_str_append(&next, gb_str_bytes(stored)); /* the same once more */
        deletes = stored->size == 0;
    } else if (!deletes) {
        make_item(&next, key);
    }
    struct index_sum before = by_index();
    begin(deletes ? GB_DYNAMODB_DELETE_ITEM : GB_DYNAMODB_PUT_ITEM, in_transaction);
    if (deletes) write_key(key);
    if (!deletes) write_put(&next);
    if (in_transaction) gb_dynamodb_action_end(&f.call);
    run();
    struct index_sum after = by_index();
    assert_int_equal(gb_dynamodb_meter_write(&shape, gb_str_bytes(stored), gb_str_bytes(&next),
                                             in_transaction, &want)
                         .code,
                     GB_OK);
    if (after.table - before.table != want.table ||
        after.index[0] - before.index[0] != want.index[0] ||
        after.index[1] - before.index[1] != want.index[1]) {
        fail_msg("step %u: table %llu for %llu, indexes %llu for %llu, %llu for %llu\n%s\n%s", n,
                 (unsigned long long)want.table, (unsigned long long)(after.table - before.table),
                 (unsigned long long)want.index[0],
                 (unsigned long long)(after.index[0] - before.index[0]),
                 (unsigned long long)want.index[1],
                 (unsigned long long)(after.index[1] - before.index[1]),
                 stored->size == 0 ? "" : stored->data, next.size == 0 ? "" : next.data);
    }
    gb_str_deinit(stored);
    *stored = next;
}

/* --- reads --- */

static void check_reads(void)
{
    uint64_t all = 0;
    for (unsigned key = 0; key < KEYS; key++) {
        for (int consistent = 0; consistent < 2; consistent++) {
            size_t bytes = 0;
            struct gb_bytes item = gb_str_bytes(&f.items[key]);
            if (item.size > 0) assert_int_equal(gb_dynamodb_item_size(item, &bytes).code, GB_OK);
            uint64_t before = so_far().read_units;
            gb_dynamodb_begin(&f.call, GB_DYNAMODB_GET_ITEM, f.table);
            write_key(key);
            if (consistent == 1) gb_dynamodb_flag(&f.call, GB_DYNAMODB_CONSISTENT_READ);
            run();
            assert_int_equal(so_far().read_units - before,
                             gb_dynamodb_meter_read(bytes, consistent == 1 ? GB_DYNAMODB_CONSISTENT
                                                                           : GB_DYNAMODB_EVENTUAL));
            all += consistent == 1 ? bytes : 0;
        }
    }
    uint64_t before = so_far().read_units;
    gb_dynamodb_begin(&f.call, GB_DYNAMODB_SCAN, f.table);
    run();
    assert_int_equal(so_far().read_units - before,
                     gb_dynamodb_meter_read(all, GB_DYNAMODB_EVENTUAL));
}

static void meter_agrees(void **state)
{
    (void)state;
    const struct dynamodb_driver_cfg cfg = {.endpoint = dynamodb_rig_endpoint(f.rig)};
    dynamodb_driver_open(&f.driver, &cfg);
    dynamodb_rig_table(f.rig, "meter", f.table);
    gb_dynamodb_begin(&f.call, GB_DYNAMODB_CREATE_TABLE, f.table);
    gb_dynamodb_w_table(&f.call.w, &shape);
    run();
    f.random = 20261201;
    for (unsigned n = 0; n < STEPS; n++) {
        step(n);
        if (n % 50 == 0) check_reads();
    }
    assert_true(so_far().write_units > STEPS * UINT64_C(1000));
    for (unsigned key = 0; key < KEYS; key++) gb_str_deinit(&f.items[key]);
    gb_dynamodb_call_deinit(&f.call);
    dynamodb_driver_close(&f.driver);
}

int main(void)
{
    f.rig = dynamodb_rig_new();
    if (f.rig == NULL) return DYNAMODB_RIG_SKIP;
    int failed = DYNAMODB_RIG_SKIP; /* moto's figures are constants */
    if (dynamodb_rig_is(f.rig, "dynoxide")) {
        const struct CMUnitTest tests[] = {cmocka_unit_test(meter_agrees)};
        failed = cmocka_run_group_tests(tests, NULL, NULL);
    }
    dynamodb_rig_free(f.rig);
    return failed;
}
