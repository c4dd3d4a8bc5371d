#include "adapters/dynamodb/dynamodb_provision.h"

#include <stdlib.h>
#include <string.h>

#include "base/duration.h"

#define CALL_TIMEOUT_NS (30 * GB_SEC)
#define ACTIVE_TIMEOUT_NS (2 * GB_MINUTE)
#define POLL_NS (500 * GB_MS)

struct run {
    struct gb_dynamodb_provision *p;
    size_t at; /* the want in hand */
    struct gb_dynamodb_call call;
    struct gb_timer poll;
    uint64_t active_by_ns; /* 0: not waiting for ACTIVE */
    bool created, cancelled;
    struct gb_str scratch;
    struct gb_err verdict;
};

static const struct gb_dynamodb_want *want_of(const struct run *r)
{
    return &r->p->wants[r->at];
}

/* --- from table to table --- */

static void describe(struct run *r);

static void end(struct run *r)
{
    struct gb_dynamodb_provision *p = r->p;
    struct gb_err verdict = r->cancelled ? (struct gb_err){.code = GB_CANCELLED} : r->verdict;
    gb_timer_deinit(&r->poll);
    gb_dynamodb_call_deinit(&r->call);
    gb_str_deinit(&r->scratch);
    free(r);
    gb_op_finish(&p->op, verdict);
}

static void begin_table(struct run *r)
{
    r->active_by_ns = 0;
    r->created = false;
    if (r->at == r->p->want_count || r->cancelled) {
        end(r);
    } else {
        describe(r);
    }
}

static void report(struct run *r, enum gb_dynamodb_news news, struct gb_err err)
{
    r->p->report(r->p->report_arg, want_of(r), news, &err);
}

static void next_table(struct run *r)
{
    r->at++;
    begin_table(r);
}

static void fail_table(struct run *r, struct gb_err err)
{
    bool warn = r->p->mode == GB_DYNAMODB_PREFLIGHT && want_of(r)->advisory;
    if (!r->cancelled) report(r, warn ? GB_DYNAMODB_NEWS_WARNING : GB_DYNAMODB_NEWS_ERROR, err);
    if (!warn && !gb_failed(r->verdict)) r->verdict = err;
    next_table(r);
}

static void send(struct run *r, gb_done_fn *done)
{
    uint64_t now_ns = gb_reactor_now_ns(r->p->reactor);
    uint64_t deadline_ns = now_ns + (uint64_t)CALL_TIMEOUT_NS;
    if (r->p->op.deadline_ns != 0 && r->p->op.deadline_ns < deadline_ns)
        deadline_ns = r->p->op.deadline_ns;
    r->call.op.deadline_ns = deadline_ns;
    gb_dynamodb_start(r->p->client, &r->call, done, r);
}

/* --- time to live --- */

static void ttl_enabled(struct gb_op *op, void *arg)
{
    struct run *r = arg;
    if (gb_failed(op->result)) {
        if (!r->cancelled) report(r, GB_DYNAMODB_NEWS_WARNING, op->result);
    } else {
        report(r, GB_DYNAMODB_NEWS_TTL_ENABLED, gb_ok());
    }
    next_table(r);
}

static void enable_ttl(struct run *r)
{
    gb_dynamodb_begin(&r->call, GB_DYNAMODB_UPDATE_TIME_TO_LIVE, want_of(r)->table);
    gb_dynamodb_ttl(&r->call, "ttl");
    r->call.repeatable = true;
    send(r, ttl_enabled);
}

static bool is_on(struct gb_bytes status)
{
    return gb_bytes_equal_c(status, "ENABLED") || gb_bytes_equal_c(status, "ENABLING");
}

/* Of an existing table only: the one that was just made has none. */
static void judge_wanted_ttl(struct run *r)
{
    const struct gb_dynamodb_answer *a = &r->call.answer;
    if (!is_on(a->ttl_status)) {
        enable_ttl(r);
        return;
    }
    if (!gb_bytes_equal_c(a->ttl_attribute, "ttl")) {
        report(r, GB_DYNAMODB_NEWS_WARNING,
               gb_err(GB_INVALID_CONFIG,
                      "table \"%s\": expected its time to live on attribute \"ttl\", but it is on "
                      "\"%.*s\"",
                      want_of(r)->table, (int)a->ttl_attribute.size,
                      (const char *)a->ttl_attribute.data));
    }
    next_table(r);
}

static void judge_lease_ttl(struct run *r)
{
    const struct gb_dynamodb_answer *a = &r->call.answer;
    if (!is_on(a->ttl_status)) {
        next_table(r);
        return;
    }
    fail_table(r, gb_err(GB_INVALID_CONFIG,
                         "table \"%s\": expected time to live off, but it is %.*s: leases must "
                         "never expire; switch it off",
                         want_of(r)->table, (int)a->ttl_status.size,
                         (const char *)a->ttl_status.data));
}

static void ttl_described(struct gb_op *op, void *arg)
{
    struct run *r = arg;
    bool lease = want_of(r)->role == GB_DYNAMODB_LEASE;
    if (!gb_failed(op->result)) {
        if (lease) {
            judge_lease_ttl(r);
        } else {
            judge_wanted_ttl(r);
        }
    } else if (lease) {
        fail_table(r, gb_err_in(op->result, "table \"%s\": expected time to live off, can't tell",
                                want_of(r)->table));
    } else {
        if (!r->cancelled) report(r, GB_DYNAMODB_NEWS_WARNING, op->result);
        next_table(r);
    }
}

