#include <stdio.h>

#include "app/document.h"
#include "app/dynamodb.h"
#include "app/process.h"
#include "base/log.h"
#include "blueprint/schema.h"

/* -create-tables and the plan of it (spec 05 §9.1, 08 §2). */

struct tables {
    const struct gb_options *o;
    struct gb_loop *loop;
    struct gb_app_aws aws;
    struct gb_dynamodb_want wants[GB_BP_ROLE_COUNT];
    struct gb_dynamodb_provision provision;
    bool unwritten; /* stdout took not all */
};

static bool is_plan(const struct tables *t)
{
    return t->o->mode == GB_MODE_PLAN_TABLES;
}

static const char *role_name(enum gb_dynamodb_role role)
{
    static const enum gb_bp_role roles[GB_DYNAMODB_ROLES] = {
        [GB_DYNAMODB_LEASE] = GB_BP_LEASE,
        [GB_DYNAMODB_OUTBOX] = GB_BP_OUTBOX,
        [GB_DYNAMODB_DLQ] = GB_BP_DLQ,
        [GB_DYNAMODB_SUBSCRIPTIONS] = GB_BP_SUBSCRIPTIONS,
    };
    return gb_schema_role_name(roles[role]);
}

static const char *words_of(const struct tables *t, const struct gb_dynamodb_want *want,
                            enum gb_dynamodb_news news)
{
    static const char *const words[] = {
        [GB_DYNAMODB_NEWS_MISSING] = "is missing: would be created",
        [GB_DYNAMODB_NEWS_FITS] = "exists, as expected",
        [GB_DYNAMODB_NEWS_CREATED] = "created",
        [GB_DYNAMODB_NEWS_TTL_ENABLED] = "time to live enabled on attribute ttl",
    };
    if (is_plan(t) && want->ttl && news == GB_DYNAMODB_NEWS_MISSING)
        return "is missing: would be created, with time to live on attribute ttl";
    if (is_plan(t) && want->ttl && news == GB_DYNAMODB_NEWS_FITS)
        return "exists, as expected; time to live on attribute ttl would be enabled if it is off";
    return words[news];
}

static void report(void *arg, const struct gb_dynamodb_want *want, enum gb_dynamodb_news news,
                   const struct gb_err *err)
{
    struct tables *t = arg;
    if (news == GB_DYNAMODB_NEWS_WARNING) {
        (void)fprintf(stderr, "%s: warning: stores.%s: time to live could not be enabled: %s\n",
                      t->o->config, role_name(want->role), err->message);
    } else if (news == GB_DYNAMODB_NEWS_ERROR) {
        (void)fprintf(stderr, "%s: error: stores.%s: %s\n", t->o->config, role_name(want->role),
                      err->message);
    } else if (printf("%s (stores.%s): %s\n", want->table, role_name(want->role),
                      words_of(t, want, news)) < 0) {
        t->unwritten = true;
    }
}

static void provisioned(struct gb_op *op, void *arg)
{
    (void)op;
    gb_loop_stop(((struct tables *)arg)->loop);
}

/* False after saying why. */
static bool run(struct tables *t, size_t count)
{
    struct gb_err err = gb_loop_new(&t->loop);
    if (!gb_failed(err)) err = gb_app_aws_open(&t->aws, t->loop);
    if (gb_failed(err)) {
        (void)fprintf(stderr, "%s: error: %s\n", t->o->config, err.message);
        return false;
    }
    t->provision = (struct gb_dynamodb_provision){
        .reactor = gb_loop_reactor(t->loop),
        .client = t->aws.d.client,
        .mode = is_plan(t) ? GB_DYNAMODB_PLAN : GB_DYNAMODB_CREATE,
        .wants = t->wants,
        .want_count = count,
        .report = report,
        .report_arg = t,
    };
    gb_dynamodb_provision(&t->provision, provisioned, t);
    gb_loop_run(t->loop);
    return !gb_failed(t->provision.op.result);
}

int gb_process_tables(const struct gb_options *o)
{
    struct tables t = {.o = o};
    struct gb_blueprint *b = NULL;
    /* A missing table is an answer here; the client's lines on refused calls would say it again. */
    gb_log_set_level(o->log_level_given ? o->log_level : GB_LOG_ERROR);
    struct gb_err err = gb_document_load(o, o->config, GB_DOCUMENT_VALIDATE, &b);
    if (gb_failed(err)) {
        if (err.code != GB_INVALID_CONFIG)
            (void)fprintf(stderr, "%s: error: %s\n", o->config, err.message);
        return 1;
    }
    size_t count = gb_app_wants(b, t.wants);
    bool ok = true;
    if (count == 0) {
        (void)printf("%s: no store is of type dynamodb: nothing to do\n", o->config);
    } else {
        ok = run(&t, count);
    }
    gb_app_aws_close(&t.aws);
    if (t.loop != NULL) {
        gb_loop_drain_closing(t.loop);
        gb_loop_free(t.loop);
    }
    gb_blueprint_free(b);
    if (fflush(stdout) != 0 || t.unwritten) {
        (void)fputs("gobridge: error: the answer could not be written to stdout\n", stderr);
        ok = false;
    }
    return ok ? 0 : 1;
}
