/* The bare commit loop of `make bench`: what it costs to make the bridge's outbox rows durable at
 * all. Same file settings, table, indexes and statements as the SQLite outbox, no bridge around
 * them.
 *
 *   commit --path FILE [--seconds S] [--batch N] [--lifecycle 0|1]
 *
 * Each transaction of N rows (default 256) ends with an fsync. With --lifecycle 1 each batch is
 * also claimed and completed, in two further transactions, as the bridge does with a delivered
 * message. Prints {"rows":..,"seconds":..,"rows_per_s":..,"commits":..,"cpu_s":..}. */
#include <inttypes.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <time.h>

#include "adapters/sqlite/sqlite_open.h"
#include "adapters/sqlite/sqlite_outbox_sql.h"
#include "adapters/sqlite/sqlite_schema.h"
#include "bench_payload.h"
#include "bench_process.h"
#include "domain/envelope_json.h"

enum { BATCH_MAX = 4096, ID_SIZE = 32 };

struct writer {
    sqlite3 *sql;
    sqlite3_stmt *insert, *claim, *complete;
    struct gb_str envelope_json;
    uint64_t rows, commits;
    int64_t rowids[BATCH_MAX];
};

static void must(const struct writer *w, int rc, const char *doing)
{
    if (rc != SQLITE_OK && rc != SQLITE_DONE) gb_bench_die("%s: %s", doing, sqlite3_errmsg(w->sql));
}

static void must_not_fail(struct gb_err err)
{
    if (gb_failed(err)) gb_bench_die("%s", err.message);
}

static sqlite3_stmt *prepared(const struct writer *w, enum gb_outbox_sql which)
{
    sqlite3_stmt *stmt = NULL;
    must(w,
         sqlite3_prepare_v3(w->sql, gb_outbox_sql_texts[which], -1, SQLITE_PREPARE_PERSISTENT,
                            &stmt, NULL),
         "prepare");
    return stmt;
}

/* The envelope that the bridge makes of one message of the source, encoded once: the loop measures
 * commits, not encoding. */
static void encode_envelope(struct gb_str *out)
{
    uint8_t payload[GB_BENCH_PAYLOAD_SIZE];
    struct gb_envelope *e = NULL;
    gb_bench_payload_init(payload);
    must_not_fail(gb_envelope_new(1024, &e));
    must_not_fail(gb_envelope_set_id(e, gb_bytes_c("0123456789abcdef0123456789abcdef")));
    must_not_fail(gb_envelope_set_subject(e, gb_bytes_c("bench/sensor-17")));
    must_not_fail(gb_envelope_set_payload(e, gb_bytes(payload, sizeof payload)));
    must_not_fail(
        gb_envelope_put_text(e, "mqtt.message-id", gb_bytes_c("0123456789abcdef0123456789abcdef")));
    must_not_fail(gb_envelope_put_number(e, "x-bridge.generated-id", GB_VALUE_BOOL, 1));
    must_not_fail(gb_envelope_put_text(e, "mqtt.topic", gb_bytes_c("bench/sensor-17")));
    must_not_fail(gb_envelope_put_number(e, "mqtt.retained", GB_VALUE_BOOL, 0));
    must_not_fail(gb_envelope_put_number(e, "mqtt.qos", GB_VALUE_INT, 1));
    e->created_at_ms = INT64_C(1800000000000);
    gb_envelope_encode(out, e);
    must_not_fail(gb_str_check(out, "envelope"));
    gb_envelope_unref(e);
}

/* splitmix64: ids are spread over the index as random ones are. */
static uint64_t mixed(uint64_t x)
{
    x += UINT64_C(0x9E3779B97F4A7C15);
    x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
    return x ^ (x >> 31);
}

static void make_id(char out[ID_SIZE], uint64_t seed)
{
    static const char digits[] = "0123456789abcdef";
    uint64_t bits = mixed(seed);
    for (size_t i = 0; i < ID_SIZE; i++) {
        if (i == ID_SIZE / 2) bits = mixed(bits);
        out[i] = digits[bits & 15];
        bits >>= 4;
    }
}

static void bind_text(const struct writer *w, sqlite3_stmt *stmt, int at, struct gb_bytes text)
{
    must(w, sqlite3_bind_text(stmt, at, (const char *)text.data, (int)text.size, SQLITE_STATIC),
         "bind");
}

static void run(const struct writer *w, sqlite3_stmt *stmt)
{
    must(w, sqlite3_step(stmt), "step");
    if (sqlite3_changes(w->sql) != 1) gb_bench_die("a statement changed no row");
    must(w, sqlite3_reset(stmt), "reset");
}

static void transact(struct writer *w, const char *text)
{
    must(w, sqlite3_exec(w->sql, text, NULL, NULL, NULL), text);
}

static void commit(struct writer *w)
{
    transact(w, "COMMIT");
    w->commits++;
}

