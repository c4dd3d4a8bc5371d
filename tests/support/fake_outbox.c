#include "support/fake_outbox.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/assert.h"

static void copy_text(char *to, size_t size, struct gb_bytes from)
{
    (void)snprintf(to, size, "%.*s", (int)from.size, (const char *)from.data);
}

static struct fake_row *find_identity(struct fake_outbox *f, const char *partition,
                                      struct gb_bytes envelope_id, const char *binding)
{
    for (size_t i = 0; i < f->count; i++) {
        struct fake_row *row = &f->rows[i];
        if (strcmp(row->partition, partition) == 0 && strcmp(row->binding, binding) == 0 &&
            gb_bytes_equal(row->envelope->id, envelope_id))
            return row;
    }
    return NULL;
}

static struct gb_err do_persist(struct fake_outbox *f, struct gb_outbox_persist *q)
{
    q->stored = 0;
    for (size_t i = 0; i < q->count; i++) {
        const struct gb_outbox_record *r = &q->records[i];
        struct fake_row row = {.status = GB_OUTBOX_PENDING};
        struct gb_str partition = {0};
        gb_outbox_partition(&partition, r->session_id, r->binding_id);
        copy_text(row.partition, sizeof row.partition, gb_str_bytes(&partition));
        gb_str_deinit(&partition);
        copy_text(row.binding, sizeof row.binding, r->binding_id);
        if (find_identity(f, row.partition, r->envelope->id, row.binding) != NULL) continue;
        copy_text(row.id, sizeof row.id, r->id);
        copy_text(row.route, sizeof row.route, r->route_id);
        copy_text(row.session, sizeof row.session, r->session_id);
        copy_text(row.address, sizeof row.address, r->address);
        copy_text(row.key, sizeof row.key, r->ordering_key);
        row.envelope = gb_envelope_ref(r->envelope);
        row.created_at_ms = r->created_at_ms;
        row.expires_at_ms = r->expires_at_ms;
        GB_ASSERT(f->count < FAKE_ROWS_MAX);
        f->rows[f->count++] = row;
        q->stored++;
    }
    return q->count > 0 && q->stored == 0 ? gb_err(GB_DUPLICATE_RECORD, "all known") : gb_ok();
}

static bool is_stale(struct fake_outbox *f, const struct gb_token *t)
{
    if (!gb_token_valid(t) || t->version < f->mark) return true;
    f->mark = t->version;
    return false;
}

/* Claimable (spec 05 §2.3) and not blocked by its key (§2.4): rows are in claim order here, so
 * every older open row of the key must have been taken by this same call. */
static bool is_claimable(const struct fake_outbox *f, const struct fake_row *row, uint64_t version,
                         const bool *taken)
{
    bool fenced_off = row->status == GB_OUTBOX_CLAIMED && row->version < version;
    if (row->status != GB_OUTBOX_PENDING && !fenced_off) return false;
    for (const struct fake_row *older = f->rows; row->key[0] != '\0' && older < row; older++) {
        bool open = older->status == GB_OUTBOX_PENDING || older->status == GB_OUTBOX_CLAIMED;
        if (open && !taken[older - f->rows] && strcmp(older->key, row->key) == 0 &&
            strcmp(older->partition, row->partition) == 0)
            return false;
    }
    return true;
}

static struct gb_err hand_out(struct fake_outbox *f, struct fake_row *row,
                              struct gb_outbox_claim *q)
{
    int64_t first_ms = row->first_attempted_at_ms;
    struct gb_outbox_record record = {
        .id = gb_bytes_c(row->id),
        .route_id = gb_bytes_c(row->route),
        .binding_id = gb_bytes_c(row->binding),
        .session_id = gb_bytes_c(row->session),
        .address = gb_bytes_c(row->address),
        .envelope = row->envelope,
        .ordering_key = gb_bytes_c(row->key),
        .created_at_ms = row->created_at_ms,
        .expires_at_ms = row->expires_at_ms,
        .first_attempted_at_ms = first_ms == 0 ? gb_reactor_wall_ms(f->reactor) : first_ms,
        .claim_version = q->token.version,
        .replay_count = row->replay_count + 1,
    };
    struct gb_err err = gb_outbox_batch_add(q->batch, &record);
    if (gb_failed(err)) return err;
    (void)gb_envelope_ref(row->envelope);
    row->status = GB_OUTBOX_CLAIMED;
    row->version = record.claim_version;
    row->replay_count = record.replay_count;
    row->first_attempted_at_ms = record.first_attempted_at_ms;
    return gb_ok();
}

