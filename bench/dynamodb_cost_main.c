/* What a message costs in DynamoDB: records of 1 KB through persist, claim and complete, and the
 * capacity units by call and index, as the endpoint reports them (ReturnConsumedCapacity) and as
 * our meter computes them from the items of one record in a hundred.
 *
 *   .venv/bin/python tests/e2e/emulators.py --emulator dynoxide \
 *       build/bin/dynamodb_cost [--messages N] [--direct 0|1] [--payload BYTES] [--text 0|1]
 *       build/bin/dynamodb_cost --backlog N     claims of 10 beside N records: units and time
 *
 * `--direct 1`: the process holds the partition (docs/decisions/0623). Prints Markdown. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/dynamodb/dynamodb_meter.h"
#include "adapters/dynamodb/dynamodb_outbox.h"
#include "adapters/dynamodb/dynamodb_tables.h"
#include "base/duration.h"
#include "bench_process.h"
#include "io/http_curl.h"

enum { BATCH = 100, PAYLOAD_MAX = 65536, ID_SIZE = 32 };
#define TABLE "outbox"
#define PARTITION "SESSION#bench"

enum stage { PERSISTED, CLAIMED, COMPLETED, STAGES };
static const char *const stage_names[STAGES] = {"persist", "claim", "complete"};

struct run {
    struct gb_loop *loop;
    struct gb_http *http;
    struct gb_aws_credentials *credentials;
    struct gb_dynamodb_client *client, *observer;
    struct gb_outbox *store;
    const char *endpoint;
    bool direct, held;
    bool patient; /* a first claim reads the whole partition for its mark */
    size_t waiting;
    size_t payload_size;
    uint8_t payload[PAYLOAD_MAX];
    uint64_t rows;
    struct gb_outbox_persist persists[BATCH];
    struct gb_outbox_record records[BATCH];
    char ids[BATCH][ID_SIZE];
    struct gb_outbox_settle settles[BATCH];
    struct gb_outbox_claim claim;
    /* of the first record of each batch */
    struct gb_dynamodb_call peek;
    struct gb_str item; /* as it was before; empty: not there */
    struct gb_dynamodb_units metered[STAGES];
    uint64_t samples;
    size_t item_bytes[STAGES];
};

static const struct gb_token token = {{(const uint8_t *)"bridge-1#0123456789abcdef", 25}, 1};

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

static void wait_for(struct run *r)
{
    if (r->waiting > 0) gb_loop_run(r->loop);
}

/* --- the process --- */

static const char *env(void *ctx, const char *name)
{
    const struct run *r = ctx;
    if (strcmp(name, "AWS_REGION") == 0) return "eu-west-1";
    return strcmp(name, "AWS_ENDPOINT_URL_DYNAMODB") == 0 ? r->endpoint : NULL;
}

static struct gb_err no_file(void *ctx, const char *path, struct gb_str *out)
{
    (void)ctx;
    (void)out;
    return gb_err(GB_NOT_FOUND, "%s", path);
}

static bool holds(void *arg, struct gb_bytes partition, struct gb_token *out)
{
    const struct run *r = arg;
    (void)partition;
    *out = token;
    return r->direct;
}

static void open_all(struct run *r)
{
    must(gb_loop_new(&r->loop));
    struct gb_reactor *reactor = gb_loop_reactor(r->loop);
    const struct gb_http_curl_cfg http = {.connections_max = 16};
    must(gb_http_curl_new(r->loop, &http, &r->http));
    const struct gb_aws_env env_of_run = {.get = env, .read_file = no_file, .ctx = r};
    const struct gb_aws_credentials_cfg credentials = {.reactor = reactor,
                                                       .http = r->http,
                                                       .env = env_of_run,
                                                       .access_key_id = "AKIDEXAMPLE",
                                                       .secret_access_key = "secret"};
    must(gb_aws_credentials_new(&credentials, &r->credentials));
    const struct gb_dynamodb_client_cfg client = {
        .reactor = reactor, .http = r->http, .credentials = r->credentials, .env = env_of_run};
    must(gb_dynamodb_client_new(&client, &r->client));
    must(gb_dynamodb_client_new(&client, &r->observer));
    const struct gb_dynamodb_outbox_cfg cfg = {.reactor = reactor,
                                               .client = r->client,
                                               .table = TABLE,
                                               .stale_claim_ns = 35 * GB_SEC,
                                               .holds = holds,
                                               .holds_arg = r};
    must(gb_dynamodb_outbox_new(&cfg, &r->store));
}

