#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "adapters/sqlite/sqlite_outbox.h"
#include "adapters/sqlite/sqlite_outbox_sql.h"
#include "contract/outbox_contract.h"
#include "contract/sqlite_file.h"

/* What the outbox does with the rows of its file, beyond the suite that every backend runs. */

enum { NS_PER_MS = 1000000 };
#define S1 "SESSION#s1"

static struct sqlite_file file;
static struct outbox_backend backend = {.ctx = &file};

static void open_store(int64_t retention_ms)
{
    struct gb_sqlite_outbox_cfg cfg = {.path = file.path,
                                       .stale_claim_ns = INT64_C(35000) * NS_PER_MS,
                                       .retention_ns = retention_ms * NS_PER_MS};
    assert_int_equal(gb_sqlite_outbox_new(file.pool, &cfg, &backend.store).code, GB_OK);
}

static void close_store(void)
{
    STORE_CLOSE(&backend.driver, backend.store);
}

static int set_up(void **state)
{
    *state = &backend;
    store_driver_init_loop(&backend.driver);
    sqlite_file_init(&file, &backend.driver);
    open_store(0);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    close_store();
    sqlite_file_deinit(&file);
    store_driver_deinit(&backend.driver);
    outbox_records_free();
    return 0;
}

static void store(const char *envelope_id, const char *key, int64_t created_at_ms)
{
    assert_int_equal(outbox_store(&backend, &(struct outbox_spec){.envelope_id = envelope_id,
                                                                  .binding_id = "b1",
                                                                  .session_id = "s1",
                                                                  .key = key,
                                                                  .created_at_ms = created_at_ms}),
                     GB_OK);
}

static void complete_all(void)
{
    struct gb_outbox_batch *batch = outbox_claim(&backend, S1, "o", 1, 1000, NULL);
    for (size_t i = 0; batch != NULL && i < batch->count; i++) {
        enum gb_code code =
            outbox_settle(&backend, GB_OUTBOX_COMPLETE, S1, batch->records[i].id, "o", 1);
        assert_int_equal(code, GB_OK);
    }
    gb_outbox_batch_free(batch);
}

/* --- plans --- */

static void explain(sqlite3 *sql, const char *text, char *plan, size_t size)
{
    char explained[1024];
    (void)snprintf(explained, sizeof explained, "EXPLAIN QUERY PLAN %s", text);
    sqlite3_stmt *stmt = NULL;
    assert_int_equal(sqlite3_prepare_v2(sql, explained, -1, &stmt, NULL), SQLITE_OK);
    plan[0] = '\0';
    while (sqlite3_step(stmt) == SQLITE_ROW) {
        size_t used = strlen(plan);
        (void)snprintf(plan + used, size - used, "%s; ",
                       (const char *)sqlite3_column_text(stmt, 3));
    }
    assert_int_equal(sqlite3_finalize(stmt), SQLITE_OK);
}

static void statements_use_their_indexes(void **state)
{
    (void)state;
    static const char by_status[] = "SEARCH outbox USING COVERING INDEX "
                                    "idx_outbox_partition_status (partition_key=? AND status=?)";
    static const char rows_by_status[] =
        "SEARCH outbox USING INDEX idx_outbox_partition_status (partition_key=? AND status=?)";
    static const struct {
        enum gb_outbox_sql sql;
        const char *want, *never;
    } rows[] = {
        {GB_SQL_DEPTH, by_status, "SCAN outbox"},
        {GB_SQL_COUNT, by_status, "SCAN"},
        {GB_SQL_FIRST_ROWID, by_status, "SCAN outbox"},
        {GB_SQL_PENDING, rows_by_status, "B-TREE"},
        {GB_SQL_CLAIMED, rows_by_status, "B-TREE"},
        {GB_SQL_OLDEST, rows_by_status, "B-TREE"},
        {GB_SQL_SEQ_LAST, rows_by_status, "B-TREE"},
        {GB_SQL_MARK_LIVE, "idx_outbox_partition_status (partition_key=? AND status=?)", "SCAN"},
        {GB_SQL_PENDING_SORTED, rows_by_status, "SCAN"},
        {GB_SQL_EXPIRE, "idx_outbox_partition_status (partition_key=? AND status=?)", "SCAN"},
        {GB_SQL_ROW, "INTEGER PRIMARY KEY (rowid=?)", "SCAN"},
        {GB_SQL_CLAIM, "INTEGER PRIMARY KEY (rowid=?)", "SCAN"},
        {GB_SQL_COMPLETE, "sqlite_autoindex_outbox_1 (id=?)", "SCAN"},
        {GB_SQL_RELEASE, "sqlite_autoindex_outbox_1 (id=?)", "SCAN"},
        {GB_SQL_LOST, "idx_outbox_partition_status (partition_key=? AND status<?)", "SCAN"},
        {GB_SQL_SWEEP_COMPLETED, "idx_outbox_completed (completed_at<?)", "SCAN"},
        {GB_SQL_SWEEP_EXPIRED, "idx_outbox_expired (expires_at<?)", "SCAN"},
    };
    sqlite3 *sql = sqlite_file_connect(file.path);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char plan[1024];
        explain(sql, gb_outbox_sql_texts[rows[i].sql], plan, sizeof plan);
        if (strstr(plan, rows[i].want) == NULL || strstr(plan, rows[i].never) != NULL)
            fail_msg("%s\nplan: %s", gb_outbox_sql_texts[rows[i].sql], plan);
    }
    assert_int_equal(sqlite3_close(sql), SQLITE_OK);
}

