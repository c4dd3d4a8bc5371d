#include <stdlib.h>

#include "adapters/dynamodb/dynamodb_outbox_put.h"
#include "base/duration.h"

/* Sequence numbers, taken from the fence row in blocks (docs/decisions/0620), and the order in
 * which puts may go. */

enum { BLOCK = 1000 };
#define TAKE_TIMEOUT_NS (10 * GB_SEC)

/* One request for a block, for all jobs of the partition that wait. It outlives them. */
struct gb_dbox_taking {
    struct gb_dbox *s;
    struct gb_dbox_partition *partition;
    struct gb_dynamodb_call call;
    struct gb_str scratch;
};

static void number_job(struct gb_dbox *s, struct gb_dbox_job *job);

/* --- readiness --- */

static void maybe_ready(struct gb_dbox *s, struct gb_dbox_job *job)
{
    if (job->state != GB_DBOX_JOB_WAITING || job->record.seq == 0) return;
    if (job->line != NULL && gb_list_first(&job->line->jobs) != &job->line_node) return;
    job->state = GB_DBOX_JOB_READY;
    gb_list_push(&s->ready, &job->node);
}

static void line_free(struct gb_dbox *s, struct gb_dbox_line *line)
{
    gb_map_remove(&s->lines, gb_str_bytes(&line->name));
    gb_str_deinit(&line->name);
    free(line);
}

static struct gb_dbox_line *line_of(struct gb_dbox *s, const struct gb_dbox_job *job)
{
    struct gb_str name = {0};
    gb_str_append_u64(&name, job->partition->key.size); /* no two pairs make one name */
    gb_str_append_char(&name, ' ');
    gb_str_append(&name, job->partition->key);
    gb_str_append(&name, job->record.ordering_key);
    struct gb_dbox_line *line = gb_map_get(&s->lines, gb_str_bytes(&name));
    if (line != NULL || name.failed) {
        gb_str_deinit(&name);
        return line;
    }
    line = calloc(1, sizeof *line);
    if (line == NULL || gb_failed(gb_map_put(&s->lines, gb_str_bytes(&name), line))) {
        free(line);
        gb_str_deinit(&name);
        return NULL;
    }
    gb_list_init(&line->jobs);
    line->name = name;
    return line;
}

void gb_dbox_job_leave(struct gb_dbox *s, struct gb_dbox_job *job)
{
    struct gb_dbox_line *line = job->line;
    job->state = GB_DBOX_JOB_DONE;
    gb_list_remove(&job->node);
    if (line == NULL) return;
    job->line = NULL;
    gb_list_remove(&job->line_node);
    struct gb_list_node *next = gb_list_first(&line->jobs);
    if (next == NULL) {
        line_free(s, line);
    } else {
        maybe_ready(s, GB_CONTAINER_OF(next, struct gb_dbox_job, line_node));
    }
}

/* --- numbers --- */

static struct gb_err read_block(struct gb_dbox_taking *k, uint64_t *last)
{
    const struct gb_dynamodb_source from = {k->s->table, "fence row"};
    struct gb_dynamodb_field field = {"seq_counter", GB_DYNAMODB_FIELD_U64, true, last, false};
    struct gb_err err = k->call.op.result;
    if (!gb_failed(err))
        err = gb_dynamodb_item_read(&from, k->call.answer.attributes, &k->scratch, &field, 1);
    if (!gb_failed(err) && *last < BLOCK) {
        err = gb_err(GB_INVALID_CONFIG, "table \"%s\", fence row: seq_counter is not a count",
                     k->s->table);
    }
    /* Nothing of a message is in it: no message is to blame, and none may be turned away. */
    if (err.class_ == GB_CLASS_REJECTED || err.code == GB_INVALID_CONFIG) {
        err = gb_err_in(err, "fence row of %s, seq_counter", k->partition->name);
        err.code = GB_UNAVAILABLE;
        err.class_ = gb_code_class(GB_UNAVAILABLE);
    }
    return err;
}

static void give_numbers(struct gb_dbox *s, struct gb_dbox_partition *p)
{
    while (!gb_list_empty(&p->seq_waiting) && p->seq_next <= p->seq_end && p->seq_end != 0) {
        struct gb_list_node *node = gb_list_pop(&p->seq_waiting);
        struct gb_dbox_job *job = GB_CONTAINER_OF(node, struct gb_dbox_job, node);
        job->record.seq = p->seq_next++;
        maybe_ready(s, job);
    }
}

