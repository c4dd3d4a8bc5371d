#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "core/route.h"
#include "domain/reserved.h"
#include "support/core_fixture.h"

/* What a publisher writes never steers a route (spec 02 §1.2, check 11): neither to another
 * binding, nor past the strip by another spelling. */

enum { NAMES = 5, BINDINGS = 2 };

struct fixture {
    struct core_fixture x;
    struct gb_ledger *ledger;
    struct gb_route *route;
    struct gb_route_binding bindings[BINDINGS];
    struct gb_route_cfg cfg;
    const char *const *names;
    bool seen[NAMES];
    unsigned sends;
    struct gb_op stop;
    bool stopped;
};

static void on_stopped(struct gb_op *op, void *arg)
{
    (void)op;
    ((struct fixture *)arg)->stopped = true;
}

/* A trusted name travels in its own spelling. */
static bool has(const struct gb_envelope *e, const char *name)
{
    char lower[64] = {0};
    for (size_t i = 0; name[i] != '\0' && i < sizeof lower - 1; i++)
        lower[i] = (char)tolower((unsigned char)name[i]);
    return gb_bytes_equal_c(gb_envelope_text(e, name), "b1") ||
           gb_bytes_equal_c(gb_envelope_text(e, lower), "b1");
}

static void look(void *arg, const struct gb_send *q)
{
    struct fixture *f = arg;
    f->sends++;
    for (size_t i = 0; i < NAMES; i++) f->seen[i] = has(q->envelope, f->names[i]);
}

static void run_route(struct fixture *f, bool trust)
{
    core_fixture_init(&f->x);
    assert_int_equal(gb_ledger_new(0, &f->ledger).code, GB_OK);
    static const char *const ids[BINDINGS] = {"b0", "b1"};
    static const char *const addresses[BINDINGS] = {"first", "second"};
    for (size_t i = 0; i < BINDINGS; i++) {
        f->bindings[i] = (struct gb_route_binding){
            .id = ids[i], .sender = &f->x.sender.sender, .address = addresses[i]};
    }
    f->cfg = (struct gb_route_cfg){.id = "r",
                                   .instance_id = "i1",
                                   .policy = gb_policy_default(),
                                   .bindings = f->bindings,
                                   .binding_count = BINDINGS,
                                   .trust_bridge_headers = trust,
                                   .reactor = f->x.reactor,
                                   .metrics = f->x.metrics,
                                   .receiver = &f->x.receiver.receiver,
                                   .dlq = &f->x.dlq.dlq,
                                   .ledger = f->ledger};
    f->x.sender.observe = look;
    f->x.sender.observe_arg = f;
    assert_int_equal(gb_route_new(&f->cfg, &f->route).code, GB_OK);
    gb_route_start(f->route);
    struct fake_delivery *d = fake_receiver_make(&f->x.receiver, "m1");
    for (size_t i = 0; i < NAMES; i++) {
        struct gb_err err =
            gb_envelope_put_text(d->delivery.envelope, f->names[i], gb_bytes_c("b1"));
        assert_int_equal(err.code, GB_OK);
    }
    fake_receiver_emit(d);
    core_fixture_run(&f->x, GB_SEC);
    assert_int_equal(d->fate, FAKE_ACKED);
    assert_int_equal(f->sends, 1);
    assert_string_equal(f->x.sender.sent[0].address, "first");
    f->stop.deadline_ns = f->x.now_ns;
    gb_route_stop(f->route, &f->stop, on_stopped, f);
    core_fixture_run(&f->x, GB_SEC);
    assert_true(f->stopped);
    gb_route_free(f->route);
    gb_ledger_free(f->ledger);
    core_fixture_deinit(&f->x);
}

static void headers_from_the_wire_never_steer(void **state)
{
    (void)state;
    static const struct trust_row {
        const char *names[NAMES]; /* one spelling each */
        bool trust;
        bool want[NAMES];
    } rows[] = {
        {{"x-bridge.route-override", "x-bridge.route-id", "x-bridge.other", "x-bridge.tenant-id",
          "traceparent"},
         false,
         {false, false, false, false, true}},
        {{"X-Bridge.Route-Override", "X-BRIDGE.ROUTE-ID", "X-Bridge.Other", "X-Bridge.Tenant-Id",
          "tracestate"},
         false,
         {false, false, false, false, true}},
        {{"x-bridge.route-override", "x-bridge.route-id", "x-bridge.other", "x-bridge.tenant-id",
          "traceparent"},
         true,
         {false, false, false, true, true}},
        {{"X-Bridge.Route-Override", "X-BRIDGE.ROUTE-ID", "X-Bridge.Other", "X-Bridge.Tenant-Id",
          "tracestate"},
         true,
         {false, false, false, true, true}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct fixture f = {.names = rows[i].names};
        run_route(&f, rows[i].trust);
        for (size_t k = 0; k < NAMES; k++) {
            if (f.seen[k] != rows[i].want[k])
                fail_msg("row %zu: %s seen %d", i, rows[i].names[k], f.seen[k]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(headers_from_the_wire_never_steer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