/* --- claim order when clocks go back --- */

static void claim_order_survives_a_clock_set_back(void **state)
{
    (void)state;
    store("a", NULL, 100);
    store("b", NULL, 200);
    outbox_claim_is(&backend, S1, "o", 1, 0, "");
    store("c", NULL, 150); /* behind b's back */
    store("d", NULL, 160);
    outbox_claim_is(&backend, S1, "o", 1, 2, "a c");
    outbox_claim_is(&backend, S1, "o", 1, 1, "d");
    assert_int_equal(outbox_stats(&backend, S1).oldest_pending_ms, 200);
    outbox_claim_is(&backend, S1, "o", 2, 2, "a c");
    outbox_claim_is(&backend, S1, "o", 3, 9, "a c d b");
}

static void claim_order_is_found_at_open(void **state)
{
    (void)state;
    store("a", NULL, 300);
    store("b", NULL, 200);
    close_store();
    open_store(0);
    store("c", NULL, 250);
    outbox_claim_is(&backend, S1, "o", 1, 10, "b c a");
    outbox_claim_is(&backend, S1, "o", 2, 10, "b c a");
    close_store();
    open_store(0);
    outbox_claim_is(&backend, S1, "o", 3, 2, "b c");
}

/* Another writer may have given equal seq: the envelope id decides then (spec 05 §2.3). */
static void equal_seq_falls_back_to_the_envelope_id(void **state)
{
    (void)state;
    store("z", NULL, 100);
    store("y", NULL, 100);
    close_store();
    sqlite_file_exec(file.path, "UPDATE outbox SET seq=1");
    open_store(0);
    outbox_claim_is(&backend, S1, "o", 1, 10, "y z");
}

/* --- mark and seq of files that others wrote --- */

static void check_05_24_mark_is_seeded_from_rows(void **state)
{
    (void)state;
    enum gb_code code = GB_OK;
    store("a", NULL, 0);
    outbox_claim_is(&backend, S1, "o", 9, 1, "a");
    close_store();
    static const char *const damages[] = {"DELETE FROM outbox_partition_fence",
                                          "UPDATE outbox_partition_fence SET max_version=0",
                                          "UPDATE outbox_partition_fence SET max_version=3"};
    for (size_t i = 0; i < 3; i++) {
        sqlite_file_exec(file.path, damages[i]);
        open_store(0);
        assert_int_equal(outbox_stats(&backend, S1).mark, 9);
        assert_null(outbox_claim(&backend, S1, "o", 8, 1, &code));
        assert_int_equal(code, GB_STALE_FENCING_TOKEN);
        outbox_claim_is(&backend, S1, "o", 9, 0, "");
        assert_string_equal(sqlite_file_query(file.path, "SELECT max_version FROM"
                                                         " outbox_partition_fence"),
                            "9");
        close_store();
    }
    open_store(0);
}

