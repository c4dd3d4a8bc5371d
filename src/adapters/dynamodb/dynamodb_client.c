#include "adapters/dynamodb/dynamodb_client.h"

#include <stdlib.h>

#include "adapters/dynamodb/dynamodb_parts.h"
#include "base/assert.h"
#include "base/duration.h"
#include "base/id.h"

enum { CALLS_MAX = 16, WAITING_MAX = 4096 };
#define ATTEMPT_TIMEOUT_NS (5 * GB_SEC) /* spec 04 A5 */

struct gb_dynamodb_client {
    struct gb_reactor *reactor;
    struct gb_aws_client *aws;
    uint32_t calls_max, waiting_max;
    struct gb_list waiting, running; /* op.node of struct gb_dynamodb_call, oldest first */
    uint32_t waiting_count, running_count;
    struct gb_timer deadline_timer; /* of those that wait */
    uint64_t earliest_ns;           /* when it fires */
    struct gb_dynamodb_ledger ledger;
    struct gb_op *close_op; /* closing when not NULL */
};

const struct gb_dynamodb_ledger *gb_dynamodb_ledger_of(const struct gb_dynamodb_client *c)
{
    return &c->ledger;
}

static struct gb_dynamodb_call *call_of(struct gb_list_node *node)
{
    return GB_CONTAINER_OF(node, struct gb_dynamodb_call, op.node);
}

/* --- life --- */

static void waiting_expired(struct gb_timer *timer);

static struct gb_err make_aws_client(struct gb_dynamodb_client *c,
                                     const struct gb_dynamodb_client_cfg *cfg)
{
    struct gb_str region = {0};
    struct gb_str endpoint = {0};
    struct gb_err err = gb_aws_region(&cfg->env, NULL, NULL, &region);
    if (!gb_failed(err)) err = gb_aws_endpoint(&cfg->env, NULL, "dynamodb", region.data, &endpoint);
    if (!gb_failed(err)) {
        int64_t timeout_ns = cfg->attempt_timeout_ns;
        const struct gb_aws_client_cfg aws = {
            .reactor = cfg->reactor,
            .http = cfg->http,
            .credentials = cfg->credentials,
            .service = "dynamodb",
            .target_prefix = "DynamoDB_20120810",
            .content_type = "application/x-amz-json-1.0",
            .region = region.data,
            .endpoint = endpoint.data,
            .attempt_timeout_ns = timeout_ns == 0 ? ATTEMPT_TIMEOUT_NS : timeout_ns,
            .attempts_max = cfg->attempts_max,
            .backoff_cap_ns = cfg->backoff_cap_ns,
            .classify = gb_dynamodb_classify,
            .is_retryable = gb_dynamodb_is_retryable,
        };
        err = gb_aws_client_new(&aws, &c->aws);
    }
    gb_str_deinit(&region);
    gb_str_deinit(&endpoint);
    return gb_failed(err) ? gb_err_in(err, "DynamoDB") : err;
}

struct gb_err gb_dynamodb_client_new(const struct gb_dynamodb_client_cfg *cfg,
                                     struct gb_dynamodb_client **out)
{
    struct gb_dynamodb_client *c = calloc(1, sizeof *c);
    if (c == NULL) return gb_err_no_memory("DynamoDB client");
    c->reactor = cfg->reactor;
    c->calls_max = cfg->calls_max == 0 ? CALLS_MAX : cfg->calls_max;
    c->waiting_max = cfg->waiting_max == 0 ? WAITING_MAX : cfg->waiting_max;
    gb_list_init(&c->waiting);
    gb_list_init(&c->running);
    struct gb_err err = gb_timer_init(&c->deadline_timer, cfg->reactor, waiting_expired);
    if (!gb_failed(err)) err = make_aws_client(c, cfg);
    if (gb_failed(err)) {
        gb_dynamodb_client_free(c);
        return err;
    }
    *out = c;
    return err;
}

void gb_dynamodb_client_free(struct gb_dynamodb_client *c)
{
    if (c == NULL) return;
    GB_ASSERT(c->waiting_count == 0 && c->running_count == 0);
    gb_timer_deinit(&c->deadline_timer);
    gb_aws_client_free(c->aws);
    gb_dynamodb_ledger_deinit(&c->ledger);
    free(c);
}

/* --- a call's end --- */

