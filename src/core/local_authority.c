#include <string.h>

#include "base/log.h"
#include "core/drainer.h"

static bool current(void *ctx, struct gb_token *out)
{
    struct gb_local_authority *a = ctx;
    if (a->version == 0) return false;
    *out = (struct gb_token){.owner = gb_str_bytes(&a->owner), .version = a->version};
    return true;
}

static void mark_read(struct gb_op *op, void *arg)
{
    struct gb_local_authority *a = arg;
    struct gb_op *caller = a->op;
    a->op = NULL;
    if (op->result.code == GB_OK) {
        a->version = a->stats.mark + 1;
        GB_LOG(GB_LOG_INFO, "outbox partition is drained under a local token",
               gb_lf_str("partition", a->partition.data), gb_lf_int("version", (int64_t)a->version),
               gb_lf_int("pending", (int64_t)a->stats.pending),
               gb_lf_int("claimed", (int64_t)a->stats.claimed));
    }
    gb_op_finish(caller, op->result);
}

void gb_local_authority_start(struct gb_local_authority *a,
                              const struct gb_local_authority_cfg *cfg, struct gb_op *op,
                              gb_done_fn *done, void *arg)
{
    memset(a, 0, sizeof *a);
    gb_op_start(op, cfg->reactor, done, arg, NULL, a);
    gb_str_append_c(&a->owner, cfg->owner);
    gb_str_append_c(&a->partition, cfg->partition);
    struct gb_err err = gb_str_check(&a->partition, "local token");
    if (!gb_failed(err)) err = gb_str_check(&a->owner, "local token");
    if (gb_failed(err)) {
        gb_op_finish(op, err);
        return;
    }
    a->op = op;
    a->stats.partition = gb_str_bytes(&a->partition);
    a->stats.op.deadline_ns = op->deadline_ns;
    cfg->outbox->ops->stats(cfg->outbox, &a->stats, mark_read, a);
}

struct gb_authority gb_local_authority(struct gb_local_authority *a)
{
    return (struct gb_authority){.current = current, .ctx = a};
}

void gb_local_authority_deinit(struct gb_local_authority *a)
{
    gb_str_deinit(&a->owner);
    gb_str_deinit(&a->partition);
}
