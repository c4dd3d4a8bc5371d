#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "adapters/memory/memory_dlq.h"
#include "adapters/memory/memory_outbox.h"
#include "support/oom.h"

/* Allocation ladders: each call answers UNAVAILABLE and changes nothing, until it has all it needs.
 */

enum { LADDER_MAX = 100 };
#define S1 "SESSION#s"

static void done(struct gb_op *op, void *arg)
{
    (void)op;
    (void)arg;
}

static void turn(struct gb_reactor *r)
{
    static uint64_t now_ns;
    gb_reactor_run(r, ++now_ns, 1000);
}

static struct gb_envelope *envelope(const char *id)
{
    struct gb_envelope *e = NULL;
    assert_int_equal(gb_envelope_new(64, &e).code, GB_OK);
    assert_int_equal(gb_envelope_set_id(e, gb_bytes_c(id)).code, GB_OK);
    return e;
}

static struct gb_outbox_stats stats(struct gb_outbox *o, struct gb_reactor *r)
{
    struct gb_outbox_stats q = {.partition = gb_bytes_c(S1)};
    o->ops->stats(o, &q, done, NULL);
    turn(r);
    return q;
}

static void persist_until_it_succeeds(struct gb_outbox *o, struct gb_reactor *r,
                                      const struct gb_outbox_record records[2])
{
    struct gb_outbox_persist q = {.records = records, .count = 2};
    unsigned n = 0;
    do {
        assert_true(++n < LADDER_MAX);
        gb_oom_fail_at(n);
        o->ops->persist(o, &q, done, NULL);
        gb_oom_off();
        turn(r);
        assert_int_equal(stats(o, r).pending, gb_failed(q.op.result) ? 0 : 2);
        assert_true(!gb_failed(q.op.result) || q.op.result.code == GB_UNAVAILABLE);
    } while (gb_failed(q.op.result));
    assert_true(n > 5);
}

/* A claim may come back short, but never loses track of what it took. */
static void claim_until_both_came(struct gb_outbox *o, struct gb_reactor *r)
{
    size_t claimed = 0;
    for (unsigned n = 1; claimed < 2; n++) {
        assert_true(n < LADDER_MAX);
        struct gb_outbox_claim q = {
            .partition = gb_bytes_c(S1), .token = {gb_bytes_c("o"), 1}, .limit = 10};
        gb_oom_fail_at(n);
        o->ops->claim(o, &q, done, NULL);
        gb_oom_off();
        turn(r);
        if (q.batch != NULL) claimed += q.batch->count;
        assert_int_equal(stats(o, r).claimed, claimed);
        gb_outbox_batch_free(q.batch);
    }
}

static void outbox_ladder(void **state)
{
    (void)state;
    struct gb_reactor *r = NULL;
    struct gb_outbox *o = NULL;
    assert_int_equal(gb_reactor_new(1, &r).code, GB_OK);
    const struct gb_memory_outbox_cfg cfg = {0};
    gb_oom_fail_at(1);
    assert_int_equal(gb_memory_outbox_new(r, &cfg, &o).code, GB_UNAVAILABLE);
    gb_oom_off();
    assert_int_equal(gb_memory_outbox_new(r, &cfg, &o).code, GB_OK);
    struct gb_envelope *e[] = {envelope("A"), envelope("B")};
    const struct gb_outbox_record records[] = {
        {.id = gb_bytes_c("1"), .session_id = gb_bytes_c("s"), .envelope = e[0]},
        {.id = gb_bytes_c("2"),
         .session_id = gb_bytes_c("s"),
         .envelope = e[1],
         .ordering_key = gb_bytes_c("K")}};
    persist_until_it_succeeds(o, r, records);
    claim_until_both_came(o, r);
    struct gb_op close_op = {0};
    o->ops->close(o, &close_op, done, NULL);
    turn(r);
    for (size_t i = 0; i < 2; i++) gb_envelope_unref(e[i]);
    gb_reactor_free(r);
}

static void dlq_ladder(void **state)
{
    (void)state;
    struct gb_reactor *r = NULL;
    struct gb_dlq *d = NULL;
    struct gb_dlq_entry *entry = NULL;
    struct gb_envelope *e = envelope("A");
    assert_int_equal(gb_reactor_new(1, &r).code, GB_OK);
    assert_int_equal(gb_dlq_entry_new(e, &entry).code, GB_OK);
    const struct gb_memory_dlq_cfg cfg = {0};
    gb_oom_fail_at(1);
    assert_int_equal(gb_memory_dlq_new(r, &cfg, &d).code, GB_UNAVAILABLE);
    gb_oom_off();
    assert_int_equal(gb_memory_dlq_new(r, &cfg, &d).code, GB_OK);
    (void)snprintf(entry->id, sizeof entry->id, "id");
    struct gb_dlq_write write = {.entry = entry};
    struct gb_dlq_list list = {0};
    unsigned n = 0;
    do {
        assert_true(++n < LADDER_MAX);
        gb_oom_fail_at(n);
        d->ops->write(d, &write, done, NULL);
        gb_oom_off();
        turn(r);
    } while (write.op.result.code == GB_UNAVAILABLE);
    assert_int_equal(write.op.result.code, GB_OK);
    n = 0;
    do {
        assert_true(++n < LADDER_MAX);
        gb_oom_fail_at(n);
        d->ops->list(d, &list, done, NULL);
        gb_oom_off();
        turn(r);
    } while (list.op.result.code == GB_UNAVAILABLE);
    assert_int_equal(list.count, 1);
    gb_dlq_entry_free(list.entries[0]);
    free(list.entries);
    struct gb_op close_op = {0};
    d->ops->close(d, &close_op, done, NULL);
    turn(r);
    gb_dlq_entry_free(entry);
    gb_envelope_unref(e);
    gb_reactor_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(outbox_ladder),
        cmocka_unit_test(dlq_ladder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
