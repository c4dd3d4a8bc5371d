#include "adapters/memory/memory_outbox.h"

#include <stdlib.h>

#include "adapters/memory/memory_partition.h"

enum { RECORDS_DEFAULT = 100000, ENDED_DEFAULT = 100000 };
static const int64_t ended_keep_ms = INT64_C(3600000); /* spec 05 §7: one hour */

struct memory_outbox {
    struct gb_outbox port;
    struct gb_reactor *reactor;
    size_t records_max, ended_max;
    struct gb_map
        partitions; /* partition key -> struct gb_memory_partition; marks outlive the records */
    struct gb_map identities; /* persistence identity -> row, ended ones included (spec 05 §2.1) */
    struct gb_map ids;        /* record id -> row that has not ended */
    struct gb_list ended;     /* in the order of ending */
    size_t live_count, ended_count;
    struct gb_str scratch; /* identity or partition key being looked up */
    struct gb_op *closing;
    struct gb_task close_task;
};

static struct memory_outbox *self(struct gb_outbox *o)
{
    return GB_CONTAINER_OF(o, struct memory_outbox, port);
}

/* False when the store is closing: the op is finished then. */
static bool begin(struct memory_outbox *m, struct gb_op *op, gb_done_fn *done, void *arg)
{
    gb_op_start(op, m->reactor, done, arg, NULL, m);
    if (m->closing == NULL) return true;
    gb_op_finish(op, gb_err(GB_UNAVAILABLE, "the memory outbox is closing"));
    return false;
}

static int64_t now_ms(const struct memory_outbox *m)
{
    return gb_reactor_wall_ms(m->reactor);
}

/* --- rows --- */

static void row_free(struct gb_memory_row *row)
{
    if (row == NULL) return;
    gb_envelope_unref(row->record.envelope);
    free(row->claimed_by);
    free(row->text);
    free(row);
}

static struct gb_bytes copy_text(char **at, struct gb_bytes from)
{
    if (from.size == 0) return gb_bytes(NULL, 0);
    memcpy(*at, from.data, from.size);
    struct gb_bytes copy = gb_bytes(*at, from.size);
    *at += from.size;
    return copy;
}

static struct gb_err row_new(const struct gb_outbox_record *from, struct gb_bytes identity,
                             struct gb_memory_row **out)
{
    struct gb_memory_row *row = calloc(1, sizeof *row + identity.size);
    size_t size = from->id.size + from->route_id.size + from->binding_id.size +
                  from->session_id.size + from->address.size + from->dispatch_headers.size +
                  from->ordering_key.size;
    char *text = malloc(size + 1);
    if (row == NULL || text == NULL) {
        free(text);
        free(row);
        return gb_err_no_memory("an outbox record");
    }
    row->text = text;
    row->record = *from;
    row->record.id = copy_text(&text, from->id);
    row->record.route_id = copy_text(&text, from->route_id);
    row->record.binding_id = copy_text(&text, from->binding_id);
    row->record.session_id = copy_text(&text, from->session_id);
    row->record.address = copy_text(&text, from->address);
    row->record.dispatch_headers = copy_text(&text, from->dispatch_headers);
    row->record.ordering_key = copy_text(&text, from->ordering_key);
    row->record.envelope = gb_envelope_ref(from->envelope);
    row->record.first_attempted_at_ms = 0;
    row->record.claim_version = 0;
    row->record.replay_count = 0;
    memcpy(row + 1, identity.data, identity.size);
    row->identity = gb_bytes(row + 1, identity.size);
    *out = row;
    return gb_ok();
}

static void forget_oldest_ended(struct memory_outbox *m)
{
    struct gb_list_node *node = gb_list_pop(&m->ended);
    struct gb_memory_row *row = GB_CONTAINER_OF(node, struct gb_memory_row, state_node);
    gb_map_remove(&m->identities, row->identity);
    m->ended_count--;
    row_free(row);
}

