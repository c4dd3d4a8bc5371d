#include "adapters/dynamodb/dynamodb_dlq.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "support/dynamodb_bench.h"
#include "support/oom.h"

/* The allocation ladder of each operation of the DLQ store, on a table whose pages hold one row:
 * every call ends once, with success or with an error that says "try again"; a success is whole, a
 * failure has done nothing that it does not count, and the next call does the rest. */

enum { ROWS = 4 };

static struct row {
    const char *id, *route;
    bool present;
} rows[ROWS];
static struct dynamodb_bench b;
static struct gb_dlq *store;
static struct gb_dlq_entry *written;
static unsigned removed;
static bool cut; /* the next write is applied, and its answer lost */
static char room[1024];

/* --- the table: row i failed at i + 1 --- */

static struct row *row_of(const struct gb_http_request *q)
{
    char id[16] = "";
    assert_true(dynamodb_bench_text(q, "\"PK\":{\"S\":\"DLQ#", id, sizeof id));
    for (size_t i = 0; i < ROWS; i++)
        if (strcmp(rows[i].id, id) == 0) return &rows[i];
    fail_msg("no such row: %s", id);
    return NULL;
}

static void item_of(const struct row *row, char *out, size_t size)
{
    int used = snprintf(out, size,
                        "{\"PK\":{\"S\":\"DLQ#%s\"},\"route_id\":{\"S\":\"%s\"},"
                        "\"envelope_json\":{\"S\":\"{\\\"id\\\":\\\"e\\\\n\\\"}\"},"
                        "\"last_error\":{\"S\":\"so\\n\"},\"attempts\":{\"N\":\"2\"},"
                        "\"extra_info\":{\"S\":\"{\\\"k\\\":1}\"},\"failed_at\":{\"N\":\"%d\"}}",
                        row->id, row->route, (int)(row - rows) + 1);
    assert_in_range(used, 1, size - 1);
}

static struct fake_http_answer refuse(const struct row *row)
{
    char item[512] = "";
    if (row->present) item_of(row, item, sizeof item);
    return dynamodb_bench_refusal(room, sizeof room, item);
}

static struct fake_http_answer serve_write(const struct gb_http_request *q)
{
    struct row *row = row_of(q);
    bool put = dynamodb_bench_is(q, "PutItem");
    static const char envelope[] = "\"envelope_json\":{\"S\":\"{\\\"id\\\":\\\"e\\\\n\\\"}\"}";
    if (put) assert_true(dynamodb_bench_has(q, envelope));
    if (row->present == put) return refuse(row);
    row->present = put;
    removed += !put;
    if (!cut) return dynamodb_bench_body("{}");
    cut = false;
    return dynamodb_bench_cut();
}

static struct fake_http_answer serve_get(const struct gb_http_request *q)
{
    char item[512];
    const struct row *row = row_of(q);
    if (!row->present) return dynamodb_bench_body("{}");
    item_of(row, item, sizeof item);
    (void)snprintf(room, sizeof room, "{\"Item\":%s}", item);
    return dynamodb_bench_body(room);
}

static bool matches(const struct row *row, const struct gb_http_request *q)
{
    char route[16];
    bool named = dynamodb_bench_text(q, "\":route\":{\"S\":\"", route, sizeof route);
    uint64_t since = dynamodb_bench_number(q, "\":since\":{\"N\":\"");
    bool all_times = dynamodb_bench_has(q, "\":since\":{\"N\":\"-"); /* the lowest number */
    return row->present && (!named || strcmp(row->route, route) == 0) &&
           (all_times || (uint64_t)(row - rows) + 1 >= since);
}

/* One row of the table, which may match or not, and the key behind which the next page begins. */
static struct fake_http_answer serve_page(const struct gb_http_request *q)
{
    char after[16] = "";
    char item[512] = "";
    char key[64] = "";
    size_t at = 0;
    if (dynamodb_bench_text(q, "\"ExclusiveStartKey\":{\"PK\":{\"S\":\"DLQ#", after, sizeof after))
        while (strcmp(rows[at++].id, after) != 0) assert_true(at < ROWS);
    while (at < ROWS && !rows[at].present) at++;
    bool shown = at < ROWS && matches(&rows[at], q);
    if (shown && !dynamodb_bench_has(q, "\"Select\":\"COUNT\""))
        item_of(&rows[at], item, sizeof item);
    if (at < ROWS) {
        (void)snprintf(key, sizeof key, ",\"LastEvaluatedKey\":{\"PK\":{\"S\":\"DLQ#%s\"}}",
                       rows[at].id);
    }
    (void)snprintf(room, sizeof room, "{\"Items\":[%s],\"Count\":%d%s}", item, shown ? 1 : 0, key);
    return dynamodb_bench_body(room);
}

static struct fake_http_answer serve(void *arg, const struct gb_http_request *q)
{
    (void)arg;
    dynamodb_bench_whole(q);
    if (dynamodb_bench_is(q, "GetItem")) return serve_get(q);
    if (dynamodb_bench_is(q, "Query") || dynamodb_bench_is(q, "Scan")) return serve_page(q);
    return serve_write(q);
}

