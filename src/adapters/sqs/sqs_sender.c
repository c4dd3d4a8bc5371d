#include "adapters/sqs/sqs_sender.h"

#include <stdlib.h>
#include <string.h>

#include "adapters/sqs/sqs_sender_parts.h"
#include "base/assert.h"

enum { REQUESTS_MAX = 16, REQUESTS_LIMIT = 1024 };

struct gb_send *gb_sqs_send_of(struct gb_list_node *node)
{
    struct gb_op *op = GB_CONTAINER_OF(node, struct gb_op, node);
    return GB_CONTAINER_OF(op, struct gb_send, op);
}

uint64_t gb_sqs_now(const struct sqs_sender *s)
{
    return gb_reactor_now_ns(s->cfg.reactor);
}

void gb_sqs_wake(struct sqs_sender *s)
{
    gb_reactor_flush(s->cfg.reactor, &s->turn_end);
}

static struct gb_err cancelled(void)
{
    return (struct gb_err){.code = GB_CANCELLED};
}

static void fail_all(struct gb_list *list, struct gb_err err)
{
    struct gb_list_node *node;
    while ((node = gb_list_first(list)) != NULL) gb_op_finish(&gb_sqs_send_of(node)->op, err);
}

void gb_sqs_fail_waiting(struct sqs_sender *s, struct gb_err err)
{
    fail_all(&s->batches, err);
    fail_all(&s->directs, err);
}

/* --- life --- */

static void free_sender(struct sqs_sender *s)
{
    gb_task_cancel(&s->turn_end);
    gb_timer_deinit(&s->linger_timer);
    gb_timer_deinit(&s->deadline_timer);
    gb_timer_deinit(&s->close_timer);
    for (uint32_t i = 0; s->slots != NULL && i < s->cfg.requests_max; i++)
        gb_aws_call_deinit(&s->slots[i].call);
    gb_aws_call_deinit(&s->resolve);
    free(s->slots);
    gb_aws_client_free(s->client);
    gb_aws_credentials_unref(s->cfg.credentials);
    gb_str_deinit(&s->scratch);
    free(s->url);
    free((char *)(uintptr_t)s->cfg.id);
    free((char *)(uintptr_t)s->cfg.queue_url);
    free((char *)(uintptr_t)s->cfg.queue_name);
    free((char *)(uintptr_t)s->cfg.region);
    free((char *)(uintptr_t)s->cfg.profile);
    free((char *)(uintptr_t)s->cfg.endpoint);
    free((char *)(uintptr_t)s->cfg.message_group_id);
    free(s);
}

static void finish_close_if_drained(struct sqs_sender *s)
{
    if (!s->closing || s->resolving || !gb_list_empty(&s->batches) || !gb_list_empty(&s->directs) ||
        !gb_list_empty(&s->busy))
        return;
    struct gb_op *op = s->close_op;
    free_sender(s);
    gb_op_finish(op, gb_ok());
}

static void turn_ends(struct gb_task *task)
{
    struct sqs_sender *s = GB_CONTAINER_OF(task, struct sqs_sender, turn_end);
    gb_sqs_form_requests(s);
    finish_close_if_drained(s);
}

static void linger_is_over(struct gb_timer *timer)
{
    gb_sqs_wake(GB_CONTAINER_OF(timer, struct sqs_sender, linger_timer));
}

/* --- deadlines and cancelling --- */

/* A request without entries that anybody waits for is not worth its answer. */
static void drop_request_if_settled(struct gb_sqs_slot *slot)
{
    if (gb_sqs_batch_settled(&slot->batch)) gb_op_cancel(&slot->call.op);
}

static void expire_waiting(struct gb_list *list, uint64_t now, uint64_t *earliest)
{
    struct gb_list_node *node = gb_list_first(list);
    while (node != NULL) {
        struct gb_op *op = &gb_sqs_send_of(node)->op;
        node = gb_list_next(list, node);
        if (op->deadline_ns <= now) {
            gb_op_finish(op, gb_err(GB_TIMEOUT, "SQS: deadline passed while the send waited"));
        } else if (op->deadline_ns < *earliest) {
            *earliest = op->deadline_ns;
        }
    }
}

static void expire_sent(struct gb_sqs_slot *slot, uint64_t now, uint64_t *earliest)
{
    struct gb_sqs_batch *b = &slot->batch;
    for (size_t i = b->next; i < b->count; i++) {
        if (b->sends[i] == NULL) continue;
        struct gb_op *op = &b->sends[i]->op;
        if (op->deadline_ns <= now) {
            b->sends[i] = NULL;
            gb_op_finish(op, gb_err(GB_TIMEOUT, "SQS: no answer before the deadline"));
        } else if (op->deadline_ns < *earliest) {
            *earliest = op->deadline_ns;
        }
    }
    drop_request_if_settled(slot);
}