static void sweep_ended(struct memory_outbox *m)
{
    while (!gb_list_empty(&m->ended)) {
        const struct gb_memory_row *row =
            GB_CONTAINER_OF(gb_list_first(&m->ended), struct gb_memory_row, state_node);
        if (now_ms(m) - row->ended_at_ms < ended_keep_ms && m->ended_count <= m->ended_max) return;
        forget_oldest_ended(m);
    }
}

/* Completed or expired: of the row only the identity stays. */
static void end_row(struct memory_outbox *m, struct gb_memory_row *row,
                    enum gb_outbox_status status)
{
    gb_memory_partition_remove(row->partition, row);
    gb_map_remove(&m->ids, row->record.id);
    m->live_count--;
    gb_envelope_unref(row->record.envelope);
    free(row->claimed_by);
    free(row->text);
    row->record = (struct gb_outbox_record){0};
    row->claimed_by = NULL;
    row->text = NULL;
    row->status = status;
    row->ended_at_ms = now_ms(m);
    gb_list_push(&m->ended, &row->state_node);
    m->ended_count++;
    sweep_ended(m);
}

/* A partition stays for good, because its mark must; there are as many as sessions and bindings. */
static struct gb_err partition_of(struct memory_outbox *m, struct gb_bytes name,
                                  struct gb_memory_partition **out)
{
    struct gb_memory_partition *p = gb_map_get(&m->partitions, name);
    if (p == NULL) {
        if (m->partitions.count >= m->records_max) {
            return gb_err(GB_UNAVAILABLE, "the memory outbox has %zu partitions, its limit",
                          m->partitions.count);
        }
        p = malloc(sizeof *p);
        if (p == NULL) return gb_err_no_memory("an outbox partition");
        gb_memory_partition_init(p);
        struct gb_err err = gb_map_put(&m->partitions, name, p);
        if (gb_failed(err)) {
            free(p);
            return err;
        }
    }
    *out = p;
    return gb_ok();
}

/* --- persist --- */

/* Each part is preceded by its length, so that no two identities are spelled alike. */
static struct gb_err build_identity(struct memory_outbox *m, const struct gb_outbox_record *r)
{
    const struct gb_bytes session = r->session_id;
    const struct gb_bytes parts[] = {session.size > 0 ? session : r->binding_id, r->envelope->id,
                                     r->binding_id};
    gb_str_clear(&m->scratch);
    gb_str_append_char(&m->scratch, session.size > 0 ? 'S' : 'B');
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        uint8_t size[8];
        gb_put_u64(size, parts[i].size);
        gb_str_append(&m->scratch, gb_bytes(size, sizeof size));
        gb_str_append(&m->scratch, parts[i]);
    }
    return gb_str_check(&m->scratch, "an outbox identity");
}

static struct gb_err index_row(struct memory_outbox *m, struct gb_memory_row *row)
{
    struct gb_err err = gb_map_put(&m->identities, row->identity, row);
    if (gb_failed(err)) return err;
    err = gb_map_put(&m->ids, row->record.id, row);
    if (gb_failed(err)) goto no_id;
    gb_str_clear(&m->scratch);
    gb_outbox_partition(&m->scratch, row->record.session_id, row->record.binding_id);
    err = gb_str_check(&m->scratch, "a partition key");
    if (gb_failed(err)) goto no_partition;
    struct gb_memory_partition *p = NULL;
    err = partition_of(m, gb_str_bytes(&m->scratch), &p);
    if (gb_failed(err)) goto no_partition;
    GB_ASSERT(p != NULL);
    row->record.seq = p->seq + 1;
    err = gb_memory_partition_add(p, row);
    if (gb_failed(err)) goto no_partition;
    p->seq++;
    m->live_count++;
    return err;
no_partition:
    gb_map_remove(&m->ids, row->record.id);
no_id:
    gb_map_remove(&m->identities, row->identity);
    return err;
}