static void observe(struct run *r)
{
    r->peek.op.deadline_ns = gb_reactor_now_ns(gb_loop_reactor(r->loop)) + (uint64_t)(20 * GB_SEC);
    r->waiting = 1;
    gb_dynamodb_start(r->observer, &r->peek, done, r);
    wait_for(r);
}

static void create_table(struct run *r)
{
    gb_dynamodb_begin(&r->peek, GB_DYNAMODB_CREATE_TABLE, TABLE);
    gb_dynamodb_w_table(&r->peek.w, gb_dynamodb_table_of(GB_DYNAMODB_OUTBOX));
    observe(r);
}

/* --- the meter --- */

static uint64_t writes(const struct run *r)
{
    return gb_dynamodb_usage_sum(r->client, NULL, GB_DYNAMODB_PUT_ITEM).calls +
           gb_dynamodb_usage_sum(r->client, NULL, GB_DYNAMODB_UPDATE_ITEM).calls +
           gb_dynamodb_usage_sum(r->client, NULL, GB_DYNAMODB_TRANSACT_WRITE_ITEMS).calls;
}

/* The write that led here, of the first record of the batch; `before`: writes until then. */
static void meter(struct run *r, enum stage stage, uint64_t before)
{
    char sort_key[ID_SIZE + 32];
    (void)snprintf(sort_key, sizeof sort_key, "OUTBOX#%.*s#to-sqs", ID_SIZE, r->ids[0]);
    gb_dynamodb_begin(&r->peek, GB_DYNAMODB_GET_ITEM, TABLE);
    gb_dynamodb_object(&r->peek, GB_DYNAMODB_KEY);
    gb_dynamodb_w_s_c(&r->peek.w, "PK", PARTITION);
    gb_dynamodb_w_s_c(&r->peek.w, "SK", sort_key);
    gb_dynamodb_object_end(&r->peek);
    gb_dynamodb_flag(&r->peek, GB_DYNAMODB_CONSISTENT_READ);
    observe(r);
    struct gb_bytes after = r->peek.answer.item;
    if (writes(r) != before) {
        must(gb_dynamodb_meter_write(gb_dynamodb_table_of(GB_DYNAMODB_OUTBOX),
                                     gb_str_bytes(&r->item), after, stage == CLAIMED,
                                     &r->metered[stage]));
    }
    must(gb_dynamodb_item_size(after, &r->item_bytes[stage]));
    gb_str_clear(&r->item);
    gb_str_append(&r->item, after);
}

/* --- a batch --- */

static void make_id(char out[ID_SIZE], uint64_t seed)
{
    for (size_t i = 0; i < ID_SIZE; i++) {
        if (i % 16 == 0)
            seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        out[i] = "0123456789abcdef"[seed >> (i % 16 * 4) & 15];
    }
}

static struct gb_envelope *make_envelope(struct run *r, const char id[ID_SIZE])
{
    struct gb_envelope *e = NULL;
    must(gb_envelope_new(r->payload_size, &e));
    must(gb_envelope_set_id(e, gb_bytes(id, ID_SIZE)));
    must(gb_envelope_set_subject(e, gb_bytes_c("bench/sensor-17")));
    must(gb_envelope_set_payload(e, gb_bytes(r->payload, r->payload_size)));
    must(gb_envelope_put_text(e, "mqtt.message-id", gb_bytes(id, ID_SIZE)));
    must(gb_envelope_put_number(e, "x-bridge.generated-id", GB_VALUE_BOOL, 1));
    must(gb_envelope_put_text(e, "mqtt.topic", gb_bytes_c("bench/sensor-17")));
    must(gb_envelope_put_number(e, "mqtt.retained", GB_VALUE_BOOL, 0));
    must(gb_envelope_put_number(e, "mqtt.qos", GB_VALUE_INT, 1));
    return e;
}

static void persist(struct run *r)
{
    r->waiting = BATCH;
    for (size_t i = 0; i < BATCH; i++) {
        make_id(r->ids[i], ++r->rows);
        r->records[i] = (struct gb_outbox_record){.id = gb_bytes(r->ids[i], ID_SIZE),
                                                  .route_id = gb_bytes_c("sensors"),
                                                  .binding_id = gb_bytes_c("to-sqs"),
                                                  .session_id = gb_bytes_c("bench"),
                                                  .address = gb_bytes_c("bench-queue"),
                                                  .envelope = make_envelope(r, r->ids[i])};
        r->persists[i] = (struct gb_outbox_persist){.records = &r->records[i], .count = 1};
        r->store->ops->persist(r->store, &r->persists[i], done, r);
    }
    wait_for(r);
    for (size_t i = 0; i < BATCH; i++) gb_envelope_unref(r->records[i].envelope);
}

