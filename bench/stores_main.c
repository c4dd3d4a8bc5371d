/* The outbox stores through their port: what the bridge gets of them, to be set beside `commit`.
 *
 *   stores [--path FILE] [--seconds S] [--batch N] [--lifecycle 0|1]
 *
 * Without --path the memory store. N records (default 256) are persisted by N calls in flight, as N
 * messages would be; with --lifecycle 1 they are then claimed by one call and completed by N calls.
 * Prints {"rows":..,"seconds":..,"rows_per_s":..,"persist_us":..,"claim_us":..,"complete_us":..,
 * "cpu_s":..}; the times are per record. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "adapters/memory/memory_outbox.h"
#include "adapters/sqlite/sqlite_outbox.h"
#include "bench_payload.h"
#include "bench_process.h"
#include "io/loop.h"

enum { BATCH_MAX = 4096, ID_SIZE = 32 };

struct run {
    struct gb_loop *loop;
    struct gb_outbox *store;
    size_t batch, waiting;
    uint64_t rows, persist_ns, claim_ns, complete_ns;
    struct gb_outbox_persist persists[BATCH_MAX];
    struct gb_outbox_record records[BATCH_MAX];
    char ids[BATCH_MAX][ID_SIZE];
    struct gb_outbox_claim claim;
    struct gb_outbox_settle settles[BATCH_MAX];
};

static void must(struct gb_err err)
{
    if (gb_failed(err)) gb_bench_die("%s", err.message);
}

static void done(struct gb_op *op, void *arg)
{
    struct run *r = arg;
    must(op->result);
    if (--r->waiting == 0) gb_loop_stop(r->loop);
}

/* splitmix64: ids are spread over the index as random ones are. */
static void make_id(char out[ID_SIZE], uint64_t seed)
{
    for (size_t i = 0; i < ID_SIZE; i++) {
        if (i % 16 == 0) {
            seed += UINT64_C(0x9E3779B97F4A7C15);
            seed = (seed ^ (seed >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
            seed = (seed ^ (seed >> 27)) * UINT64_C(0x94D049BB133111EB);
            seed ^= seed >> 31;
        }
        out[i] = "0123456789abcdef"[seed >> (i % 16 * 4) & 15];
    }
}

static struct gb_envelope *make_envelope(uint64_t row)
{
    uint8_t payload[GB_BENCH_PAYLOAD_SIZE];
    char id[ID_SIZE];
    struct gb_envelope *e = NULL;
    gb_bench_payload_init(payload);
    make_id(id, row * 2 + 1);
    must(gb_envelope_new(1024, &e));
    must(gb_envelope_set_id(e, gb_bytes(id, sizeof id)));
    must(gb_envelope_set_subject(e, gb_bytes_c("bench/sensor-17")));
    must(gb_envelope_set_payload(e, gb_bytes(payload, sizeof payload)));
    must(gb_envelope_put_text(e, "mqtt.message-id", gb_bytes(id, sizeof id)));
    must(gb_envelope_put_number(e, "x-bridge.generated-id", GB_VALUE_BOOL, 1));
    must(gb_envelope_put_text(e, "mqtt.topic", gb_bytes_c("bench/sensor-17")));
    must(gb_envelope_put_number(e, "mqtt.retained", GB_VALUE_BOOL, 0));
    must(gb_envelope_put_number(e, "mqtt.qos", GB_VALUE_INT, 1));
    return e;
}

/* The envelopes are made before the clock starts: receiving is not the store's work. */
static void persist_batch(struct run *r)
{
    for (size_t i = 0; i < r->batch; i++) {
        uint64_t row = ++r->rows;
        make_id(r->ids[i], row * 2);
        r->records[i] = (struct gb_outbox_record){
            .id = gb_bytes(r->ids[i], ID_SIZE),
            .route_id = gb_bytes_c("bench"),
            .binding_id = gb_bytes_c("to-sqs"),
            .session_id = gb_bytes_c("bench"),
            .address = gb_bytes_c("bench-queue"),
            .envelope = make_envelope(row),
        };
    }
    uint64_t begin_ns = gb_bench_now_ns();
    r->waiting = r->batch;
    for (size_t i = 0; i < r->batch; i++) {
        r->persists[i] = (struct gb_outbox_persist){.records = &r->records[i], .count = 1};
        r->store->ops->persist(r->store, &r->persists[i], done, r);
    }
    gb_loop_run(r->loop);
    r->persist_ns += gb_bench_now_ns() - begin_ns;
    for (size_t i = 0; i < r->batch; i++) gb_envelope_unref(r->records[i].envelope);
}

static void drain_batch(struct run *r)
{
    uint64_t begin_ns = gb_bench_now_ns();
    struct gb_token token = {gb_bytes_c("bench#1"), 1};
    r->claim = (struct gb_outbox_claim){
        .partition = gb_bytes_c("SESSION#bench"), .token = token, .limit = (uint32_t)r->batch};
    r->waiting = 1;
    r->store->ops->claim(r->store, &r->claim, done, r);
    gb_loop_run(r->loop);
    uint64_t claimed_ns = gb_bench_now_ns();
    r->claim_ns += claimed_ns - begin_ns;
    if (r->claim.batch == NULL || r->claim.batch->count != r->batch) gb_bench_die("short claim");
    r->waiting = r->batch;
    for (size_t i = 0; i < r->batch; i++) {
        r->settles[i] = (struct gb_outbox_settle){.kind = GB_OUTBOX_COMPLETE,
                                                  .partition = r->claim.partition,
                                                  .id = r->claim.batch->records[i].id,
                                                  .token = token};
        r->store->ops->settle(r->store, &r->settles[i], done, r);
    }
    gb_loop_run(r->loop);
    r->complete_ns += gb_bench_now_ns() - claimed_ns;
    gb_outbox_batch_free(r->claim.batch);
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
    static struct run r;
    gb_bench_check_options(argc, argv, names, sizeof names / sizeof names[0]);
    const char *path = gb_bench_option(argc, argv, "--path", NULL);
    uint64_t seconds = gb_bench_option_u64(argc, argv, "--seconds", 3);
    r.batch = (size_t)gb_bench_option_u64(argc, argv, "--batch", 256);
    bool lifecycle = gb_bench_option_u64(argc, argv, "--lifecycle", 0) != 0;
    if (r.batch < 1 || r.batch > BATCH_MAX) gb_bench_die("--batch is 1 to %d", BATCH_MAX);

    struct gb_metrics *metrics = NULL;
    struct gb_sqlite_pool *pool = NULL;
    must(gb_loop_new(&r.loop));
    must(gb_metrics_new(&metrics));
    struct gb_sqlite_pool_cfg pool_cfg = {.loop = r.loop, .metrics = metrics};
    must(gb_sqlite_pool_new(&pool_cfg, &pool));
    struct gb_sqlite_outbox_cfg on_file = {.path = path};
    struct gb_memory_outbox_cfg in_memory = {.records_max = 10000000};
    must(path != NULL ? gb_sqlite_outbox_new(pool, &on_file, &r.store)
                      : gb_memory_outbox_new(gb_loop_reactor(r.loop), &in_memory, &r.store));

    uint64_t begin_ns = gb_bench_now_ns();
    double cpu = cpu_seconds();
    while (gb_bench_now_ns() < begin_ns + seconds * 1000000000U) {
        persist_batch(&r);
        if (lifecycle) drain_batch(&r);
    }
    cpu = cpu_seconds() - cpu;
    double rows = (double)r.rows;
    double took = (double)(r.persist_ns + r.claim_ns + r.complete_ns) / 1e9;
    gb_bench_say("{\"rows\":%" PRIu64 ",\"seconds\":%.3f,\"rows_per_s\":%.0f,\"persist_us\":%.2f,"
                 "\"claim_us\":%.2f,\"complete_us\":%.2f,\"cpu_s\":%.3f}",
                 r.rows, took, rows / took, (double)r.persist_ns / 1e3 / rows,
                 (double)r.claim_ns / 1e3 / rows, (double)r.complete_ns / 1e3 / rows, cpu);
    struct gb_op close_op = {0};
    r.waiting = 1;
    r.store->ops->close(r.store, &close_op, done, &r);
    gb_loop_run(r.loop);
    gb_sqlite_pool_free(pool);
    gb_metrics_free(metrics);
    gb_loop_drain_closing(r.loop);
    gb_loop_free(r.loop);
    return 0;
}
