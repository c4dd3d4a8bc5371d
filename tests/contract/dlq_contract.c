#include "contract/dlq_contract.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MANY = 350 };

static struct dlq_backend *backend; /* of this executable; cmocka hands tests no argument */

static int set_up(void **state)
{
    backend->set_up(backend);
    *state = backend;
    return 0;
}

static int set_up_small(void **state)
{
    backend->set_up_small(backend);
    *state = backend;
    return 0;
}

static int tear_down(void **state)
{
    struct dlq_backend *b = *state;
    b->tear_down(b);
    return 0;
}

/* --- calls that wait --- */

struct gb_dlq_entry *dlq_entry(const char *id, const char *route, const char *category,
                               int64_t failed_at_ms)
{
    struct gb_envelope *envelope = NULL;
    assert_int_equal(gb_envelope_new(64, &envelope).code, GB_OK);
    assert_int_equal(gb_envelope_set_id(envelope, gb_bytes_c(id)).code, GB_OK);
    assert_int_equal(gb_envelope_set_payload(envelope, gb_bytes_c("payload")).code, GB_OK);
    struct gb_dlq_entry *e = NULL;
    assert_int_equal(gb_dlq_entry_new(envelope, &e).code, GB_OK);
    gb_envelope_unref(envelope);
    (void)snprintf(e->id, sizeof e->id, "%s", id);
    assert_int_equal(gb_dlq_set(&e->route_id, gb_bytes_c(route)).code, GB_OK);
    assert_int_equal(gb_dlq_set(&e->category, gb_bytes_c(category)).code, GB_OK);
    e->failed_at_ms = failed_at_ms;
    return e;
}

enum gb_code dlq_write(struct dlq_backend *b, const struct gb_dlq_entry *entry)
{
    struct gb_dlq_write q = {.entry = entry};
    store_driver_expect(&b->driver);
    b->store->ops->write(b->store, &q, store_driver_done, &b->driver);
    store_driver_run(&b->driver);
    return q.op.result.code;
}

enum gb_code dlq_store(struct dlq_backend *b, const char *id, const char *route,
                       const char *category, int64_t failed_at_ms)
{
    struct gb_dlq_entry *e = dlq_entry(id, route, category, failed_at_ms);
    enum gb_code code = dlq_write(b, e);
    gb_dlq_entry_free(e);
    return code;
}

struct gb_dlq_entry *dlq_get(struct dlq_backend *b, const char *id, enum gb_code *code)
{
    struct gb_dlq_get q = {.id = id};
    store_driver_expect(&b->driver);
    b->store->ops->get(b->store, &q, store_driver_done, &b->driver);
    store_driver_run(&b->driver);
    *code = q.op.result.code;
    assert_true((q.entry != NULL) == (*code == GB_OK));
    return q.entry;
}

static struct gb_dlq_list list(struct dlq_backend *b, const struct gb_dlq_filter *filter)
{
    struct gb_dlq_list q = {.filter = *filter};
    store_driver_expect(&b->driver);
    b->store->ops->list(b->store, &q, store_driver_done, &b->driver);
    store_driver_run(&b->driver);
    assert_int_equal(q.op.result.code, GB_OK);
    return q;
}

static void list_free(struct gb_dlq_list *q)
{
    for (size_t i = 0; i < q->count; i++) gb_dlq_entry_free(q->entries[i]);
    free(q->entries);
}

void dlq_list_is(struct dlq_backend *b, const struct gb_dlq_filter *filter, const char *want)
{
    struct gb_dlq_list q = list(b, filter);
    char got[1024] = "";
    size_t size = 0;
    for (size_t i = 0; i < q.count; i++) {
        int added =
            snprintf(got + size, sizeof got - size, "%s%s", i == 0 ? "" : " ", q.entries[i]->id);
        size += (size_t)added;
        assert_true(size < sizeof got);
    }
    list_free(&q);
    assert_string_equal(got, want);
}

size_t dlq_list_count(struct dlq_backend *b, const struct gb_dlq_filter *filter)
{
    struct gb_dlq_list q = list(b, filter);
    size_t count = q.count;
    list_free(&q);
    return count;
}

static uint64_t run_delete(struct dlq_backend *b, struct gb_dlq_delete *q)
{
    store_driver_expect(&b->driver);
    b->store->ops->remove(b->store, q, store_driver_done, &b->driver);
    store_driver_run(&b->driver);
    assert_int_equal(q->op.result.code, GB_OK);
    return q->deleted;
}