/* `*out` stays NULL when the identity exists: an ended one counts as existing (spec 05 §2.3). */
static struct gb_err store_record(struct memory_outbox *m, const struct gb_outbox_record *record,
                                  struct gb_memory_row **out)
{
    struct gb_err err = build_identity(m, record);
    if (gb_failed(err)) return err;
    if (gb_map_has(&m->identities, gb_str_bytes(&m->scratch))) return err;
    if (gb_map_has(&m->ids, record->id)) {
        return gb_err(GB_INVALID_OUTBOX_RECORD, "outbox record id %.*s names another message",
                      (int)record->id.size, (const char *)record->id.data);
    }
    if (m->live_count >= m->records_max) {
        return gb_err(GB_UNAVAILABLE, "the memory outbox holds %zu records, its limit",
                      m->live_count);
    }
    struct gb_memory_row *row = NULL;
    err = row_new(record, gb_str_bytes(&m->scratch), &row);
    if (gb_failed(err)) return err;
    GB_ASSERT(row != NULL);
    if (row->record.created_at_ms == 0) row->record.created_at_ms = now_ms(m);
    err = index_row(m, row);
    if (gb_failed(err)) {
        row_free(row);
        return err;
    }
    *out = row;
    return err;
}

static void undo(struct memory_outbox *m, struct gb_memory_row *stored)
{
    while (stored != NULL) {
        struct gb_memory_row *row = stored;
        stored = row->next;
        gb_memory_partition_remove(row->partition, row);
        gb_map_remove(&m->ids, row->record.id);
        gb_map_remove(&m->identities, row->identity);
        m->live_count--;
        row_free(row);
    }
}

static void persist(struct gb_outbox *o, struct gb_outbox_persist *q, gb_done_fn *done, void *arg)
{
    struct memory_outbox *m = self(o);
    if (!begin(m, &q->op, done, arg)) return;
    sweep_ended(m);
    struct gb_err err = gb_ok();
    struct gb_memory_row *stored = NULL;
    size_t count = 0;
    for (size_t i = 0; i < q->count && !gb_failed(err); i++) {
        struct gb_memory_row *row = NULL;
        err = store_record(m, &q->records[i], &row);
        if (row == NULL) continue;
        row->next = stored;
        stored = row;
        count++;
    }
    if (gb_failed(err)) {
        undo(m, stored);
        count = 0;
    }
    q->stored = count;
    if (!gb_failed(err) && q->count > 0 && count == 0)
        err = gb_err(GB_DUPLICATE_RECORD, "all %zu records are already in the outbox", q->count);
    gb_op_finish(&q->op, err);
}

/* --- fenced calls --- */

static struct gb_err stale(const struct gb_token *token, const char *why)
{
    return gb_err(GB_STALE_FENCING_TOKEN, "fencing token of %.*s, version %llu: %s",
                  (int)token->owner.size, (const char *)token->owner.data,
                  (unsigned long long)token->version, why);
}

/* Validity, then the mark, then its raise (spec 05 §2.3, §2.5). */
static struct gb_err pass_fence(struct memory_outbox *m, struct gb_bytes partition,
                                const struct gb_token *token, struct gb_memory_partition **out)
{
    if (!gb_token_valid(token)) return stale(token, "owner or version is empty");
    struct gb_memory_partition *p = NULL;
    struct gb_err err = partition_of(m, partition, &p);
    if (gb_failed(err)) return err;
    GB_ASSERT(p != NULL);
    if (token->version < p->mark) return stale(token, "a later owner was here");
    gb_memory_partition_raise(p, token->version);
    *out = p;
    return err;
}

static struct gb_err claim_row(struct memory_outbox *m, struct gb_memory_partition *p,
                               struct gb_memory_row *row, const struct gb_outbox_claim *q,
                               struct gb_outbox_batch *batch)
{
    char *owner = gb_bytes_dup(q->token.owner);
    if (owner == NULL) return gb_err_no_memory("a claim");
    struct gb_outbox_record claimed = row->record;
    claimed.claim_version = q->token.version;
    if (claimed.replay_count < UINT32_MAX) claimed.replay_count++;
    if (claimed.first_attempted_at_ms == 0) claimed.first_attempted_at_ms = now_ms(m);
    gb_envelope_ref(claimed.envelope);
    struct gb_err err = gb_outbox_batch_add(batch, &claimed);
    if (gb_failed(err)) {
        gb_envelope_unref(claimed.envelope);
        free(owner);
        return err;
    }
    gb_memory_partition_take(p, row);
    row->record.replay_count = claimed.replay_count;
    row->record.first_attempted_at_ms = claimed.first_attempted_at_ms;
    free(row->claimed_by);
    row->claimed_by = owner;
    return err;
}