static struct gb_err do_claim(struct fake_outbox *f, struct gb_outbox_claim *q)
{
    bool taken[FAKE_ROWS_MAX] = {false};
    q->batch = NULL;
    f->last_limit = q->limit;
    if (is_stale(f, &q->token)) return gb_err(GB_STALE_FENCING_TOKEN, "stale");
    struct gb_err err = gb_outbox_batch_new(q->limit, &q->batch);
    for (size_t i = 0; i < f->count && !gb_failed(err) && q->batch->count < q->limit; i++) {
        struct fake_row *row = &f->rows[i];
        if (!gb_bytes_equal_c(q->partition, row->partition)) continue;
        if (!is_claimable(f, row, q->token.version, taken)) continue;
        taken[i] = true;
        err = hand_out(f, row, q);
    }
    if (q->batch != NULL && q->batch->count > 0) return gb_ok(); /* a short batch is legal */
    gb_outbox_batch_free(q->batch);
    q->batch = NULL;
    return err;
}

static struct gb_err do_settle(struct fake_outbox *f, const struct gb_outbox_settle *q)
{
    for (size_t i = 0; i < f->count; i++) {
        struct fake_row *row = &f->rows[i];
        if (!gb_bytes_equal_c(q->id, row->id)) continue;
        if (row->status != GB_OUTBOX_CLAIMED || row->version != q->token.version ||
            q->token.version < f->mark)
            return gb_err(GB_STALE_FENCING_TOKEN, "not yours");
        row->status = q->kind == GB_OUTBOX_COMPLETE ? GB_OUTBOX_COMPLETED : GB_OUTBOX_PENDING;
        return gb_ok();
    }
    return gb_err(GB_STALE_FENCING_TOKEN, "unknown");
}

static struct gb_err do_expire(struct fake_outbox *f, struct gb_outbox_expire *q)
{
    q->expired = 0;
    if (is_stale(f, &q->token)) return gb_err(GB_STALE_FENCING_TOKEN, "stale");
    for (size_t i = 0; i < f->count; i++) {
        struct fake_row *row = &f->rows[i];
        if (row->status != GB_OUTBOX_PENDING || row->expires_at_ms == 0 ||
            row->expires_at_ms >= q->cutoff_ms)
            continue;
        row->status = GB_OUTBOX_EXPIRED;
        q->expired++;
    }
    return gb_ok();
}

static void cancel(struct gb_op *op)
{
    ((struct fake_outbox *)op->provider)->cancels++;
    gb_op_finish(op, gb_err(GB_CANCELLED, "cancelled"));
}

/* Starts the op and tells whether the work is to be done; `*err` is the answer when it is not or
 * when it is done and must look failed. */
static struct fake_answer begin(struct fake_outbox *f, enum fake_outbox_kind kind, struct gb_op *op,
                                gb_done_fn *done, void *arg)
{
    GB_ASSERT(op->deadline_ns > 0);
    f->calls[kind]++;
    struct fake_answer a = fake_script_take(&f->script[kind]);
    gb_op_start(op, f->reactor, done, arg, cancel, f);
    if (a.action == FAKE_HOLD) gb_list_push(&f->held, &op->node);
    if (a.action == FAKE_FAIL) gb_op_finish(op, a.err);
    return a;
}

static bool does(struct fake_answer a)
{
    return a.action == FAKE_DO || a.action == FAKE_DO_THEN_FAIL;
}

static void end(struct fake_answer a, struct gb_op *op, struct gb_err err)
{
    gb_op_finish(op, a.action == FAKE_DO_THEN_FAIL ? a.err : err);
}

static struct fake_outbox *of(struct gb_outbox *o)
{
    return GB_CONTAINER_OF(o, struct fake_outbox, outbox);
}

static void persist(struct gb_outbox *o, struct gb_outbox_persist *q, gb_done_fn *done, void *arg)
{
    struct fake_answer a = begin(of(o), FAKE_PERSIST, &q->op, done, arg);
    if (does(a)) end(a, &q->op, do_persist(of(o), q));
}

static void claim(struct gb_outbox *o, struct gb_outbox_claim *q, gb_done_fn *done, void *arg)
{
    struct fake_answer a = begin(of(o), FAKE_CLAIM, &q->op, done, arg);
    if (!does(a)) return;
    struct gb_err err = do_claim(of(o), q);
    if (a.action == FAKE_DO_THEN_FAIL) {
        gb_outbox_batch_free(q->batch);
        q->batch = NULL;
    }
    end(a, &q->op, err);
}