/* --- set up --- */

static struct gb_err make_store(int64_t max_scan_pages)
{
    const struct gb_dynamodb_dlq_cfg cfg = {
        .reactor = b.r, .client = b.client, .table = "t", .max_scan_pages = max_scan_pages};
    struct gb_err err = gb_dynamodb_dlq_new(&cfg, &store);
    assert_int_equal(store != NULL, !gb_failed(err));
    return err;
}

static struct gb_err make_plain(void)
{
    return make_store(0);
}

static void make_entry(void)
{
    struct gb_envelope *e = NULL;
    assert_int_equal(gb_envelope_new(64, &e).code, GB_OK);
    assert_int_equal(gb_envelope_set_id(e, gb_bytes_c("e\n")).code, GB_OK);
    assert_int_equal(gb_dlq_entry_new(e, &written).code, GB_OK);
    gb_envelope_unref(e);
    (void)snprintf(written->id, sizeof written->id, "a");
    assert_int_equal(gb_dlq_set(&written->last_error, gb_bytes_c("so\n")).code, GB_OK);
    written->failed_at_ms = 1;
    written->attempts = 2;
}

static void open_bench(void)
{
    static const struct row all[ROWS] = {
        {"a", "r", true}, {"b", "r", true}, {"c", "r", true}, {"d", "s", true}};
    memcpy(rows, all, sizeof rows);
    store = NULL;
    removed = 0;
    cut = false;
    dynamodb_bench_open(&b, "{}");
    b.http.serve = serve;
    assert_int_equal(dynamodb_bench_client(&b, 3).code, GB_OK);
    make_entry();
}

static void close_bench(void)
{
    if (store != NULL) DYNAMODB_BENCH_CLOSE_STORE(&b, store);
    gb_dlq_entry_free(written);
    dynamodb_bench_close(&b);
}

static void constructor(void **state)
{
    (void)state;
    open_bench();
    dynamodb_bench_constructor(make_plain);
    close_bench();
}

/* --- operations: the code, after a look at what came with it --- */

static size_t present(void)
{
    size_t count = 0;
    for (size_t i = 0; i < ROWS; i++) count += rows[i].present;
    return count;
}

static enum gb_code write(void)
{
    struct gb_dlq_write q = {.entry = written};
    bool was = rows[0].present;
    store->ops->write(store, &q, dynamodb_bench_done, &b);
    dynamodb_bench_run(&b);
    if (q.op.result.code == GB_DUPLICATE_RECORD) {
        assert_true(rows[0].present);
        return GB_DUPLICATE_RECORD;
    }
    dynamodb_bench_check(&q.op);
    if (q.op.result.code == GB_OK) assert_true(rows[0].present && !was);
    return q.op.result.code;
}

static void check_entry(const struct gb_dlq_entry *e, const struct row *row)
{
    assert_string_equal(e->id, row->id);
    assert_string_equal(e->route_id, row->route);
    assert_string_equal(e->last_error, "so\n");
    assert_string_equal(e->extra_info, "{\"k\":1}");
    assert_string_equal(e->reason, "");
    assert_int_equal(e->attempts, 2);
    assert_int_equal(e->failed_at_ms, row - rows + 1);
    assert_true(gb_bytes_equal_c(e->envelope->id, "e\n"));
}

static enum gb_code get(void)
{
    struct gb_dlq_get q = {.id = "a"};
    store->ops->get(store, &q, dynamodb_bench_done, &b);
    dynamodb_bench_run(&b);
    dynamodb_bench_check(&q.op);
    assert_int_equal(q.entry != NULL, q.op.result.code == GB_OK);
    if (q.entry != NULL) check_entry(q.entry, &rows[0]);
    gb_dlq_entry_free(q.entry);
    return q.op.result.code;
}

static enum gb_code list(const char *route, size_t want)
{
    struct gb_dlq_list q = {.filter = {.route_id = route}};
    store->ops->list(store, &q, dynamodb_bench_done, &b);
    dynamodb_bench_run(&b);
    dynamodb_bench_check(&q.op);
    assert_int_equal(q.count, q.op.result.code == GB_OK ? want : 0);
    for (size_t i = 0; i < q.count; i++) {
        check_entry(q.entries[i], &rows[i]);
        gb_dlq_entry_free(q.entries[i]);
    }
    free(q.entries);
    return q.op.result.code;
}

static enum gb_code list_route(void)
{
    return list("r", 3);
}

static enum gb_code list_all(void)
{
    return list(NULL, ROWS);
}

static enum gb_code count(void)
{
    struct gb_dlq_count q = {.count = 7};
    store->ops->count(store, &q, dynamodb_bench_done, &b);
    dynamodb_bench_run(&b);
    dynamodb_bench_check(&q.op);
    if (q.op.result.code == GB_OK) assert_int_equal(q.count, ROWS);
    return q.op.result.code;
}