static struct gb_err take_block(struct gb_dbox *s, struct gb_dbox_partition *p);

static void fail_waiting(struct gb_dbox_partition *p, struct gb_err err)
{
    while (!gb_list_empty(&p->seq_waiting)) {
        struct gb_list_node *node = gb_list_pop(&p->seq_waiting);
        struct gb_dbox_job *job = GB_CONTAINER_OF(node, struct gb_dbox_job, node);
        job->number_failed(job, err);
    }
}

static void taken(struct gb_op *op, void *arg)
{
    struct gb_dbox_taking *k = arg;
    struct gb_dbox *s = k->s;
    struct gb_dbox_partition *p = k->partition;
    uint64_t last = 0;
    (void)op;
    struct gb_err err = read_block(k, &last);
    p->taking = NULL;
    s->takings--;
    gb_str_deinit(&k->scratch);
    gb_dynamodb_call_deinit(&k->call);
    free(k);
    p->users++; /* a task that ends here may be its last */
    if (!gb_failed(err)) {
        p->seq_next = last - BLOCK + 1;
        p->seq_end = last;
        p->seq_taken_ms = gb_dbox_now_ms(s);
        give_numbers(s, p);
        if (!gb_list_empty(&p->seq_waiting)) err = take_block(s, p);
    }
    if (gb_failed(err)) fail_waiting(p, err);
    p->users--;
    gb_dbox_puts_dispatch(s);
    gb_dbox_close_if_idle(s);
}

/* Taken twice, because an answer got lost, a block is a gap, and gaps are allowed. */
static struct gb_err take_block(struct gb_dbox *s, struct gb_dbox_partition *p)
{
    static const struct gb_dynamodb_name names[] = {{"#ttl", "ttl"}};
    struct gb_dbox_taking *k = calloc(1, sizeof *k);
    if (k == NULL) return gb_err_no_memory("outbox sequence numbers");
    *k = (struct gb_dbox_taking){.s = s, .partition = p};
    struct gb_dynamodb_call *call = &k->call;
    gb_dynamodb_begin(call, GB_DYNAMODB_UPDATE_ITEM, s->table);
    call->repeatable = true;
    gb_dynamodb_object(call, GB_DYNAMODB_KEY);
    gb_dbox_write_key(&call->w, p->key, gb_bytes_c(GB_DBOX_FENCE));
    gb_dynamodb_object_end(call);
    gb_dynamodb_text(call, GB_DYNAMODB_UPDATE, "SET #ttl = :ttl ADD seq_counter :count");
    gb_dynamodb_names(call, names, 1);
    gb_dynamodb_object(call, GB_DYNAMODB_VALUES);
    gb_dynamodb_w_u64(&call->w, ":ttl", gb_dbox_fence_ttl(s));
    gb_dynamodb_w_u64(&call->w, ":count", BLOCK);
    gb_dynamodb_object_end(call);
    gb_dynamodb_text(call, GB_DYNAMODB_RETURN_VALUES, "UPDATED_NEW");
    call->op.deadline_ns = gb_reactor_now_ns(s->cfg.reactor) + (uint64_t)TAKE_TIMEOUT_NS;
    p->taking = k;
    s->takings++;
    gb_dynamodb_start(s->cfg.client, call, taken, k);
    return gb_ok();
}

/* A block that is a day old goes unused: the write of the next keeps the fence row from its end. */
static void drop_old_block(const struct gb_dbox *s, struct gb_dbox_partition *p)
{
    int64_t age_ms = gb_dbox_now_ms(s) - p->seq_taken_ms;
    if (age_ms >= 0 && age_ms < GB_DBOX_DAY_MS) return;
    p->seq_next = 1;
    p->seq_end = 0;
}

static void number_job(struct gb_dbox *s, struct gb_dbox_job *job)
{
    struct gb_dbox_partition *p = job->partition;
    drop_old_block(s, p);
    gb_list_push(&p->seq_waiting, &job->node);
    give_numbers(s, p);
}

struct gb_err gb_dbox_job_start(struct gb_dbox *s, struct gb_dbox_job *job)
{
    if (job->record.ordering_key.size > 0) {
        job->line = line_of(s, job);
        if (job->line == NULL) return gb_err_no_memory("an outbox record");
        gb_list_push(&job->line->jobs, &job->line_node);
    }
    number_job(s, job);
    if (job->record.seq != 0 || job->partition->taking != NULL) return gb_ok();
    return take_block(s, job->partition);
}
