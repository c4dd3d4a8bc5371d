#include "adapters/aws/aws_credentials.h"

#include <stdlib.h>
#include <string.h>

#include "adapters/aws/aws_provider.h"
#include "base/assert.h"
#include "base/duration.h"
#include "base/log.h"

enum { TRIES_MAX = 3 };
#define ATTEMPT_NS ((uint64_t)(5 * GB_SEC)) /* spec 04 A5 */
#define TRY_AGAIN_NS ((uint64_t)(100 * GB_MS))
#define EARLY_NS ((uint64_t)(5 * GB_MINUTE))
#define EARLY_JITTER_NS ((uint64_t)(60 * GB_SEC))
#define RETRY_MIN_NS ((uint64_t)GB_SEC)
#define RETRY_MAX_NS ((uint64_t)(60 * GB_SEC))

struct provider {
    const char *name;
    gb_aws_step_fn *step;
};
static const struct provider static_only[] = {{"credentials_uri", gb_aws_provider_static},
                                              {NULL, NULL}};
static const struct provider profile_only[] = {{"profile", gb_aws_provider_profile}, {NULL, NULL}};
static const struct provider chain[] = {
    {"environment", gb_aws_provider_env},        {"web identity", gb_aws_provider_web_identity},
    {"shared files", gb_aws_provider_profile},   {"container", gb_aws_provider_container},
    {"instance metadata", gb_aws_provider_imds}, {NULL, NULL},
};

struct gb_aws_credentials {
    struct gb_aws_credentials_cfg cfg;
    char *profile, *access_key_id, *secret_access_key, *instance_id, *region;
    uint32_t refs;
    /* the current set */
    struct gb_aws_set set;
    bool has_set;        /* one was obtained once */
    bool usable;         /* not invalidated */
    uint64_t expires_ns; /* monotonic; UINT64_MAX = never */
    uint64_t generation;
    /* the refresh */
    bool fetching, sending;
    struct gb_aws_fetch fetch;
    const struct provider *provider;
    uint32_t tries;
    uint32_t failures; /* in a row */
    uint64_t next_allowed_ns;
    struct gb_err last_err;
    struct gb_list waiters; /* gb_op.node */
    struct gb_timer refresh_timer, try_timer, waiter_timer;
};

/* --- life --- */

static void wipe_text(char *text)
{
    if (text != NULL) gb_wipe(text, strlen(text));
    free(text);
}

static void free_now(struct gb_aws_credentials *c)
{
    gb_timer_deinit(&c->refresh_timer);
    gb_timer_deinit(&c->try_timer);
    gb_timer_deinit(&c->waiter_timer);
    gb_aws_fetch_deinit(&c->fetch);
    gb_aws_set_wipe(&c->set);
    wipe_text(c->secret_access_key);
    wipe_text(c->access_key_id);
    free(c->profile);
    free(c->instance_id);
    free(c->region);
    free(c);
}

static void refresh_fire(struct gb_timer *timer);
static void try_fire(struct gb_timer *timer);
static void waiter_fire(struct gb_timer *timer);

static bool copy_text(const char **member, char **owned)
{
    if (*member == NULL) return true;
    *owned = gb_strdup(*member);
    *member = *owned;
    return *owned != NULL;
}

static struct gb_err init(struct gb_aws_credentials *c)
{
    if (!copy_text(&c->cfg.profile, &c->profile) ||
        !copy_text(&c->cfg.access_key_id, &c->access_key_id) ||
        !copy_text(&c->cfg.secret_access_key, &c->secret_access_key) ||
        !copy_text(&c->cfg.instance_id, &c->instance_id) || !copy_text(&c->cfg.region, &c->region))
        return gb_err_no_memory("AWS credentials");
    struct gb_err err = gb_timer_init(&c->refresh_timer, c->cfg.reactor, refresh_fire);
    if (!gb_failed(err)) err = gb_timer_init(&c->try_timer, c->cfg.reactor, try_fire);
    if (!gb_failed(err)) err = gb_timer_init(&c->waiter_timer, c->cfg.reactor, waiter_fire);
    return err;
}

struct gb_err gb_aws_credentials_new(const struct gb_aws_credentials_cfg *cfg,
                                     struct gb_aws_credentials **out)
{
    if (cfg->access_key_id != NULL && strncmp(cfg->access_key_id, "ASIA", 4) == 0) {
        return gb_err(GB_NOT_AUTHORIZED, "credentials_uri holds a temporary key (ASIA...) without "
                                         "its session token; store a long-lived key");
    }
    if ((cfg->access_key_id == NULL) != (cfg->secret_access_key == NULL))
        return gb_err(GB_INVALID_CONFIG, "credentials_uri: key id and secret are needed together");
    struct gb_aws_credentials *c = calloc(1, sizeof *c);
    if (c == NULL) return gb_err_no_memory("AWS credentials");
    c->cfg = *cfg;
    c->refs = 1;
    gb_list_init(&c->waiters);
    struct gb_err err = init(c);
    if (gb_failed(err)) {
        free_now(c);
        return err;
    }
    *out = c;
    return err;
}