uint64_t dlq_delete(struct dlq_backend *b, const char *const *ids, size_t count)
{
    struct gb_dlq_delete q = {.ids = ids, .id_count = count};
    return run_delete(b, &q);
}

uint64_t dlq_delete_matches(struct dlq_backend *b, const struct gb_dlq_filter *filter)
{
    struct gb_dlq_delete q = {.filter = *filter};
    return run_delete(b, &q);
}

uint64_t dlq_count(struct dlq_backend *b)
{
    struct gb_dlq_count q = {0};
    store_driver_expect(&b->driver);
    b->store->ops->count(b->store, &q, store_driver_done, &b->driver);
    store_driver_run(&b->driver);
    assert_int_equal(q.op.result.code, GB_OK);
    return q.count;
}

/* --- checks --- */

static void check_05_14_one_row_per_event(void **state)
{
    struct dlq_backend *b = *state;
    struct gb_dlq_entry *e = dlq_entry("env", "route", "permanent", 100);
    gb_dlq_entry_derive_id(e);
    assert_int_equal(dlq_write(b, e), GB_OK);
    struct gb_dlq_entry *again = dlq_entry("env", "route", "transient", 200);
    gb_dlq_entry_derive_id(again);
    assert_string_equal(again->id, e->id);
    assert_int_equal(dlq_write(b, again), GB_DUPLICATE_RECORD);
    enum gb_code code = GB_OK;
    struct gb_dlq_entry *got = dlq_get(b, e->id, &code);
    assert_int_equal(got->failed_at_ms, 100); /* untouched */
    assert_string_equal(got->category, "permanent");
    assert_int_equal(dlq_count(b), 1);
    gb_dlq_entry_free(got);
    gb_dlq_entry_free(again);
    gb_dlq_entry_free(e);
    assert_null(dlq_get(b, "unknown", &code));
    assert_int_equal(code, GB_NOT_FOUND);
}

static void check_05_15_list(void **state)
{
    struct dlq_backend *b = *state;
    static const struct {
        const char *id, *route, *category;
        int64_t failed_at;
    } rows[] = {{"e3", "r1", "permanent", 300}, {"e1", "r1", "transient", 100},
                {"b2", "r2", "permanent", 200}, {"a2", "r1", "permanent", 200},
                {"c2", "r1", "expired", 200},   {"e4", "", "", 400}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(
            dlq_store(b, rows[i].id, rows[i].route, rows[i].category, rows[i].failed_at), GB_OK);
    }
    static const struct {
        const char *name;
        struct gb_dlq_filter filter;
        const char *want;
    } lists[] = {
        {"all by (failed_at, id)", {0}, "e1 a2 b2 c2 e3 e4"},
        {"since is inclusive", {.since_ms = 200}, "a2 b2 c2 e3 e4"},
        {"before is exclusive", {.before_ms = 200}, "e1"},
        {"window", {.since_ms = 101, .before_ms = 300}, "a2 b2 c2"},
        {"empty window", {.since_ms = 300, .before_ms = 300}, ""},
        {"route", {.route_id = "r1"}, "e1 a2 c2 e3"},
        {"category", {.category = "permanent"}, "a2 b2 e3"},
        {"all conditions", {.route_id = "r1", .category = "permanent", .since_ms = 201}, "e3"},
        {"empty route", {.route_id = ""}, "e4"},
        {"limit", {.limit = 2}, "e1 a2"},
        {"negative limit", {.limit = -5}, "e1 a2 b2 c2 e3 e4"},
    };
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        print_message("list: %s\n", lists[i].name);
        dlq_list_is(b, &lists[i].filter, lists[i].want);
    }
    const char *const ids[] = {"a2", "unknown", "e4", "a2"};
    assert_int_equal(dlq_delete(b, ids, 4), 2);
    assert_int_equal(dlq_delete(b, ids, 4), 0);
    assert_int_equal(dlq_delete_matches(b, &(struct gb_dlq_filter){.before_ms = 200}), 1);
    dlq_list_is(b, &(struct gb_dlq_filter){0}, "b2 c2 e3");
}