static void damaged_fence_is_named(void **state)
{
    (void)state;
    static const char *const damages[] = {"'many'", "x'00'", "-1", "1.5"};
    store("a", NULL, 0);
    outbox_claim_is(&backend, S1, "o", 9, 0, "");
    close_store();
    for (size_t i = 0; i < sizeof damages / sizeof damages[0]; i++) {
        char text[96];
        print_message("damage: %s\n", damages[i]);
        (void)snprintf(text, sizeof text, "UPDATE outbox_partition_fence SET max_version=%s",
                       damages[i]);
        sqlite_file_exec(file.path, text);
        open_store(0);
        enum gb_code code = GB_OK;
        assert_null(outbox_claim(&backend, S1, "o", 10, 10, &code));
        assert_int_equal(code, GB_INVALID_CONFIG);
        struct gb_outbox_stats q = {.partition = gb_bytes_c(S1)};
        store_driver_expect(&backend.driver);
        backend.store->ops->stats(backend.store, &q, store_driver_done, &backend.driver);
        store_driver_run(&backend.driver);
        assert_int_equal(q.op.result.code, GB_INVALID_CONFIG);
        assert_non_null(strstr(q.op.result.message, S1));
        assert_non_null(strstr(q.op.result.message, file.path));
        store("b", NULL, 0); /* other work goes on */
        close_store();
        sqlite_file_exec(file.path, "DELETE FROM outbox WHERE envelope_id='b'");
    }
    sqlite_file_exec(file.path, "UPDATE outbox_partition_fence SET max_version=9");
    open_store(0);
    outbox_claim_is(&backend, S1, "o", 9, 10, "a");
}

static void seq_goes_on_after_reopen(void **state)
{
    (void)state;
    store("a", NULL, 0);
    store("b", NULL, 0);
    complete_all();
    close_store();
    open_store(0);
    store("c", NULL, 0);
    assert_string_equal(sqlite_file_query(file.path, "SELECT seq FROM outbox WHERE"
                                                     " envelope_id='c'"),
                        "3");
}

static void an_idle_claim_writes_nothing(void **state)
{
    (void)state;
    outbox_claim_is(&backend, S1, "o", 4, 10, "");
    sqlite3 *sql = sqlite_file_connect(file.path);
    sqlite3_stmt *version = NULL;
    assert_int_equal(sqlite3_prepare_v2(sql, "PRAGMA data_version", -1, &version, NULL), SQLITE_OK);
    int64_t seen[3];
    for (size_t i = 0; i < 3; i++) {
        /* The last claim comes a day later: retention must see that the fence is in use. */
        if (i == 2) backend.driver.wall_ms += INT64_C(86400000);
        if (i > 0) outbox_claim_is(&backend, S1, "o", 4, 10, "");
        assert_int_equal(sqlite3_step(version), SQLITE_ROW);
        seen[i] = sqlite3_column_int64(version, 0);
        assert_int_equal(sqlite3_reset(version), SQLITE_OK);
    }
    assert_int_equal(seen[0], seen[1]);
    assert_int_not_equal(seen[1], seen[2]);
    assert_int_equal(sqlite3_finalize(version), SQLITE_OK);
    assert_int_equal(sqlite3_close(sql), SQLITE_OK);
}

/* --- retention --- */

static void check_05_32_ended_rows_go_pending_stay(void **state)
{
    (void)state;
    close_store();
    open_store(1000);
    int64_t now_ms = backend.driver.wall_ms;
    store("done", NULL, 0);
    complete_all();
    assert_int_equal(outbox_store(&backend, &(struct outbox_spec){.envelope_id = "expired",
                                                                  .binding_id = "b1",
                                                                  .session_id = "s1",
                                                                  .expires_at_ms = now_ms - 1}),
                     GB_OK);
    uint64_t expired = 0;
    assert_int_equal(outbox_expire(&backend, S1, "o", 1, now_ms, &expired), GB_OK);
    assert_int_equal(expired, 1);
    store("claimed", NULL, 0);
    outbox_claim_is(&backend, S1, "o", 1, 1, "claimed");
    store("pending", NULL, 0);
    backend.driver.wall_ms += 59999; /* a sweep ran with the first write: one a minute */
    store("x", NULL, 0);
    assert_string_equal(sqlite_file_query(file.path, "SELECT count(*) FROM outbox"), "5");
    backend.driver.wall_ms += 1;
    store("y", NULL, 0);
    assert_string_equal(sqlite_file_query(file.path, "SELECT group_concat(envelope_id) FROM"
                                                     " (SELECT envelope_id FROM outbox ORDER BY"
                                                     " envelope_id)"),
                        "claimed,pending,x,y");
    store("done", NULL, 0); /* its identity is free again */
}