static void deadline_is_near(struct gb_timer *timer)
{
    struct sqs_sender *s = GB_CONTAINER_OF(timer, struct sqs_sender, deadline_timer);
    uint64_t now = gb_sqs_now(s);
    uint64_t earliest = UINT64_MAX;
    expire_waiting(&s->batches, now, &earliest);
    expire_waiting(&s->directs, now, &earliest);
    struct gb_list_node *node = gb_list_first(&s->busy);
    for (; node != NULL; node = gb_list_next(&s->busy, node))
        expire_sent(GB_CONTAINER_OF(node, struct gb_sqs_slot, node), now, &earliest);
    if (earliest != UINT64_MAX) gb_timer_start(&s->deadline_timer, earliest);
    gb_sqs_wake(s);
}

static void cancel_send(struct gb_op *op)
{
    struct sqs_sender *s = op->provider;
    struct gb_list_node *node = gb_list_first(&s->busy);
    for (; node != NULL && !gb_list_linked(&op->node); node = gb_list_next(&s->busy, node)) {
        struct gb_sqs_slot *slot = GB_CONTAINER_OF(node, struct gb_sqs_slot, node);
        for (size_t i = slot->batch.next; i < slot->batch.count; i++) {
            if (slot->batch.sends[i] == NULL || &slot->batch.sends[i]->op != op) continue;
            slot->batch.sends[i] = NULL;
            gb_op_finish(op, cancelled());
            drop_request_if_settled(slot);
            return;
        }
    }
    GB_ASSERT(gb_list_linked(&op->node)); /* waiting, else it was in a request */
    gb_op_finish(op, cancelled());
    gb_sqs_wake(s);
}

/* --- the port --- */

static void send(struct gb_sender *base, struct gb_send *q, gb_done_fn *done, void *arg)
{
    struct sqs_sender *s = GB_CONTAINER_OF(base, struct sqs_sender, base);
    GB_ASSERT(q->op.deadline_ns != 0);
    gb_op_start(&q->op, s->cfg.reactor, done, arg, cancel_send, s);
    if (s->closing) {
        gb_op_finish(&q->op, gb_err(GB_UNAVAILABLE, "sender \"%s\" is closing", s->base.id));
        return;
    }
    struct gb_err err = gb_sqs_check_address(s, q->address);
    if (gb_failed(err)) {
        gb_op_finish(&q->op, err);
        return;
    }
    if (!q->batch && gb_list_empty(&s->directs)) {
        s->directs_since_ns = gb_sqs_now(s);
        s->request_ended = false;
    }
    gb_list_push(q->batch ? &s->batches : &s->directs, &q->op.node);
    if (!gb_timer_running(&s->deadline_timer) || q->op.deadline_ns < s->deadline_timer.deadline_ns)
        gb_timer_start(&s->deadline_timer, q->op.deadline_ns);
    gb_sqs_wake(s);
}

/* Stateless (spec 04 B1): always worth trying. */
static bool ready(const struct gb_sender *base)
{
    (void)base;
    return true;
}

static void cancel_everything(struct sqs_sender *s)
{
    gb_sqs_fail_waiting(s, cancelled());
    if (s->resolving) gb_op_cancel(&s->resolve.op);
    struct gb_list_node *node = gb_list_first(&s->busy);
    for (; node != NULL; node = gb_list_next(&s->busy, node)) {
        struct gb_sqs_slot *slot = GB_CONTAINER_OF(node, struct gb_sqs_slot, node);
        for (size_t i = slot->batch.next; i < slot->batch.count; i++) {
            if (slot->batch.sends[i] != NULL) gb_op_finish(&slot->batch.sends[i]->op, cancelled());
            slot->batch.sends[i] = NULL;
        }
        gb_op_cancel(&slot->call.op);
    }
    gb_sqs_wake(s);
}

static void close_is_late(struct gb_timer *timer)
{
    cancel_everything(GB_CONTAINER_OF(timer, struct sqs_sender, close_timer));
}

static void cancel_close(struct gb_op *op)
{
    cancel_everything(op->provider); /* closing goes on, without waiting for answers */
}

static void close_sender(struct gb_sender *base, struct gb_op *op, gb_done_fn *done, void *arg)
{
    struct sqs_sender *s = GB_CONTAINER_OF(base, struct sqs_sender, base);
    GB_ASSERT(!s->closing);
    gb_op_start(op, s->cfg.reactor, done, arg, cancel_close, s);
    s->closing = true;
    s->close_op = op;
    if (op->deadline_ns != 0) gb_timer_start(&s->close_timer, op->deadline_ns);
    gb_sqs_wake(s);
}