static void insert_batch(struct writer *w, size_t count, int64_t now_ms)
{
    char id[ID_SIZE];
    char envelope_id[ID_SIZE];
    bind_text(w, w->insert, 2, gb_bytes_c("SESSION#bench"));
    bind_text(w, w->insert, 3, gb_bytes_c("bench"));
    bind_text(w, w->insert, 5, gb_bytes_c("to-sqs"));
    bind_text(w, w->insert, 6, gb_bytes_c("bench"));
    bind_text(w, w->insert, 7, gb_bytes_c("bench-queue"));
    bind_text(w, w->insert, 8, gb_str_bytes(&w->envelope_json));
    must(w, sqlite3_bind_int64(w->insert, 10, now_ms), "bind");
    must(w, sqlite3_bind_int64(w->insert, 11, 0), "bind");
    bind_text(w, w->insert, 13, gb_bytes_c(""));
    transact(w, "BEGIN IMMEDIATE");
    for (size_t i = 0; i < count; i++) {
        w->rows++;
        make_id(id, w->rows * 2);
        make_id(envelope_id, w->rows * 2 + 1);
        bind_text(w, w->insert, 1, gb_bytes(id, sizeof id));
        bind_text(w, w->insert, 4, gb_bytes(envelope_id, sizeof envelope_id));
        must(w, sqlite3_bind_int64(w->insert, 12, (int64_t)w->rows), "bind");
        run(w, w->insert);
        w->rowids[i] = sqlite3_last_insert_rowid(w->sql);
    }
    commit(w);
}

static void claim_batch(struct writer *w, size_t count, int64_t now_ms)
{
    bind_text(w, w->claim, 2, gb_bytes_c("bench#1"));
    must(w, sqlite3_bind_int64(w->claim, 3, 1), "bind");
    must(w, sqlite3_bind_int64(w->claim, 4, now_ms), "bind");
    must(w, sqlite3_bind_int64(w->claim, 5, now_ms), "bind");
    must(w, sqlite3_bind_int64(w->claim, 6, 1), "bind");
    transact(w, "BEGIN IMMEDIATE");
    for (size_t i = 0; i < count; i++) {
        must(w, sqlite3_bind_int64(w->claim, 1, w->rowids[i]), "bind");
        run(w, w->claim);
    }
    commit(w);
}

static void complete_batch(struct writer *w, size_t count, int64_t now_ms)
{
    char id[ID_SIZE];
    bind_text(w, w->complete, 1, gb_bytes_c("SESSION#bench"));
    bind_text(w, w->complete, 3, gb_bytes_c("bench#1"));
    must(w, sqlite3_bind_int64(w->complete, 4, 1), "bind");
    must(w, sqlite3_bind_int64(w->complete, 5, now_ms), "bind");
    transact(w, "BEGIN IMMEDIATE");
    for (size_t i = 0; i < count; i++) {
        make_id(id, (w->rows - count + i + 1) * 2);
        bind_text(w, w->complete, 2, gb_bytes(id, sizeof id));
        run(w, w->complete);
    }
    commit(w);
}

static double cpu_seconds(void)
{
    struct timespec t;
    if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t) != 0) gb_bench_die("no CPU clock");
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
    static const char *const names[] = {"--path", "--seconds", "--batch", "--lifecycle"};
    gb_bench_check_options(argc, argv, names, sizeof names / sizeof names[0]);
    const char *path = gb_bench_option(argc, argv, "--path", NULL);
    uint64_t seconds = gb_bench_option_u64(argc, argv, "--seconds", 3);
    size_t batch = (size_t)gb_bench_option_u64(argc, argv, "--batch", 256);
    bool lifecycle = gb_bench_option_u64(argc, argv, "--lifecycle", 0) != 0;
    if (path == NULL || batch < 1 || batch > BATCH_MAX)
        gb_bench_die("--path is needed; --batch is 1 to %d", BATCH_MAX);

    struct writer w = {0};
    struct gb_sqlite_connection c = {0};
    must_not_fail(gb_sqlite_open(path, false, &c));
    must_not_fail(gb_sqlite_schema_apply(c.sql, path, GB_SQLITE_OUTBOX));
    w.sql = c.sql;
    w.insert = prepared(&w, GB_SQL_PERSIST);
    w.claim = prepared(&w, GB_SQL_CLAIM);
    w.complete = prepared(&w, GB_SQL_COMPLETE);
    encode_envelope(&w.envelope_json);

    uint64_t begin_ns = gb_bench_now_ns();
    double cpu = cpu_seconds();
    uint64_t now_ns = begin_ns;
    while (now_ns < begin_ns + seconds * 1000000000U) {
        int64_t now_ms = INT64_C(1800000000000) + (int64_t)(now_ns / 1000000U);
        insert_batch(&w, batch, now_ms);
        if (lifecycle) claim_batch(&w, batch, now_ms);
        if (lifecycle) complete_batch(&w, batch, now_ms);
        now_ns = gb_bench_now_ns();
    }
    cpu = cpu_seconds() - cpu;
    double took = (double)(now_ns - begin_ns) / 1e9;
    gb_bench_say("{\"rows\":%" PRIu64 ",\"seconds\":%.3f,\"rows_per_s\":%.0f,\"commits\":%" PRIu64
                 ",\"cpu_s\":%.3f}",
                 w.rows, took, (double)w.rows / took, w.commits, cpu);
    must(&w, sqlite3_finalize(w.insert), "finalize");
    must(&w, sqlite3_finalize(w.claim), "finalize");
    must(&w, sqlite3_finalize(w.complete), "finalize");
    gb_sqlite_close(&c);
    gb_str_deinit(&w.envelope_json);
    return 0;
}