#define PATIENCE_NS (UINT64_C(600) * 1000 * 1000 * 1000)

static size_t claim(struct run *r, uint32_t limit)
{
    r->claim = (struct gb_outbox_claim){
        .partition = gb_bytes_c(PARTITION), .token = token, .limit = limit};
    if (r->patient) r->claim.op.deadline_ns = gb_bench_now_ns() + PATIENCE_NS;
    r->waiting = 1;
    r->store->ops->claim(r->store, &r->claim, done, r);
    wait_for(r);
    return r->claim.batch == NULL ? 0 : r->claim.batch->count;
}

static void complete(struct run *r)
{
    size_t count = r->claim.batch->count;
    r->waiting = count;
    for (size_t i = 0; i < count; i++) {
        r->settles[i] = (struct gb_outbox_settle){.kind = GB_OUTBOX_COMPLETE,
                                                  .partition = gb_bytes_c(PARTITION),
                                                  .id = r->claim.batch->records[i].id,
                                                  .token = token};
        r->store->ops->settle(r->store, &r->settles[i], done, r);
    }
    wait_for(r);
    gb_outbox_batch_free(r->claim.batch);
}

static void run_batch(struct run *r)
{
    gb_str_clear(&r->item);
    uint64_t before = writes(r);
    persist(r);
    meter(r, PERSISTED, before);
    before = writes(r);
    if (claim(r, BATCH) != BATCH) gb_bench_die("short claim");
    meter(r, CLAIMED, before);
    before = writes(r);
    complete(r);
    meter(r, COMPLETED, before);
    r->samples++;
}

/* --- the tables --- */

static double per_message(const struct run *r, uint64_t thousandths)
{
    return (double)thousandths / 1000 / (double)r->rows;
}

static void show_series(void *arg, const struct gb_dynamodb_usage *u)
{
    const struct run *r = arg;
    if (u->write_units == 0 && u->read_units == 0) return;
    (void)printf("| %s | %s | %" PRIu64 " | %.1f | %.1f | %.3f | %.3f |\n",
                 gb_dynamodb_action_name(u->action), u->index[0] == '\0' ? "table" : u->index,
                 u->calls, (double)u->write_units / 1000, (double)u->read_units / 1000,
                 per_message(r, u->write_units), per_message(r, u->read_units));
}

static void show_meter(const struct run *r)
{
    const struct gb_dynamodb_table *table = gb_dynamodb_table_of(GB_DYNAMODB_OUTBOX);
    double all = 0;
    for (size_t s = 0; s < STAGES; s++) {
        const struct gb_dynamodb_units *u = &r->metered[s];
        double n = 1000.0 * (double)r->samples;
        (void)printf("| %s | %zu | %.2f |", stage_names[s], r->item_bytes[s], (double)u->table / n);
        for (size_t i = 0; i < table->index_count; i++)
            (void)printf(" %.2f |", (double)u->index[i] / n);
        (void)printf(" %.2f |\n", (double)u->total / n);
        all += (double)u->total / n;
    }
    (void)printf("\nAs metered, of the record alone: %.2f write units.\n", all);
}

static void show(const struct run *r)
{
    struct gb_dynamodb_usage sum = gb_dynamodb_usage_sum(r->client, NULL, GB_DYNAMODB_ACTIONS);
    (void)printf("%" PRIu64 " messages of %zu bytes, %s: **%.3f write units and %.3f read units a "
                 "message** as reported.\n\n",
                 r->rows, r->payload_size, r->direct ? "partition held" : "ordinary way",
                 per_message(r, sum.write_units), per_message(r, sum.read_units));
    (void)printf("| call | on | calls | write units | read units | writes a message | reads a "
                 "message |\n|---|---|---|---|---|---|---|\n");
    gb_dynamodb_usage_visit(r->client, show_series, (void *)(uintptr_t)r);
    (void)printf("\n| metered | item bytes | table |");
    const struct gb_dynamodb_table *table = gb_dynamodb_table_of(GB_DYNAMODB_OUTBOX);
    for (size_t i = 0; i < table->index_count; i++) (void)printf(" %s |", table->indexes[i].name);
    (void)printf(" all |\n|---|---|---|");
    for (size_t i = 0; i < table->index_count; i++) (void)printf("---|");
    (void)printf("---|\n");
    show_meter(r);
}

