#include "adapters/sqs/sqs_sender_parts.h"

/* of a request's buffer between requests: bounds what idle slots hold */
enum { KEPT_BYTES_MAX = 262144 };

/* sends passed over for one request: bounds the work when FIFO groups are busy */
enum { BLOCKED_MAX = 256 };

static void request_done(struct gb_op *op, void *arg);

static struct gb_sqs_request request_of(struct gb_sqs_slot *slot)
{
    struct sqs_sender *s = slot->sender;
    return (struct gb_sqs_request){s->url, &s->rules, &slot->call.body, &s->scratch};
}

/* --- starting --- */

static uint64_t latest_deadline(const struct gb_sqs_batch *b)
{
    uint64_t latest = 0;
    for (size_t i = b->next; i < b->count; i++) {
        if (b->sends[i] != NULL && b->sends[i]->op.deadline_ns > latest)
            latest = b->sends[i]->op.deadline_ns;
    }
    return latest;
}

/* An entry whose own deadline is earlier leaves by the sender's deadline timer. */
static void start(struct gb_sqs_slot *slot)
{
    struct sqs_sender *s = slot->sender;
    uint64_t now = gb_sqs_now(s);
    uint64_t deadline = now + (uint64_t)s->cfg.timeout_ns;
    uint64_t latest = latest_deadline(&slot->batch);
    slot->started_ns = now;
    slot->call.action = slot->batch.single ? "SendMessage" : "SendMessageBatch";
    slot->call.op.deadline_ns = latest < deadline ? latest : deadline;
    gb_aws_call_start(s->client, &slot->call, request_done, slot);
}

static void release(struct gb_sqs_slot *slot)
{
    struct sqs_sender *s = slot->sender;
    if (slot->call.body.capacity > KEPT_BYTES_MAX) gb_str_deinit(&slot->call.body);
    gb_list_remove(&slot->node);
    gb_list_push_front(&s->idle, &slot->node); /* the warmest buffers first */
    s->request_ended = true;
    gb_sqs_wake(s);
}

/* --- settling --- */

/* What is left after a halving goes in the same slot, one request after the other: in order. */
static void go_on(struct gb_sqs_slot *slot)
{
    struct gb_sqs_request q = request_of(slot);
    while (!gb_sqs_batch_settled(&slot->batch)) {
        struct gb_err err = gb_sqs_batch_rewrite(&slot->batch, &q);
        if (!gb_failed(err)) {
            start(slot);
            return;
        }
        gb_sqs_batch_failed(&slot->batch, err);
    }
    release(slot);
}

static void request_done(struct gb_op *op, void *arg)
{
    struct gb_sqs_slot *slot = arg;
    struct sqs_sender *s = slot->sender;
    struct gb_sqs_batch *b = &slot->batch;
    int64_t took_ns = (int64_t)(gb_sqs_now(s) - slot->started_ns);
    gb_metric_time(b->single ? s->send_latency : s->batch_latency, took_ns);
    if (!gb_failed(op->result)) {
        gb_sqs_grace_success(&s->grace);
        gb_sqs_batch_answered(b, gb_str_bytes(&slot->call.answer));
    } else if (!gb_sqs_batch_halve(b, &slot->call.error)) {
        gb_sqs_batch_failed(b, gb_sqs_with_grace(s, &slot->call));
    }
    go_on(slot);
}

/* --- forming --- */

/* FNV-1a; two groups with one hash only wait for each other. */
static uint64_t hash_of(struct gb_bytes text)
{
    uint64_t hash = UINT64_C(14695981039346656037);
    for (size_t i = 0; i < text.size; i++) hash = (hash ^ text.data[i]) * UINT64_C(1099511628211);
    return hash | 1; /* 0 means none */
}

/* At most one entry of a group is under way, so that a partial failure can't reorder (spec 04
 * B9). */
static bool group_is_busy(const struct sqs_sender *s, const struct gb_sqs_batch *b, uint64_t group)
{
    if (gb_sqs_batch_has_group(b, group)) return true;
    struct gb_list_node *node = gb_list_first(&s->busy);
    for (; node != NULL; node = gb_list_next(&s->busy, node)) {
        const struct gb_sqs_slot *slot = GB_CONTAINER_OF(node, struct gb_sqs_slot, node);
        if (gb_sqs_batch_has_group(&slot->batch, group)) return true;
    }
    return false;
}

enum verdict { TAKEN, BLOCKED, REFUSED, FULL };

static enum verdict refuse(struct gb_send *send, struct gb_err err)
{
    gb_op_finish(&send->op, err);
    return REFUSED;
}