/* The reasons say more than the code of the whole: a failed condition, or what else there was. */
static struct gb_err cancelled(const struct gb_dynamodb_call *call, struct gb_err err)
{
    size_t index = 0;
    enum gb_dynamodb_error verdict = gb_dynamodb_reasons_verdict(call->answer.reasons, &index);
    enum gb_code code = gb_dynamodb_error_code(verdict);
    if (call->answer.reasons.size == 0) {
        return gb_err(GB_UNAVAILABLE, "%s: transaction cancelled without reasons",
                      gb_dynamodb_action_name(call->action));
    }
    if (code == GB_OK) return err;
    return gb_err(code, "%s: transaction cancelled, action %zu: %s",
                  gb_dynamodb_action_name(call->action), index, gb_dynamodb_error_name(verdict));
}

static struct gb_err read_answer(struct gb_dynamodb_call *call)
{
    struct gb_err err = call->aws.op.result;
    struct gb_bytes body = gb_str_bytes(&call->aws.answer);
    if (!gb_failed(err)) {
        err = gb_dynamodb_answer_read(call->action, body, &call->answer);
        if (gb_failed(err)) call->aws.maybe_done = true;
        return err;
    }
    if (err.code == GB_CANCELLED || call->aws.error.status == 0) return err;
    call->error = gb_dynamodb_error_of(&call->aws.error);
    gb_dynamodb_answer_read_error(body, &call->answer);
    return call->error == GB_DYNAMODB_CANCELLED ? cancelled(call, err) : err;
}

static enum gb_dynamodb_outcome outcome_of(const struct gb_dynamodb_call *call, struct gb_err err)
{
    if (!gb_failed(err)) return GB_DYNAMODB_APPLIED;
    bool maybe = call->aws.maybe_done || call->error == GB_DYNAMODB_IN_PROGRESS;
    return maybe ? GB_DYNAMODB_OUTCOME_UNKNOWN : GB_DYNAMODB_NOT_APPLIED;
}

/* Cancellations surface unchanged (spec 05 §1.2). */
static void finish(struct gb_dynamodb_call *call, struct gb_err err)
{
    if (gb_failed(err) && err.code != GB_CANCELLED && call->table != NULL)
        err = gb_err_in(err, "table \"%.255s\"", call->table);
    gb_op_finish(&call->op, err);
}

static void start_waiting(struct gb_dynamodb_client *c);

static void complete_close(struct gb_dynamodb_client *c)
{
    struct gb_op *op = c->close_op;
    if (c->running_count > 0) return;
    gb_dynamodb_client_free(c);
    gb_op_finish(op, gb_ok());
}

static void aws_done(struct gb_op *op, void *arg)
{
    struct gb_dynamodb_call *call = arg;
    struct gb_dynamodb_client *c = call->client;
    (void)op;
    struct gb_err err = read_answer(call);
    call->outcome = outcome_of(call, err);
    call->attempts = call->aws.attempts;
    gb_dynamodb_ledger_add(&c->ledger, call, gb_failed(err));
    c->running_count--;
    finish(call, err);
    if (c->close_op != NULL) {
        complete_close(c);
    } else {
        start_waiting(c);
    }
}

/* --- a call's start --- */

static void run(struct gb_dynamodb_client *c, struct gb_dynamodb_call *call)
{
    bool idempotent = !gb_dynamodb_is_write(call->action) || call->repeatable ||
                      call->action == GB_DYNAMODB_TRANSACT_WRITE_ITEMS;
    gb_list_push(&c->running, &call->op.node);
    c->running_count++;
    call->running = true;
    call->aws.action = gb_dynamodb_action_name(call->action);
    call->aws.op.deadline_ns = call->op.deadline_ns;
    call->aws.send_once = !idempotent;
    gb_aws_call_start(c->aws, &call->aws, aws_done, call);
}

static struct gb_dynamodb_call *take_waiting(struct gb_dynamodb_client *c,
                                             struct gb_dynamodb_call *call)
{
    gb_list_remove(&call->op.node);
    c->waiting_count--;
    if (c->waiting_count == 0) gb_timer_stop(&c->deadline_timer);
    return call;
}

static void start_waiting(struct gb_dynamodb_client *c)
{
    while (c->waiting_count > 0 && c->running_count < c->calls_max)
        run(c, take_waiting(c, call_of(gb_list_first(&c->waiting))));
}

static void arm(struct gb_dynamodb_client *c, uint64_t deadline_ns)
{
    if (gb_timer_running(&c->deadline_timer) && deadline_ns >= c->earliest_ns) return;
    c->earliest_ns = deadline_ns;
    gb_timer_start(&c->deadline_timer, deadline_ns);
}