static void close_all(struct run *r)
{
    struct gb_op op = {0};
    struct gb_op clients[2];
    memset(clients, 0, sizeof clients);
    r->waiting = 1;
    r->store->ops->close(r->store, &op, done, r);
    wait_for(r);
    r->waiting = 2;
    gb_dynamodb_client_close(r->client, &clients[0], done, r);
    gb_dynamodb_client_close(r->observer, &clients[1], done, r);
    wait_for(r);
}

/* --- what a claim costs beside a backlog --- */

enum { CLAIMS = 20, WARM = 30, CLAIM_SIZE = 10 };

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

struct cost {
    double reads, writes, ms;
};

static struct cost claim_cost(struct run *r)
{
    struct gb_dynamodb_usage before = gb_dynamodb_usage_sum(r->client, NULL, GB_DYNAMODB_ACTIONS);
    uint64_t start_ns = gb_bench_now_ns();
    if (claim(r, CLAIM_SIZE) != CLAIM_SIZE) gb_bench_die("short claim");
    double ms = (double)(gb_bench_now_ns() - start_ns) / 1e6;
    struct gb_dynamodb_usage after = gb_dynamodb_usage_sum(r->client, NULL, GB_DYNAMODB_ACTIONS);
    complete(r);
    return (struct cost){(double)(after.read_units - before.read_units) / 1000,
                         (double)(after.write_units - before.write_units) / 1000, ms};
}

/* `backlog` records wait in the indexes; the claims are those of a process that comes new, once its
 * sweep (docs/decisions/0623), which runs beside them, is through: they cost the same then. */
static void claim_beside(struct run *r, uint64_t backlog)
{
    double ms[CLAIMS];
    struct cost sum = {0};
    while (r->rows < backlog) {
        persist(r);
        if (r->rows % 10000 == 0) (void)fprintf(stderr, "%" PRIu64 " stored\n", r->rows);
    }
    r->direct = r->held = r->patient = true;
    (void)claim_cost(r);
    r->patient = false;
    double reads = 0;
    for (unsigned same = 0; same < WARM;) {
        double now = claim_cost(r).reads;
        same = now == reads ? same + 1 : 0;
        reads = now;
    }
    for (size_t i = 0; i < CLAIMS; i++) {
        struct cost c = claim_cost(r);
        sum.reads += c.reads;
        sum.writes += c.writes;
        ms[i] = c.ms;
    }
    qsort(ms, CLAIMS, sizeof ms[0], by_value);
    (void)printf("| %" PRIu64 " | %.1f | %.1f | %.1f | %.1f |\n", backlog, sum.reads / CLAIMS,
                 sum.writes / CLAIMS, ms[CLAIMS / 2], ms[CLAIMS - 1]);
}

int main(int argc, char **argv)
{
    static const char *const names[] = {"--messages", "--direct", "--payload", "--text",
                                        "--backlog"};
    static struct run r;
    gb_bench_check_options(argc, argv, names, sizeof names / sizeof names[0]);
    uint64_t messages = gb_bench_option_u64(argc, argv, "--messages", 10000);
    bool text = gb_bench_option_u64(argc, argv, "--text", 0) != 0;
    r.direct = gb_bench_option_u64(argc, argv, "--direct", 1) != 0;
    r.payload_size = (size_t)gb_bench_option_u64(argc, argv, "--payload", 1024);
    r.endpoint = getenv("GB_TEST_DYNAMODB_ENDPOINT");
    if (r.endpoint == NULL) gb_bench_die("GB_TEST_DYNAMODB_ENDPOINT names no DynamoDB");
    if (r.payload_size > PAYLOAD_MAX) gb_bench_die("--payload is 0 to %d", PAYLOAD_MAX);
    for (size_t i = 0; i < r.payload_size; i++)
        r.payload[i] = text ? (uint8_t)(i % 20 == 0 ? '"' : 'a') : (uint8_t)(i * 167 + 128);
    uint64_t backlog = gb_bench_option_u64(argc, argv, "--backlog", 0);
    if (backlog > 0) r.direct = false;
    open_all(&r);
    create_table(&r);
    if (backlog > 0) {
        claim_beside(&r, backlog);
        close_all(&r);
        return 0;
    }
    (void)claim(&r, BATCH); /* the process begins: mark, sweep, an empty partition */
    while (r.rows < messages) run_batch(&r);
    show(&r);
    close_all(&r);
    return 0;
}