static void fill(struct dlq_backend *b)
{
    for (int i = MANY; i > 0; i--) {
        char id[16];
        (void)snprintf(id, sizeof id, "e%03d", i);
        assert_int_equal(dlq_store(b, id, "r", "permanent", i), GB_OK);
    }
    assert_int_equal(dlq_store(b, "other", "q", "permanent", 1), GB_OK);
}

static void check_05_15_delete_by_filter(void **state)
{
    struct dlq_backend *b = *state;
    struct gb_dlq_filter filter = {.route_id = "r"};
    fill(b);
    assert_int_equal(dlq_list_count(b, &filter), 100); /* the default limit */
    filter.limit = 10;
    assert_int_equal(dlq_delete_matches(b, &filter), 10);
    filter.limit = 2;
    dlq_list_is(b, &filter, "e011 e012"); /* the ten oldest are gone */
    filter.limit = 0;
    assert_int_equal(dlq_delete_matches(b, &filter), MANY - 10);
    dlq_list_is(b, &(struct gb_dlq_filter){0}, "other");
    assert_int_equal(dlq_delete_matches(b, &filter), 0);
}

static void check_05_29_entry_round_trips(void **state)
{
    struct dlq_backend *b = *state;
    struct gb_dlq_entry *e = dlq_entry("id", "route", "rejected", 1700000000123);
    struct {
        char **member;
        const char *text;
    } texts[] = {{&e->binding_id, "bind"},
                 {&e->session_id, "sess"},
                 {&e->source_id, "src"},
                 {&e->correlation_id, "corr"},
                 {&e->address, "a/b"},
                 {&e->reason, "r\xc3\xa9"
                              "ason"},
                 {&e->error_code, "INVALID_TOPIC"},
                 {&e->last_error, "last"},
                 {&e->redrive_mode, "auto"},
                 {&e->extra_info, "{\"k\":\"v\"}"}};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        assert_int_equal(gb_dlq_set(texts[i].member, gb_bytes_c(texts[i].text)).code, GB_OK);
    e->attempts = 7;
    assert_int_equal(dlq_write(b, e), GB_OK);
    assert_int_equal(dlq_store(b, "plain", "", "", 5), GB_OK);
    if (b->durable) b->reopen(b);
    enum gb_code code = GB_OK;
    struct gb_dlq_entry *got = dlq_get(b, "id", &code);
    assert_string_equal(got->route_id, "route");
    assert_string_equal(got->binding_id, "bind");
    assert_string_equal(got->session_id, "sess");
    assert_string_equal(got->source_id, "src");
    assert_string_equal(got->correlation_id, "corr");
    assert_string_equal(got->address, "a/b");
    assert_string_equal(got->reason, e->reason);
    assert_string_equal(got->category, "rejected");
    assert_string_equal(got->error_code, "INVALID_TOPIC");
    assert_string_equal(got->last_error, "last");
    assert_string_equal(got->redrive_mode, "auto");
    assert_string_equal(got->extra_info, "{\"k\":\"v\"}");
    assert_int_equal(got->attempts, 7);
    assert_int_equal(got->failed_at_ms, 1700000000123);
    assert_true(gb_bytes_equal(got->envelope->payload, e->envelope->payload));
    gb_dlq_entry_free(got);
    gb_dlq_entry_free(e);
    got = dlq_get(b, "plain", &code);
    assert_string_equal(got->redrive_mode, "");
    assert_string_equal(got->extra_info, "{}");
    gb_dlq_entry_free(got);
}

/* A failed inject deletes nothing: reading an entry for a redrive leaves it as it was. */
static void check_05_30_reading_changes_nothing(void **state)
{
    struct dlq_backend *b = *state;
    enum gb_code code = GB_OK;
    assert_int_equal(dlq_store(b, "id", "r", "permanent", 5), GB_OK);
    for (int i = 0; i < 2; i++) {
        struct gb_dlq_entry *got = dlq_get(b, "id", &code);
        assert_int_equal(got->attempts, 0);
        assert_int_equal(got->failed_at_ms, 5);
        assert_int_equal(gb_dlq_set(&got->route_id, gb_bytes_c("changed")).code, GB_OK);
        gb_dlq_entry_free(got);
        dlq_list_is(b, &(struct gb_dlq_filter){.route_id = "r"}, "id");
    }
    assert_int_equal(dlq_delete(b, &(const char *){"id"}, 1), 1);
    assert_null(dlq_get(b, "id", &code));
    assert_int_equal(code, GB_NOT_FOUND);
    assert_int_equal(dlq_delete(b, &(const char *){"id"}, 1), 0); /* no error */
}