/* The table is there and has its shape. */
static void look_at_ttl(struct run *r)
{
    const struct gb_dynamodb_want *want = want_of(r);
    bool lease = want->role == GB_DYNAMODB_LEASE && r->p->mode != GB_DYNAMODB_PLAN;
    bool wanted = want->ttl && r->p->mode == GB_DYNAMODB_CREATE;
    if (!lease && !wanted) {
        next_table(r);
        return;
    }
    gb_dynamodb_begin(&r->call, GB_DYNAMODB_DESCRIBE_TIME_TO_LIVE, want->table);
    send(r, ttl_described);
}

/* --- creation --- */

static void create_done(struct gb_op *op, void *arg)
{
    struct run *r = arg;
    if (gb_failed(op->result) && r->call.error != GB_DYNAMODB_TABLE_IN_USE) {
        fail_table(r, op->result);
        return;
    }
    r->created = !gb_failed(op->result);
    r->active_by_ns = gb_reactor_now_ns(r->p->reactor) + (uint64_t)ACTIVE_TIMEOUT_NS;
    describe(r);
}

/* After an attempt whose end is not known the next one finds the table in use, which is success. */
static void create(struct run *r)
{
    gb_dynamodb_begin(&r->call, GB_DYNAMODB_CREATE_TABLE, want_of(r)->table);
    gb_dynamodb_w_table(&r->call.w, gb_dynamodb_table_of(want_of(r)->role));
    r->call.repeatable = true;
    send(r, create_done);
}

static void poll_due(struct gb_timer *timer)
{
    describe(GB_CONTAINER_OF(timer, struct run, poll));
}

/* The table is being made, by this run or by another. */
static void wait_for_active(struct run *r, const char *status)
{
    uint64_t now_ns = gb_reactor_now_ns(r->p->reactor);
    if (r->active_by_ns == 0) r->active_by_ns = now_ns + (uint64_t)ACTIVE_TIMEOUT_NS;
    bool over = now_ns >= r->active_by_ns;
    if (r->p->op.deadline_ns != 0 && now_ns >= r->p->op.deadline_ns) over = true;
    if (over || r->cancelled) {
        fail_table(r, gb_err(GB_TIMEOUT,
                             "table \"%s\": expected ACTIVE, but it is still %s; look at it and "
                             "run this again",
                             want_of(r)->table, status[0] == '\0' ? "not there" : status));
        return;
    }
    gb_timer_start(&r->poll, now_ns + (uint64_t)POLL_NS);
}

/* --- what is there --- */

static void judge(struct run *r)
{
    struct gb_dynamodb_table actual;
    const struct gb_dynamodb_want *want = want_of(r);
    gb_str_clear(&r->scratch);
    struct gb_err err = gb_dynamodb_table_read(r->call.answer.table, &r->scratch, &actual);
    if (gb_failed(err)) err = gb_err_in(err, "table \"%s\"", want->table);
    if (!gb_failed(err)) err = gb_dynamodb_table_check(want->role, want->table, &actual);
    if (gb_failed(err)) {
        fail_table(r, err);
        return;
    }
    if (r->p->mode == GB_DYNAMODB_CREATE && strcmp(actual.status, "ACTIVE") != 0 &&
        strcmp(actual.status, "UPDATING") != 0) {
        wait_for_active(r, actual.status);
        return;
    }
    report(r, r->created ? GB_DYNAMODB_NEWS_CREATED : GB_DYNAMODB_NEWS_FITS, gb_ok());
    look_at_ttl(r);
}

static void described(struct gb_op *op, void *arg)
{
    struct run *r = arg;
    bool missing = r->call.error == GB_DYNAMODB_NO_TABLE;
    if (!gb_failed(op->result)) {
        judge(r);
    } else if (missing && r->active_by_ns != 0) {
        wait_for_active(r, ""); /* what was created is not seen everywhere at once */
    } else if (missing && r->p->mode == GB_DYNAMODB_CREATE) {
        create(r);
    } else if (missing) {
        report(r, GB_DYNAMODB_NEWS_MISSING, gb_ok());
        next_table(r);
    } else {
        fail_table(r, op->result);
    }
}

static void describe(struct run *r)
{
    gb_dynamodb_begin(&r->call, GB_DYNAMODB_DESCRIBE_TABLE, want_of(r)->table);
    send(r, described);
}

/* --- the call --- */

static void cancel(struct gb_op *op)
{
    struct run *r = op->provider;
    r->cancelled = true;
    if (gb_timer_running(&r->poll)) {
        gb_timer_start(&r->poll, gb_reactor_now_ns(r->p->reactor));
    } else {
        gb_op_cancel(&r->call.op);
    }
}

void gb_dynamodb_provision(struct gb_dynamodb_provision *p, gb_done_fn *done, void *arg)
{
    struct run *r = calloc(1, sizeof *r);
    gb_op_start(&p->op, p->reactor, done, arg, r == NULL ? NULL : cancel, r);
    if (r == NULL) {
        gb_op_finish(&p->op, gb_err_no_memory("a look at tables"));
        return;
    }
    struct gb_err err = gb_timer_init(&r->poll, p->reactor, poll_due);
    if (gb_failed(err)) {
        free(r);
        gb_op_finish(&p->op, err);
        return;
    }
    r->p = p;
    begin_table(r);
}