static void settle(struct gb_outbox *o, struct gb_outbox_settle *q, gb_done_fn *done, void *arg)
{
    enum fake_outbox_kind kind = q->kind == GB_OUTBOX_COMPLETE ? FAKE_COMPLETE : FAKE_RELEASE;
    struct fake_answer a = begin(of(o), kind, &q->op, done, arg);
    if (does(a)) end(a, &q->op, do_settle(of(o), q));
}

static void expire(struct gb_outbox *o, struct gb_outbox_expire *q, gb_done_fn *done, void *arg)
{
    struct fake_answer a = begin(of(o), FAKE_EXPIRE, &q->op, done, arg);
    if (does(a)) end(a, &q->op, do_expire(of(o), q));
}

static void depth(struct gb_outbox *o, struct gb_outbox_depth *q, gb_done_fn *done, void *arg)
{
    struct fake_answer a = begin(of(o), FAKE_DEPTH, &q->op, done, arg);
    if (!does(a)) return;
    q->pending = 0;
    for (size_t i = 0; i < of(o)->count; i++) {
        const struct fake_row *row = &of(o)->rows[i];
        q->pending += row->status == GB_OUTBOX_PENDING &&
                      gb_bytes_equal_c(q->partition, row->partition) && q->pending < q->limit;
    }
    if (of(o)->force_depth > 0) q->pending = of(o)->force_depth;
    end(a, &q->op, gb_ok());
}

static void stats(struct gb_outbox *o, struct gb_outbox_stats *q, gb_done_fn *done, void *arg)
{
    struct fake_answer a = begin(of(o), FAKE_STATS, &q->op, done, arg);
    if (!does(a)) return;
    q->pending = fake_outbox_rows(of(o), GB_OUTBOX_PENDING);
    q->claimed = fake_outbox_rows(of(o), GB_OUTBOX_CLAIMED);
    q->mark = of(o)->mark;
    end(a, &q->op, gb_ok());
}

static const struct gb_outbox_ops ops = {persist, claim, settle, expire, depth, stats, NULL};

void fake_outbox_init(struct fake_outbox *f, struct gb_reactor *r)
{
    *f = (struct fake_outbox){
        .outbox = {.ops = &ops},
        .reactor = r,
        .rows = calloc(FAKE_ROWS_MAX, sizeof(struct fake_row)),
    };
    GB_ASSERT(f->rows != NULL);
    gb_list_init(&f->held);
}

void fake_outbox_deinit(struct fake_outbox *f)
{
    for (size_t i = 0; i < f->count; i++) gb_envelope_unref(f->rows[i].envelope);
    free(f->rows);
    *f = (struct fake_outbox){0};
}

void fake_outbox_answer(struct fake_outbox *f, enum gb_code code)
{
    struct gb_list_node *n = gb_list_pop(&f->held);
    GB_ASSERT(n != NULL);
    gb_op_finish(GB_CONTAINER_OF(n, struct gb_op, node),
                 code == GB_OK ? gb_ok() : gb_err(code, "answered"));
}

size_t fake_outbox_rows(const struct fake_outbox *f, enum gb_outbox_status status)
{
    size_t n = 0;
    for (size_t i = 0; i < f->count; i++) n += f->rows[i].status == status;
    return n;
}

struct fake_row *fake_outbox_add(struct fake_outbox *f, const char *envelope_id, const char *key)
{
    GB_ASSERT(f->count < FAKE_ROWS_MAX);
    struct fake_row *row = &f->rows[f->count];
    *row = (struct fake_row){.status = GB_OUTBOX_PENDING,
                             .partition = "SESSION#s",
                             .route = "r",
                             .binding = "b",
                             .session = "s",
                             .address = "a"};
    (void)snprintf(row->id, sizeof row->id, "rec-%zu", f->count);
    (void)snprintf(row->key, sizeof row->key, "%s", key == NULL ? "" : key);
    row->created_at_ms = (int64_t)f->count + 1;
    struct gb_err err = gb_envelope_new(128, &row->envelope);
    if (!gb_failed(err)) err = gb_envelope_set_id(row->envelope, gb_bytes_c(envelope_id));
    GB_ASSERT(!gb_failed(err));
    f->count++;
    return row;
}