static void check_05_32_negative_retention_keeps_all(void **state)
{
    (void)state;
    close_store();
    open_store(-1);
    store("done", NULL, 0);
    complete_all();
    backend.driver.wall_ms += INT64_C(86400000) * 400;
    store("x", NULL, 0);
    assert_string_equal(sqlite_file_query(file.path, "SELECT count(*) FROM outbox"), "2");
}

/* A long stop leaves more rows than one sweep takes; the next writes go on at once. */
static void sweeps_go_on_until_nothing_is_left(void **state)
{
    (void)state;
    close_store();
    sqlite_file_exec(file.path,
                     "WITH n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<200)"
                     "INSERT INTO outbox(id,partition_key,route_id,envelope_id,binding_id,"
                     "envelope_json,status,created_at,completed_at)"
                     " SELECT 'i'||i,'SESSION#s1','r','e'||i,'b','{}','completed',1,1 FROM n");
    open_store(1000);
    for (int i = 0; i < 4; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "x%d", i);
        store(name, NULL, 0);
    }
    assert_string_equal(
        sqlite_file_query(file.path, "SELECT count(*) FROM outbox WHERE status='completed'"), "0");
}

static void untouched_fences_go_after_30_days(void **state)
{
    (void)state;
    outbox_claim_is(&backend, "SESSION#old", "o", 5, 0, "");
    backend.driver.wall_ms += INT64_C(86400000) * 30;
    outbox_claim_is(&backend, S1, "o", 5, 0, "");
    assert_string_equal(sqlite_file_query(file.path, "SELECT count(*) FROM"
                                                     " outbox_partition_fence"),
                        "2");
    backend.driver.wall_ms += 60001;
    store("x", NULL, 0);
    assert_string_equal(sqlite_file_query(file.path, "SELECT partition_key FROM"
                                                     " outbox_partition_fence"),
                        S1);
}

/* --- rows that can't be read --- */

static const char *result_of_claim(uint32_t limit, enum gb_code *code,
                                   struct gb_outbox_batch **batch)
{
    static char message[GB_ERR_MESSAGE_MAX];
    struct gb_outbox_claim q = {
        .partition = gb_bytes_c(S1), .token = {gb_bytes_c("o"), 1}, .limit = limit};
    store_driver_expect(&backend.driver);
    backend.store->ops->claim(backend.store, &q, store_driver_done, &backend.driver);
    store_driver_run(&backend.driver);
    *code = q.op.result.code;
    *batch = q.batch;
    (void)snprintf(message, sizeof message, "%s", q.op.result.message);
    return message;
}

static void unreadable_row_is_skipped_and_named(void **state)
{
    (void)state;
    static const char *const damages[] = {
        "envelope_json='{\"id\":'", "envelope_json='{\"id\":\"bad\",\"unknown\":1}'",
        "envelope_json=x'00'",      "envelope_json='{\"id\":\"other\"}'",
        "replay_count='many'",      "expires_at='soon'",
        "route_id=x'00'",
    };
    for (size_t i = 0; i < sizeof damages / sizeof damages[0]; i++) {
        print_message("damage: %s\n", damages[i]);
        enum gb_code code = GB_OK;
        struct gb_outbox_batch *batch = NULL;
        assert_int_equal(outbox_store(&backend, &(struct outbox_spec){.envelope_id = "bad",
                                                                      .binding_id = "b1",
                                                                      .session_id = "s1",
                                                                      .key = "K",
                                                                      .id = "bad-id"}),
                         GB_OK);
        store("same-key", "K", 0);
        store("good", NULL, 0);
        char text[192];
        (void)snprintf(text, sizeof text, "UPDATE outbox SET %s WHERE id='bad-id'", damages[i]);
        sqlite_file_exec(file.path, text);
        (void)result_of_claim(1, &code, &batch); /* a limit of one is not used up by the bad row */
        assert_int_equal(code, GB_OK);
        outbox_batch_is(batch, "good");
        gb_outbox_batch_free(batch);
        const char *message = result_of_claim(10, &code, &batch);
        assert_int_equal(code, GB_INVALID_OUTBOX_RECORD);
        assert_null(batch);
        assert_non_null(strstr(message, "bad-id"));
        assert_string_equal(
            sqlite_file_query(file.path, "SELECT status FROM outbox WHERE id='bad-id'"), "pending");
        sqlite_file_exec(file.path, "DELETE FROM outbox WHERE id='bad-id'");
        outbox_claim_is(&backend, S1, "o", 1, 10, "same-key");
        sqlite_file_exec(file.path, "DELETE FROM outbox");
    }
    assert_true(gb_metrics_sum(file.metrics, "SQLiteStoreUnhealthy") > 0);
}