static void waiting_expired(struct gb_timer *timer)
{
    struct gb_dynamodb_client *c =
        GB_CONTAINER_OF(timer, struct gb_dynamodb_client, deadline_timer);
    uint64_t now = gb_reactor_now_ns(c->reactor);
    struct gb_list_node *node = gb_list_first(&c->waiting);
    uint64_t next = UINT64_MAX;
    while (node != NULL) {
        struct gb_dynamodb_call *call = call_of(node);
        node = gb_list_next(&c->waiting, node);
        if (call->op.deadline_ns <= now) {
            finish(take_waiting(c, call), gb_err(GB_TIMEOUT, "%s: no connection became free",
                                                 gb_dynamodb_action_name(call->action)));
        } else if (call->op.deadline_ns < next) {
            next = call->op.deadline_ns;
        }
    }
    if (next != UINT64_MAX) arm(c, next);
}

static void cancel_call(struct gb_op *op)
{
    struct gb_dynamodb_call *call = GB_CONTAINER_OF(op, struct gb_dynamodb_call, op);
    if (call->running) {
        gb_op_cancel(&call->aws.op);
    } else if (gb_list_linked(&op->node)) {
        finish(take_waiting(op->provider, call), (struct gb_err){.code = GB_CANCELLED});
    }
}

static struct gb_err complete_request(struct gb_dynamodb_client *c, struct gb_dynamodb_call *call)
{
    bool transaction = call->action == GB_DYNAMODB_TRANSACT_WRITE_ITEMS;
    struct gb_json_writer *w = &call->w;
    if (!call->complete) {
        if (transaction) gb_json_w_array_end(w);
        if (transaction && call->token[0] == '\0') gb_id_uuid(c->reactor, call->token);
        if (transaction) {
            gb_json_w_key(w, "ClientRequestToken");
            gb_json_w_string_c(w, call->token);
        }
        if (call->action < GB_DYNAMODB_DESCRIBE_TABLE) {
            gb_json_w_key(w, "ReturnConsumedCapacity");
            gb_json_w_string_c(w, "INDEXES");
        }
        gb_json_w_object_end(w);
        GB_ASSERT(w->depth == 0); /* every part was closed */
        call->complete = true;
    }
    struct gb_err err = gb_str_check(&call->aws.body, "DynamoDB request");
    return gb_failed(err) ? err : call->refusal;
}

static struct gb_err admit(struct gb_dynamodb_client *c, struct gb_dynamodb_call *call)
{
    struct gb_err err = complete_request(c, call);
    if (gb_failed(err)) return err;
    if (c->close_op != NULL) return gb_err(GB_UNAVAILABLE, "the DynamoDB client is closed");
    if (c->running_count >= c->calls_max && c->waiting_count >= c->waiting_max) {
        return gb_err(GB_UNAVAILABLE, "%s: %u calls to DynamoDB wait already",
                      gb_dynamodb_action_name(call->action), c->waiting_count);
    }
    return gb_ok();
}

void gb_dynamodb_start(struct gb_dynamodb_client *c, struct gb_dynamodb_call *call,
                       gb_done_fn *done, void *arg)
{
    GB_ASSERT(call->op.deadline_ns != 0); /* no call without a deadline (spec 04 A5) */
    gb_op_start(&call->op, c->reactor, done, arg, cancel_call, c);
    call->client = c;
    call->running = false;
    call->error = GB_DYNAMODB_NO_ERROR;
    call->outcome = GB_DYNAMODB_NOT_APPLIED;
    call->answer = (struct gb_dynamodb_answer){0};
    call->attempts = 0;
    struct gb_err err = admit(c, call);
    if (gb_failed(err)) {
        finish(call, err);
    } else if (c->running_count < c->calls_max) {
        run(c, call);
    } else {
        gb_list_push(&c->waiting, &call->op.node);
        c->waiting_count++;
        arm(c, call->op.deadline_ns);
    }
}

/* --- closing --- */

void gb_dynamodb_client_close(struct gb_dynamodb_client *c, struct gb_op *op, gb_done_fn *done,
                              void *arg)
{
    GB_ASSERT(c->close_op == NULL);
    gb_op_start(op, c->reactor, done, arg, NULL, c);
    c->close_op = op;
    while (c->waiting_count > 0) gb_op_cancel(&call_of(gb_list_first(&c->waiting))->op);
    struct gb_list_node *node = gb_list_first(&c->running);
    for (; node != NULL; node = gb_list_next(&c->running, node)) gb_op_cancel(&call_of(node)->op);
    complete_close(c);
}