struct gb_aws_credentials *gb_aws_credentials_ref(struct gb_aws_credentials *c)
{
    GB_ASSERT(c->refs > 0);
    c->refs++;
    return c;
}

void gb_aws_credentials_unref(struct gb_aws_credentials *c)
{
    if (c == NULL) return;
    GB_ASSERT(c->refs > 0);
    if (--c->refs > 0) return;
    struct gb_list_node *node;
    while ((node = gb_list_first(&c->waiters)) != NULL) {
        gb_op_finish(GB_CONTAINER_OF(node, struct gb_op, node),
                     (struct gb_err){.code = GB_CANCELLED});
    }
    if (c->sending) {
        gb_timer_stop(&c->refresh_timer);
        gb_timer_stop(&c->waiter_timer);
        gb_op_cancel(&c->fetch.http.op); /* http_done frees */
        return;
    }
    free_now(c);
}

/* --- the end of a refresh --- */

static uint64_t now_ns(const struct gb_aws_credentials *c)
{
    return gb_reactor_now_ns(c->cfg.reactor);
}

static void finish_waiters(struct gb_aws_credentials *c, struct gb_err err)
{
    struct gb_list_node *node;
    gb_timer_stop(&c->waiter_timer);
    while ((node = gb_list_first(&c->waiters)) != NULL)
        gb_op_finish(GB_CONTAINER_OF(node, struct gb_op, node), err);
}

/* Five minutes and some before expiry; a set that is nearly over is renewed at half of what is
 * left. */
static void schedule_refresh(struct gb_aws_credentials *c)
{
    if (c->expires_ns == UINT64_MAX) return;
    uint64_t now = now_ns(c);
    uint64_t left = c->expires_ns > now ? c->expires_ns - now : 0;
    uint64_t early = EARLY_NS + gb_reactor_random_below(c->cfg.reactor, EARLY_JITTER_NS + 1);
    uint64_t wait = left > early + RETRY_MIN_NS ? left - early : left / 2;
    gb_timer_start(&c->refresh_timer, now + (wait > RETRY_MIN_NS ? wait : RETRY_MIN_NS));
}

static void succeeded(struct gb_aws_credentials *c)
{
    int64_t wall_ms = gb_reactor_wall_ms(c->cfg.reactor);
    int64_t left_ns = 0;
    gb_aws_set_wipe(&c->set);
    c->set = c->fetch.set;
    c->fetch.set = (struct gb_aws_set){0};
    c->has_set = true;
    c->usable = true;
    c->generation++;
    c->failures = 0;
    c->next_allowed_ns = 0;
    c->expires_ns = UINT64_MAX;
    if (c->set.expires_ms != 0) {
        left_ns =
            c->set.expires_ms > wall_ms ? gb_mul_sat_i64(c->set.expires_ms - wall_ms, GB_MS) : 0;
        c->expires_ns = now_ns(c) + (uint64_t)left_ns;
    }
    GB_LOG(GB_LOG_DEBUG, "aws credentials obtained", gb_lf_str("provider", c->provider->name),
           gb_lf_int("valid_s", left_ns / GB_SEC));
    schedule_refresh(c);
}

static bool serves(const struct gb_aws_credentials *c)
{
    return c->has_set && c->usable && now_ns(c) < c->expires_ns;
}

static struct gb_err failed(struct gb_aws_credentials *c, struct gb_err err)
{
    /* Whoever had credentials once will have them again: only a first failure can be permanent. */
    bool lasting = !c->has_set && (err.code == GB_NOT_AUTHORIZED || err.code == GB_INVALID_CONFIG);
    if (!lasting) err = gb_err(GB_TEMPORARY_AUTH_FAILURE, "%s", err.message);
    err = gb_err_in(err, "AWS credentials");
    uint32_t doublings = c->failures < 6 ? c->failures : 6;
    uint64_t wait = RETRY_MIN_NS << doublings;
    if (wait > RETRY_MAX_NS) wait = RETRY_MAX_NS;
    c->failures++;
    c->next_allowed_ns = now_ns(c) + wait;
    c->last_err = err;
    GB_LOG(GB_LOG_WARN, "aws credentials not obtained", gb_lf_bool("old_set_serves", serves(c)),
           gb_lf_int("failures", c->failures), gb_lf_err(&err));
    if (c->has_set) gb_timer_start(&c->refresh_timer, c->next_allowed_ns);
    return err;
}

static void end_fetch(struct gb_aws_credentials *c, struct gb_err err)
{
    c->fetching = false;
    if (gb_failed(err)) {
        err = failed(c, err);
    } else {
        succeeded(c);
    }
    gb_aws_fetch_deinit(&c->fetch);
    finish_waiters(c, err);
}

/* --- running the chain --- */

static const struct provider *providers(const struct gb_aws_credentials *c)
{
    if (c->cfg.access_key_id != NULL) return static_only;
    return c->cfg.profile != NULL ? profile_only : chain;
}

static void http_done(struct gb_op *op, void *arg);