/* A failure after some rows is a short batch, which is legal (spec 05 §2.3). */
static struct gb_err claim_rows(struct memory_outbox *m, struct gb_memory_partition *p,
                                struct gb_outbox_claim *q)
{
    GB_ASSERT(p != NULL);
    if (q->limit == 0 || gb_memory_partition_next(p) == NULL) return gb_ok();
    uint32_t limit = q->limit < p->rows ? q->limit : p->rows;
    struct gb_outbox_batch *batch;
    struct gb_err err = gb_outbox_batch_new(limit, &batch);
    if (gb_failed(err)) return err;
    struct gb_memory_row *taken = NULL;
    while (batch->count < limit) {
        struct gb_memory_row *row = gb_memory_partition_next(p);
        if (row == NULL) break;
        err = claim_row(m, p, row, q, batch);
        if (gb_failed(err)) break;
        row->next = taken;
        taken = row;
    }
    for (; taken != NULL; taken = taken->next) gb_memory_partition_taken(p, taken);
    if (batch->count == 0) {
        gb_outbox_batch_free(batch);
        return err;
    }
    q->batch = batch;
    return gb_ok();
}

static void claim(struct gb_outbox *o, struct gb_outbox_claim *q, gb_done_fn *done, void *arg)
{
    struct memory_outbox *m = self(o);
    q->batch = NULL;
    if (!begin(m, &q->op, done, arg)) return;
    struct gb_memory_partition *p = NULL;
    struct gb_err err = pass_fence(m, q->partition, &q->token, &p);
    if (!gb_failed(err)) err = claim_rows(m, p, q);
    gb_op_finish(&q->op, err);
}

static struct gb_err settle_row(struct memory_outbox *m, const struct gb_outbox_settle *q)
{
    if (!gb_token_valid(&q->token)) return stale(&q->token, "owner or version is empty");
    struct gb_memory_row *row = gb_map_get(&m->ids, q->id);
    if (row == NULL || row->status != GB_OUTBOX_CLAIMED ||
        row->partition != gb_map_get(&m->partitions, q->partition) ||
        row->record.claim_version != q->token.version ||
        !gb_bytes_equal_c(q->token.owner, row->claimed_by))
        return stale(&q->token, "it does not hold the claim of this record");
    if (q->kind == GB_OUTBOX_COMPLETE) {
        end_row(m, row, GB_OUTBOX_COMPLETED);
    } else {
        gb_memory_partition_release(row->partition, row);
        free(row->claimed_by);
        row->claimed_by = NULL;
    }
    return gb_ok();
}

static void settle(struct gb_outbox *o, struct gb_outbox_settle *q, gb_done_fn *done, void *arg)
{
    struct memory_outbox *m = self(o);
    if (!begin(m, &q->op, done, arg)) return;
    gb_op_finish(&q->op, settle_row(m, q));
}

static uint64_t expire_rows(struct memory_outbox *m, struct gb_memory_partition *p,
                            int64_t cutoff_ms)
{
    GB_ASSERT(p != NULL);
    const struct gb_memory_heap *pending = &p->heap[GB_MEMORY_PENDING];
    struct gb_memory_row *due =
        NULL; /* ending a row reorders the heap, so they are collected first */
    for (uint32_t i = 1; i <= pending->count; i++) {
        struct gb_memory_row *row = pending->rows[i];
        if (row->record.expires_at_ms <= 0 || row->record.expires_at_ms >= cutoff_ms) continue;
        row->next = due;
        due = row;
    }
    uint64_t count = 0;
    while (due != NULL) {
        struct gb_memory_row *row = due;
        due = row->next;
        end_row(m, row, GB_OUTBOX_EXPIRED); /* `row` may be freed from here on */
        count++;
    }
    return count;
}