static void row_of_no_status_is_counted(void **state)
{
    (void)state;
    static const char *const statuses[] = {"'lost'", "''", "'a'", "'done'", "'zzz'", "5", "x'00'"};
    store("good", NULL, 0);
    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++) {
        char text[96];
        print_message("status: %s\n", statuses[i]);
        (void)outbox_stats(&backend, S1);
        uint64_t before = (uint64_t)gb_metrics_sum(file.metrics, "SQLiteStoreUnhealthy");
        store("bad", NULL, 0);
        (void)snprintf(text, sizeof text, "UPDATE outbox SET status=%s WHERE envelope_id='bad'",
                       statuses[i]);
        sqlite_file_exec(file.path, text);
        assert_int_equal(outbox_stats(&backend, S1).pending, 1);
        assert_int_equal(gb_metrics_sum(file.metrics, "SQLiteStoreUnhealthy"), before + 1);
        sqlite_file_exec(file.path, "DELETE FROM outbox WHERE envelope_id='bad'");
    }
}

static void old_outbox_gains_its_columns(void **state)
{
    (void)state;
    close_store();
    sqlite_file_exec(file.path,
                     "DROP TABLE outbox; CREATE TABLE outbox(id TEXT PRIMARY KEY,"
                     "partition_key TEXT NOT NULL,route_id TEXT NOT NULL,envelope_id TEXT NOT NULL,"
                     "binding_id TEXT NOT NULL,envelope_json TEXT NOT NULL,"
                     "status TEXT NOT NULL DEFAULT 'pending',created_at INTEGER NOT NULL);"
                     "INSERT INTO outbox(id,partition_key,route_id,envelope_id,binding_id,"
                     "envelope_json,created_at) VALUES('1','SESSION#s1','r','e','b',"
                     "'{\"id\":\"e\"}',5)");
    open_store(0);
    store("new", "K", 0);
    outbox_claim_is(&backend, S1, "o", 1, 10, "e new");
}

static void foreign_table_is_refused(void **state)
{
    (void)state;
    close_store();
    sqlite_file_exec(file.path, "DROP TABLE outbox; CREATE TABLE outbox(x TEXT)");
    struct gb_sqlite_outbox_cfg cfg = {.path = file.path};
    struct gb_outbox *o = NULL;
    struct gb_err err = gb_sqlite_outbox_new(file.pool, &cfg, &o);
    assert_int_equal(err.code, GB_INVALID_CONFIG);
    assert_non_null(strstr(err.message, file.path));
    sqlite_file_exec(file.path, "DROP TABLE outbox");
    open_store(0);
}

#define CHECK(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK(statements_use_their_indexes),
        CHECK(claim_order_survives_a_clock_set_back),
        CHECK(claim_order_is_found_at_open),
        CHECK(equal_seq_falls_back_to_the_envelope_id),
        CHECK(check_05_24_mark_is_seeded_from_rows),
        CHECK(damaged_fence_is_named),
        CHECK(seq_goes_on_after_reopen),
        CHECK(an_idle_claim_writes_nothing),
        CHECK(check_05_32_ended_rows_go_pending_stay),
        CHECK(check_05_32_negative_retention_keeps_all),
        CHECK(sweeps_go_on_until_nothing_is_left),
        CHECK(untouched_fences_go_after_30_days),
        CHECK(unreadable_row_is_skipped_and_named),
        CHECK(row_of_no_status_is_counted),
        CHECK(old_outbox_gains_its_columns),
        CHECK(foreign_table_is_refused),
    };
    return cmocka_run_group_tests_name("rows of the SQLite outbox", tests, NULL, NULL);
}