static void cancel_before_during_after(void **state)
{
    struct dlq_backend *b = *state;
    struct gb_dlq_write q[3] = {0};
    struct gb_dlq_entry *e[3];
    static const char *const ids[] = {"a", "b", "c"};
    gb_op_cancel(&q[0].op); /* before the start: nothing to cancel */
    for (size_t i = 0; i < 3; i++) {
        e[i] = dlq_entry(ids[i], "r", "permanent", 5);
        q[i].entry = e[i];
        store_driver_expect(&b->driver);
        b->store->ops->write(b->store, &q[i], store_driver_done, &b->driver);
    }
    gb_op_cancel(&q[1].op);
    store_driver_run(&b->driver);
    gb_op_cancel(&q[2].op); /* after it is done */
    bool cancelled = q[1].op.result.code == GB_CANCELLED;
    assert_int_equal(q[0].op.result.code, GB_OK);
    assert_true(cancelled || q[1].op.result.code == GB_OK);
    assert_int_equal(q[2].op.result.code, GB_OK);
    assert_int_equal(dlq_count(b), cancelled ? 2 : 3);
    for (size_t i = 0; i < 3; i++) gb_dlq_entry_free(e[i]);
}

static void full_store_answers_unavailable(void **state)
{
    struct dlq_backend *b = *state;
    size_t count = b->full_at + 1;
    struct gb_dlq_write *q = calloc(count, sizeof *q);
    struct gb_dlq_entry **e = calloc(count, sizeof(struct gb_dlq_entry *));
    GB_ASSERT(q != NULL && e != NULL);
    for (size_t i = 0; i < count; i++) {
        char id[24];
        (void)snprintf(id, sizeof id, "e%zu", i);
        e[i] = dlq_entry(id, "r", "permanent", 5);
        q[i].entry = e[i];
        store_driver_expect(&b->driver);
        b->store->ops->write(b->store, &q[i], store_driver_done, &b->driver);
    }
    store_driver_run(&b->driver);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(q[i].op.result.code, i < b->full_at ? GB_OK : GB_UNAVAILABLE);
        if (i < b->full_at) gb_dlq_entry_free(e[i]);
    }
    assert_int_equal(dlq_count(b), b->full_at);
    assert_int_equal(dlq_delete(b, &(const char *){"e0"}, 1), 1);
    assert_int_equal(dlq_write(b, e[count - 1]), GB_OK);
    gb_dlq_entry_free(e[count - 1]);
    free(q);
    free(e);
}

static void closing_store_refuses(void **state)
{
    struct dlq_backend *b = *state;
    struct gb_dlq_entry *e = dlq_entry("a", "r", "permanent", 5);
    struct gb_dlq_write before = {.entry = e};
    struct gb_dlq_count after = {0};
    struct gb_op close_op = {0};
    struct gb_dlq *d = b->store;
    for (int i = 0; i < 3; i++) store_driver_expect(&b->driver);
    d->ops->write(d, &before, store_driver_done, &b->driver);
    d->ops->close(d, &close_op, store_driver_done, &b->driver);
    d->ops->count(d, &after, store_driver_done, &b->driver);
    store_driver_run(&b->driver);
    b->store = NULL;
    assert_int_equal(before.op.result.code, GB_OK);
    assert_int_equal(close_op.result.code, GB_OK);
    assert_int_equal(after.op.result.code, GB_UNAVAILABLE);
    gb_dlq_entry_free(e);
    b->reopen(b);
    assert_int_equal(dlq_count(b), b->durable ? 1 : 0);
}

#define CHECK(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int dlq_contract_run(struct dlq_backend *b)
{
    const struct CMUnitTest tests[] = {
        CHECK(check_05_14_one_row_per_event),
        CHECK(check_05_15_list),
        CHECK(check_05_15_delete_by_filter),
        CHECK(check_05_29_entry_round_trips),
        CHECK(check_05_30_reading_changes_nothing),
        CHECK(cancel_before_during_after),
        cmocka_unit_test_setup_teardown(full_store_answers_unavailable, set_up_small, tear_down),
        CHECK(closing_store_refuses),
    };
    backend = b;
    return cmocka_run_group_tests_name(b->name, tests, NULL, NULL);
}