static void send_request(struct gb_aws_credentials *c)
{
    c->fetch.http.op.deadline_ns = now_ns(c) + ATTEMPT_NS;
    c->sending = true;
    c->cfg.http->ops->request(c->cfg.http, &c->fetch.http, http_done, c);
}

static void next_provider(struct gb_aws_credentials *c, const struct provider *p)
{
    gb_aws_fetch_deinit(&c->fetch);
    c->fetch.cfg = &c->cfg;
    c->provider = p;
}

static struct gb_err none_usable(void)
{
    return gb_err(GB_NOT_AUTHORIZED,
                  "no provider has any; tried environment, web identity, shared files, container, "
                  "instance metadata");
}

static void run_providers(struct gb_aws_credentials *c)
{
    while (c->provider->step != NULL) {
        enum gb_aws_step step = c->provider->step(&c->fetch);
        switch (step) {
        case GB_AWS_SKIP:
            next_provider(c, c->provider + 1);
            break;
        case GB_AWS_DONE:
            end_fetch(c, c->fetch.err);
            return;
        case GB_AWS_REQUEST:
            c->tries = 1;
            send_request(c);
            return;
        }
    }
    end_fetch(c, none_usable());
}

static void http_done(struct gb_op *op, void *arg)
{
    struct gb_aws_credentials *c = arg;
    struct gb_http_request *q = &c->fetch.http;
    c->sending = false;
    if (c->refs == 0) {
        free_now(c);
        return;
    }
    bool again = gb_failed(op->result) || q->status >= 500 || q->status == 429;
    if (again && c->tries < TRIES_MAX) {
        uint64_t span = TRY_AGAIN_NS << (c->tries - 1);
        c->tries++;
        gb_timer_start(&c->try_timer,
                       now_ns(c) + gb_reactor_random_below(c->cfg.reactor, span + 1));
        return;
    }
    c->fetch.stage++;
    run_providers(c);
}

static void try_fire(struct gb_timer *timer)
{
    struct gb_aws_credentials *c = GB_CONTAINER_OF(timer, struct gb_aws_credentials, try_timer);
    gb_str_clear(&c->fetch.http.answer);
    gb_str_clear(&c->fetch.http.answer_headers);
    send_request(c);
}

static void start_fetch(struct gb_aws_credentials *c)
{
    c->fetching = true;
    gb_timer_stop(&c->refresh_timer);
    next_provider(c, providers(c));
    run_providers(c);
}

static void refresh_fire(struct gb_timer *timer)
{
    struct gb_aws_credentials *c = GB_CONTAINER_OF(timer, struct gb_aws_credentials, refresh_timer);
    if (!c->fetching) start_fetch(c);
}

/* --- users --- */

bool gb_aws_credentials_current(struct gb_aws_credentials *c, struct gb_sigv4_credentials *out)
{
    if (!serves(c)) return false;
    *out = gb_aws_set_view(&c->set);
    return true;
}

uint64_t gb_aws_credentials_generation(const struct gb_aws_credentials *c)
{
    return c->generation;
}

void gb_aws_credentials_invalidate(struct gb_aws_credentials *c)
{
    c->usable = false;
}

static void cancel_wait(struct gb_op *op)
{
    gb_op_finish(op, (struct gb_err){.code = GB_CANCELLED});
}

static void arm_waiter_timer(struct gb_aws_credentials *c)
{
    uint64_t earliest = UINT64_MAX;
    struct gb_list_node *node = gb_list_first(&c->waiters);
    for (; node != NULL; node = gb_list_next(&c->waiters, node)) {
        const struct gb_op *op = GB_CONTAINER_OF(node, struct gb_op, node);
        if (op->deadline_ns != 0 && op->deadline_ns < earliest) earliest = op->deadline_ns;
    }
    if (earliest != UINT64_MAX) gb_timer_start(&c->waiter_timer, earliest);
}

static void waiter_fire(struct gb_timer *timer)
{
    struct gb_aws_credentials *c = GB_CONTAINER_OF(timer, struct gb_aws_credentials, waiter_timer);
    struct gb_list_node *node = gb_list_first(&c->waiters);
    while (node != NULL) {
        struct gb_op *op = GB_CONTAINER_OF(node, struct gb_op, node);
        node = gb_list_next(&c->waiters, node);
        if (op->deadline_ns != 0 && op->deadline_ns <= now_ns(c))
            gb_op_finish(op, gb_err(GB_TIMEOUT, "no AWS credentials before the deadline"));
    }
    arm_waiter_timer(c);
}

void gb_aws_credentials_get(struct gb_aws_credentials *c, struct gb_op *op, gb_done_fn *done,
                            void *arg)
{
    gb_op_start(op, c->cfg.reactor, done, arg, cancel_wait, c);
    if (serves(c)) {
        gb_op_finish(op, gb_ok());
        return;
    }
    if (!c->fetching && now_ns(c) < c->next_allowed_ns) {
        gb_op_finish(op, c->last_err);
        return;
    }
    gb_list_push(&c->waiters, &op->node);
    if (!c->fetching) {
        start_fetch(c);
    }
    if (!gb_list_empty(&c->waiters)) arm_waiter_timer(c);
}