static const struct gb_sender_ops sender_ops = {
    .send = send, .ready = ready, .close = close_sender};

/* --- making it --- */

static struct gb_err check_cfg(const struct gb_sqs_sender_cfg *cfg)
{
    if ((cfg->queue_url == NULL) == (cfg->queue_name == NULL)) {
        return gb_err(GB_INVALID_CONFIG, "sender \"%s\": give either queue_url or queue_name",
                      cfg->id);
    }
    if (cfg->batch_size < 1 || cfg->batch_size > GB_SQS_ENTRIES_MAX) {
        return gb_err(GB_INVALID_CONFIG, "sender \"%s\": batch_size %u is not within 1-10", cfg->id,
                      cfg->batch_size);
    }
    if (cfg->timeout_ns <= 0)
        return gb_err(GB_INVALID_CONFIG, "sender \"%s\": timeout must be above 0", cfg->id);
    if (cfg->requests_max > REQUESTS_LIMIT) {
        return gb_err(GB_INVALID_CONFIG, "sender \"%s\": at most %d requests at a time", cfg->id,
                      REQUESTS_LIMIT);
    }
    return gb_sqs_check_options(cfg, cfg->queue_url);
}

static bool copy_texts(struct gb_sqs_sender_cfg *to, const struct gb_sqs_sender_cfg *from)
{
    const char *const texts[] = {
        from->id,      from->queue_url, from->queue_name,      from->region,
        from->profile, from->endpoint,  from->message_group_id};
    const char **const places[] = {&to->id,      &to->queue_url, &to->queue_name,      &to->region,
                                   &to->profile, &to->endpoint,  &to->message_group_id};
    bool good = true;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        *places[i] = gb_strdup(texts[i]);
        good = good && (texts[i] == NULL || *places[i] != NULL);
    }
    return good;
}

static void set_rules(struct sqs_sender *s)
{
    const struct gb_sqs_sender_cfg *cfg = &s->cfg;
    bool group = cfg->message_group_id != NULL && cfg->message_group_id[0] != '\0';
    s->rules = (struct gb_sqs_rules){
        .encoding = cfg->payload_encoding,
        .bytes_max = cfg->max_message_bytes == 0 ? GB_SQS_BATCH_BYTES_MAX : cfg->max_message_bytes,
        .fifo = cfg->fifo || group,
        .group = group ? cfg->message_group_id : NULL,
        .delay_seconds = cfg->delay_seconds,
    };
}

static struct gb_err init(struct sqs_sender *s, const struct gb_sqs_sender_cfg *cfg)
{
    if (!copy_texts(&s->cfg, cfg)) return gb_err_no_memory("SQS sender");
    set_rules(s);
    if (cfg->queue_url != NULL) {
        s->url = gb_strdup(cfg->queue_url);
        if (s->url == NULL) return gb_err_no_memory("SQS sender");
    }
    s->slots = calloc(s->cfg.requests_max, sizeof *s->slots);
    if (s->slots == NULL) return gb_err_no_memory("SQS sender");
    for (uint32_t i = 0; i < s->cfg.requests_max; i++) {
        s->slots[i].sender = s;
        gb_list_push(&s->idle, &s->slots[i].node);
    }
    struct gb_err err = gb_timer_init(&s->linger_timer, cfg->reactor, linger_is_over);
    if (!gb_failed(err)) err = gb_timer_init(&s->deadline_timer, cfg->reactor, deadline_is_near);
    if (!gb_failed(err)) err = gb_timer_init(&s->close_timer, cfg->reactor, close_is_late);
    return err;
}

struct gb_err gb_sqs_sender_new(const struct gb_sqs_sender_cfg *cfg, struct gb_sender **out)
{
    struct gb_err err = check_cfg(cfg);
    if (gb_failed(err)) return err;
    struct sqs_sender *s = calloc(1, sizeof *s);
    if (s == NULL) return gb_err_no_memory("SQS sender");
    s->cfg = *cfg;
    if (s->cfg.requests_max == 0) s->cfg.requests_max = REQUESTS_MAX;
    s->cfg.credentials = gb_aws_credentials_ref(cfg->credentials);
    gb_list_init(&s->batches);
    gb_list_init(&s->directs);
    gb_list_init(&s->idle);
    gb_list_init(&s->busy);
    s->turn_end.run = turn_ends;
    err = init(s, cfg);
    if (gb_failed(err)) {
        free_sender(s);
        return err;
    }
    s->base = (struct gb_sender){&sender_ops, s->cfg.id, s->cfg.batch_size};
    *out = &s->base;
    return err;
}