/* An answer that was lost, and can't be asked for again, leaves one row uncounted. */
static enum gb_code remove_rows(struct gb_dlq_delete *q)
{
    unsigned before = removed;
    store->ops->remove(store, q, dynamodb_bench_done, &b);
    dynamodb_bench_run(&b);
    dynamodb_bench_check(&q->op);
    uint64_t really = removed - before;
    if (q->op.result.code == GB_OK) {
        assert_int_equal(q->deleted, really);
    } else {
        assert_in_range(q->deleted, really == 0 ? 0 : really - 1, really);
    }
    return q->op.result.code;
}

static enum gb_code remove_ids(void)
{
    static const char *const ids[] = {"a", "", "c"};
    struct gb_dlq_delete q = {.ids = ids, .id_count = 3};
    enum gb_code code = remove_rows(&q);
    if (code == GB_OK) assert_false(rows[0].present || rows[2].present);
    assert_true(rows[1].present && rows[3].present);
    return code;
}

static enum gb_code remove_route(void)
{
    struct gb_dlq_delete q = {.filter = {.route_id = "r"}};
    enum gb_code code = remove_rows(&q);
    if (code == GB_OK) assert_int_equal(present(), 1);
    assert_true(rows[3].present);
    return code;
}

static enum gb_code remove_all(void)
{
    struct gb_dlq_delete q = {.filter = {.since_ms = 0}};
    enum gb_code code = remove_rows(&q);
    if (code == GB_OK) assert_int_equal(present(), 0);
    return code;
}

static enum gb_code remove_oldest(void)
{
    struct gb_dlq_delete q = {.filter = {.route_id = "r", .limit = 1}};
    size_t before = present();
    enum gb_code code = remove_rows(&q);
    if (code == GB_OK && before == ROWS) assert_false(rows[0].present);
    assert_true(present() + 1 >= before);
    for (size_t i = 1; i < ROWS; i++) assert_true(rows[i].present || !rows[i - 1].present);
    return code;
}

static const struct operation {
    const char *name;
    enum gb_code (*perform)(void);
    bool absent, cut; /* row "a" is not there; the first answer is lost */
} operations[] = {
    {"write", write, true, false},
    {"write, answer lost", write, true, true},
    {"write of what is there", write, false, false},
    {"get", get, false, false},
    {"list by route", list_route, false, false},
    {"list", list_all, false, false},
    {"count", count, false, false},
    {"remove by id", remove_ids, false, false},
    {"remove by id, answer lost", remove_ids, false, true},
    {"remove by route", remove_route, false, false},
    {"remove by route, answer lost", remove_route, false, true},
    {"remove all", remove_all, false, false},
    {"remove the oldest", remove_oldest, false, false},
};

/* True when no allocation failed. */
static bool failing_at(const void *arg, unsigned n)
{
    const struct operation *o = arg;
    open_bench();
    assert_int_equal(make_store(0).code, GB_OK);
    rows[0].present = !o->absent;
    if (!o->absent) written->failed_at_ms = 9; /* it is another's row that is there */
    cut = o->cut;
    gb_oom_fail_at(n);
    enum gb_code code = o->perform();
    bool whole = gb_oom_count() < n;
    gb_oom_off();
    bool duplicate = o->perform == write && !o->absent;
    if (whole) assert_int_equal(code, duplicate ? GB_DUPLICATE_RECORD : GB_OK);
    cut = false;
    enum gb_code again = o->perform();
    assert_true(again == GB_OK || (o->perform == write && again == GB_DUPLICATE_RECORD));
    close_bench();
    return whole;
}

static void each_operation(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof operations / sizeof operations[0]; i++) {
        unsigned n = gb_oom_ladder(failing_at, &operations[i]);
        print_message("%s: %u\n", operations[i].name, n - 1);
        assert_true(n > 5);
    }
}

/* Scans that end after each page: where the next one goes on may be forgotten, no row is. */
static bool purge_failing_at(const void *arg, unsigned n)
{
    (void)arg;
    struct gb_dlq_delete q = {.filter = {.since_ms = 3}};
    open_bench();
    assert_int_equal(make_store(1).code, GB_OK);
    gb_oom_fail_at(n);
    for (int i = 0; i < 3; i++) (void)remove_rows(&q);
    bool whole = gb_oom_count() < n;
    gb_oom_off();
    for (int i = 0; i < 10; i++) assert_int_equal(remove_rows(&q), GB_OK);
    assert_true(rows[0].present && rows[1].present && !rows[2].present && !rows[3].present);
    close_bench();
    return whole;
}

static void purge_in_pieces(void **state)
{
    (void)state;
    assert_true(gb_oom_ladder(purge_failing_at, NULL) > 20);
}

int main(void)
{
    dynamodb_bench_quiet();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(constructor),
        cmocka_unit_test(each_operation),
        cmocka_unit_test(purge_in_pieces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