static void expire(struct gb_outbox *o, struct gb_outbox_expire *q, gb_done_fn *done, void *arg)
{
    struct memory_outbox *m = self(o);
    q->expired = 0;
    if (!begin(m, &q->op, done, arg)) return;
    struct gb_memory_partition *p = NULL;
    struct gb_err err = pass_fence(m, q->partition, &q->token, &p);
    if (!gb_failed(err)) q->expired = expire_rows(m, p, q->cutoff_ms);
    gb_op_finish(&q->op, err);
}

/* --- counts --- */

static void depth(struct gb_outbox *o, struct gb_outbox_depth *q, gb_done_fn *done, void *arg)
{
    struct memory_outbox *m = self(o);
    if (!begin(m, &q->op, done, arg)) return;
    const struct gb_memory_partition *p = gb_map_get(&m->partitions, q->partition);
    uint64_t pending = p == NULL ? 0 : p->heap[GB_MEMORY_PENDING].count;
    q->pending = pending < q->limit ? pending : q->limit;
    gb_op_finish(&q->op, gb_ok());
}

static void stats(struct gb_outbox *o, struct gb_outbox_stats *q, gb_done_fn *done, void *arg)
{
    struct memory_outbox *m = self(o);
    if (!begin(m, &q->op, done, arg)) return;
    static const struct gb_memory_partition nothing;
    const struct gb_memory_partition *p = gb_map_get(&m->partitions, q->partition);
    if (p == NULL) p = &nothing;
    q->pending = p->heap[GB_MEMORY_PENDING].count;
    q->claimed = p->rows - p->heap[GB_MEMORY_PENDING].count;
    q->oldest_pending_ms = gb_memory_partition_oldest_ms(p);
    q->mark = p->mark;
    gb_op_finish(&q->op, gb_ok());
}

/* --- construction and close --- */

static void outbox_free(struct memory_outbox *m)
{
    size_t cursor = 0;
    struct gb_bytes name;
    void *value;
    while (gb_map_next(&m->identities, &cursor, &name, &value)) row_free(value);
    cursor = 0;
    while (gb_map_next(&m->partitions, &cursor, &name, &value)) {
        gb_memory_partition_deinit(value);
        free(value);
    }
    gb_map_deinit(&m->identities);
    gb_map_deinit(&m->ids);
    gb_map_deinit(&m->partitions);
    gb_str_deinit(&m->scratch);
    free(m);
}

static void run_close(struct gb_task *task)
{
    struct memory_outbox *m = GB_CONTAINER_OF(task, struct memory_outbox, close_task);
    struct gb_op *op = m->closing;
    outbox_free(m);
    gb_op_finish(op, gb_ok());
}

static void close_store(struct gb_outbox *o, struct gb_op *op, gb_done_fn *done, void *arg)
{
    struct memory_outbox *m = self(o);
    if (!begin(m, op, done, arg)) return;
    m->closing = op;
    m->close_task.run = run_close;
    gb_reactor_defer(m->reactor, &m->close_task);
}

static const struct gb_outbox_ops ops = {
    .persist = persist,
    .claim = claim,
    .settle = settle,
    .expire = expire,
    .depth = depth,
    .stats = stats,
    .close = close_store,
};

struct gb_err gb_memory_outbox_new(struct gb_reactor *r, const struct gb_memory_outbox_cfg *cfg,
                                   struct gb_outbox **out)
{
    struct memory_outbox *m = calloc(1, sizeof *m);
    if (m == NULL) return gb_err_no_memory("the memory outbox");
    m->port.ops = &ops;
    m->reactor = r;
    m->records_max = cfg->records_max > 0 ? cfg->records_max : RECORDS_DEFAULT;
    m->ended_max = cfg->ended_max > 0 ? cfg->ended_max : ENDED_DEFAULT;
    gb_list_init(&m->ended);
    *out = &m->port;
    return gb_ok();
}