static enum verdict take(struct gb_sqs_slot *slot, struct gb_send *send, struct gb_json_writer *w)
{
    struct sqs_sender *s = slot->sender;
    struct gb_sqs_batch *b = &slot->batch;
    struct gb_sqs_request q = request_of(slot);
    struct gb_sqs_message m;
    uint64_t group = 0;
    if (send->op.deadline_ns <= gb_sqs_now(s))
        return refuse(send, gb_err(GB_TIMEOUT, "SQS: deadline passed while the send waited"));
    if (s->cfg.queue_name != NULL) { /* a URL could not be compared before it was resolved */
        struct gb_err err = gb_sqs_check_address(s, send->address);
        if (gb_failed(err)) return refuse(send, err);
    }
    if (s->rules.fifo) {
        group = hash_of(gb_sqs_message_group(send->envelope, &s->rules));
        if (group_is_busy(s, b, group)) return BLOCKED;
    }
    struct gb_err err = gb_sqs_message_plan(send->envelope, &s->rules, &s->scratch, &m);
    if (gb_failed(err)) return refuse(send, err);
    if (!gb_sqs_batch_add(b, send, m.size, group)) return FULL;
    gb_list_remove(&send->op.node);
    gb_metric_add(s->dropped, m.dropped);
    gb_sqs_batch_write(b, &q, w, b->count - 1, &m);
    return TAKEN;
}

/* Fills a slot from the list, in order. False: nothing there can go now. */
static bool form(struct sqs_sender *s, struct gb_list *list, size_t limit)
{
    struct gb_list_node *first = gb_list_first(&s->idle);
    struct gb_list_node *node = gb_list_first(list);
    if (first == NULL || node == NULL) return false;
    struct gb_sqs_slot *slot = GB_CONTAINER_OF(first, struct gb_sqs_slot, node);
    struct gb_sqs_batch *b = &slot->batch;
    struct gb_sqs_request q = request_of(slot);
    struct gb_json_writer w;
    gb_sqs_batch_init(b, limit);
    gb_sqs_batch_begin(b, &q, &w, limit == 1 || gb_list_next(list, node) == NULL);
    size_t room = b->single ? 1 : limit;
    enum verdict verdict = TAKEN;
    for (size_t blocked = 0; node != NULL && blocked < BLOCKED_MAX; blocked += verdict == BLOCKED) {
        struct gb_send *send = gb_sqs_send_of(node);
        node = gb_list_next(list, node);
        verdict = take(slot, send, &w);
        if (verdict == FULL || b->count == room) break;
    }
    if (b->count == 0) return false;
    gb_sqs_batch_end(b, &w);
    b->sent = b->count;
    gb_list_remove(&slot->node);
    gb_list_push(&s->busy, &slot->node);
    struct gb_err err = gb_str_check(&slot->call.body, "SQS request");
    if (!gb_failed(err) && b->count == 1 && !b->single) err = gb_sqs_batch_rewrite(b, &q);
    if (gb_failed(err)) {
        gb_sqs_batch_failed(b, err);
        release(slot);
        return true;
    }
    start(slot);
    return true;
}

/* --- when --- */

static bool at_least(const struct gb_list *list, size_t count)
{
    struct gb_list_node *node = gb_list_first(list);
    for (; node != NULL && count > 0; count--) node = gb_list_next(list, node);
    return count == 0;
}

/* Direct sends with `linger` go together while requests are in flight; a lone one does not wait. */
static bool lingering_is_due(struct sqs_sender *s)
{
    uint64_t due = s->directs_since_ns + (uint64_t)s->cfg.linger_ns;
    if (gb_list_empty(&s->busy) || s->request_ended || at_least(&s->directs, s->cfg.batch_size) ||
        gb_sqs_now(s) >= due)
        return true;
    gb_timer_start(&s->linger_timer, due);
    return false;
}

static void form_directs(struct sqs_sender *s)
{
    if (s->cfg.linger_ns == 0) {
        while (form(s, &s->directs, 1)) {
        }
        return;
    }
    while (!gb_list_empty(&s->directs) && !gb_list_empty(&s->idle) && lingering_is_due(s)) {
        if (!form(s, &s->directs, s->cfg.batch_size)) return;
        s->request_ended = false;
    }
}

void gb_sqs_form_requests(struct sqs_sender *s)
{
    if (gb_list_empty(&s->batches) && gb_list_empty(&s->directs)) return;
    if (!gb_sqs_prepare(s)) return;
    while (form(s, &s->batches, s->cfg.batch_size)) {
    }
    form_directs(s);
    if (gb_list_empty(&s->directs)) gb_timer_stop(&s->linger_timer);
}
