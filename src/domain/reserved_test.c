#include "domain/reserved.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

struct fixture {
    struct gb_reactor *reactor;
    struct gb_envelope *e;
};

static int set_up(void **state)
{
    static struct fixture f;
    if (gb_failed(gb_reactor_new(7, &f.reactor))) return -1;
    if (gb_failed(gb_envelope_new(0, &f.e))) return -1;
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    gb_envelope_unref(f->e);
    gb_reactor_free(f->reactor);
    return 0;
}

static void put(struct fixture *f, const char *name, const char *value)
{
    assert_false(gb_failed(gb_envelope_put_text(f->e, name, gb_bytes_c(value))));
}

static void sanitise(struct fixture *f, const struct gb_sanitise *s)
{
    assert_false(gb_failed(gb_sanitise_ingress(f->e, s, f->reactor)));
}

static void assert_header(struct fixture *f, const char *name, const char *want)
{
    const struct gb_value *v = gb_envelope_get(f->e, name);
    if (want == NULL ? v != NULL : v == NULL || !gb_bytes_equal_c(v->text, want)) {
        fail_msg("%s: got %.*s, want %s", name, v == NULL ? 6 : (int)v->text.size,
                 v == NULL ? "(none)" : (const char *)v->text.data, want == NULL ? "none" : want);
    }
}

static const struct kind_row {
    const char *name;
    enum gb_reserved kind;
} kind_rows[] = {
    {GB_H_ROUTE_ID, GB_RESERVED_INTERNAL},
    {GB_H_ROUTE_OVERRIDE, GB_RESERVED_INTERNAL},
    {GB_H_SOURCE_ID, GB_RESERVED_INTERNAL},
    {GB_H_CONTENT_TYPE, GB_RESERVED_INTERNAL},
    {GB_H_GENERATED_ID, GB_RESERVED_INTERNAL},
    {GB_H_CORRELATION_DATA, GB_RESERVED_INTERNAL},
    {"X-Bridge.Route-ID", GB_RESERVED_INTERNAL},
    {GB_H_CORRELATION_ID, GB_RESERVED_BRIDGE},
    {GB_H_CAUSATION_ID, GB_RESERVED_BRIDGE},
    {GB_H_IDEMPOTENCY_KEY, GB_RESERVED_BRIDGE},
    {GB_H_DEDUP_ID, GB_RESERVED_BRIDGE},
    {GB_H_ORDERING_KEY, GB_RESERVED_BRIDGE},
    {GB_H_TENANT_ID, GB_RESERVED_BRIDGE},
    {GB_H_FORWARDED_FROM, GB_RESERVED_BRIDGE},
    {GB_H_FORWARDED_HOP, GB_RESERVED_BRIDGE},
    {"X-BRIDGE.TENANT-ID", GB_RESERVED_BRIDGE},
    {GB_H_PAYLOAD_ENCODING, GB_RESERVED_OTHER},
    {"x-bridge.", GB_RESERVED_OTHER},
    {"x-bridge.anything", GB_RESERVED_OTHER},
    {"X-bridge.tenant-id2", GB_RESERVED_OTHER},
    {"x-bridge", GB_RESERVED_NONE},
    {"x-bridges.route-id", GB_RESERVED_NONE},
    {"traceparent", GB_RESERVED_NONE},
    {"tracestate", GB_RESERVED_NONE},
    {"mqtt.topic", GB_RESERVED_NONE},
    {"", GB_RESERVED_NONE},
};

static void names_have_their_kind(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof kind_rows / sizeof kind_rows[0]; i++) {
        const struct kind_row *row = &kind_rows[i];
        if (gb_reserved_kind(gb_bytes_c(row->name)) != row->kind) fail_msg("%s", row->name);
    }
}

static void only_the_sqs_count_is_a_counter(void **state)
{
    (void)state;
    assert_true(gb_is_redelivery_counter(gb_bytes_c("sqs.ApproximateReceiveCount")));
    assert_true(gb_is_redelivery_counter(gb_bytes_c("SQS.approximatereceivecount")));
    assert_false(gb_is_redelivery_counter(gb_bytes_c("sqs.SentTimestamp")));
    assert_false(gb_is_redelivery_counter(gb_bytes_c("")));
}

static const struct gb_sanitise plain = {.route_id = "route-1", .instance_id = "instance-1"};
static const struct gb_sanitise trusting = {
    .route_id = "route-1",
    .instance_id = "instance-1",
    .trust_bridge_headers = true,
};

/* Every reserved name of the wire, in both modes; ordinary ones pass (spec 02 check 11). */
static void the_wire_does_not_set_reserved_headers(void **state)
{
    struct fixture *f = *state;
    for (int trusted = 0; trusted < 2; trusted++) {
        for (size_t i = 0; i < sizeof kind_rows / sizeof kind_rows[0]; i++) {
            put(f, kind_rows[i].name, "from the wire");
        }
        sanitise(f, trusted ? &trusting : &plain);
        for (size_t i = 0; i < f->e->header_count; i++) {
            const struct gb_header *h = &f->e->headers[i];
            enum gb_reserved kind = gb_reserved_kind(h->name);
            bool wire = gb_bytes_equal_c(h->value.text, "from the wire");
            bool may = kind == GB_RESERVED_NONE || (trusted && kind == GB_RESERVED_BRIDGE);
            if (wire && !may) fail_msg("%.*s", (int)h->name.size, (const char *)h->name.data);
        }
        assert_header(f, "traceparent", "from the wire");
        assert_header(f, "tracestate", "from the wire");
        assert_header(f, "x-bridge", "from the wire");
        assert_header(f, GB_H_TENANT_ID, trusted ? "from the wire" : NULL);
        assert_header(f, GB_H_ROUTE_OVERRIDE, NULL);
        assert_header(f, GB_H_PAYLOAD_ENCODING, NULL);
        assert_header(f, GB_H_ROUTE_ID, "route-1");
        assert_header(f, GB_H_SOURCE_ID, "instance-1");
    }
}

static void a_trusted_name_gets_its_own_case(void **state)
{
    struct fixture *f = *state;
    put(f, "X-Bridge.Tenant-Id", "acme");
    put(f, "X-BRIDGE.Ordering-Key", "other case");
    put(f, GB_H_ORDERING_KEY, "own case");
    put(f, "X-BRIDGE.dedup-id", "first");
    put(f, "x-bridge.DEDUP-id", "last");
    put(f, "X-Bridge.Correlation-Id", "c-1");
    sanitise(f, &trusting);
    assert_header(f, GB_H_TENANT_ID, "acme");
    assert_header(f, GB_H_ORDERING_KEY, "own case");
    assert_header(f, GB_H_DEDUP_ID, "last");
    assert_header(f, GB_H_CORRELATION_ID, "c-1");
    assert_int_equal(f->e->header_count, 4 + 2); /* and the two stamps */
}

static const struct derived_row {
    const char *name;
    unsigned bit;
} derived_rows[] = {
    {GB_H_GENERATED_ID, GB_DERIVED_GENERATED_ID},
    {GB_H_CORRELATION_ID, GB_DERIVED_CORRELATION_ID},
    {GB_H_CORRELATION_DATA, GB_DERIVED_CORRELATION_DATA},
    {GB_H_CONTENT_TYPE, GB_DERIVED_CONTENT_TYPE},
    {GB_H_IDEMPOTENCY_KEY, GB_DERIVED_IDEMPOTENCY_KEY},
    {GB_H_DEDUP_ID, GB_DERIVED_DEDUP_ID},
    {GB_H_ORDERING_KEY, GB_DERIVED_ORDERING_KEY},
};

/* What the adapter derived stays on an untrusted route, and only that (spec 02 §1.3, §1.4). */
static void what_the_adapter_derived_stays(void **state)
{
    struct fixture *f = *state;
    enum { ROWS = sizeof derived_rows / sizeof derived_rows[0] };
    for (size_t kept = 0; kept < ROWS; kept++) {
        for (size_t i = 0; i < ROWS; i++) put(f, derived_rows[i].name, "derived");
        put(f, "X-Bridge.Dedup-Id", "from the wire");
        struct gb_sanitise s = plain;
        s.derived = derived_rows[kept].bit;
        sanitise(f, &s);
        for (size_t i = 0; i < ROWS; i++) {
            const char *name = derived_rows[i].name;
            bool fresh = i != kept && strcmp(name, GB_H_CORRELATION_ID) == 0;
            if (!fresh) assert_header(f, name, i == kept ? "derived" : NULL);
        }
        assert_header(f, "X-Bridge.Dedup-Id", NULL);
    }
}

static void a_forged_receive_count_is_dropped(void **state)
{
    struct fixture *f = *state;
    put(f, GB_H_SQS_RECEIVE_COUNT, "999");
    put(f, "sqs.MessageGroupId", "kept");
    struct gb_sanitise sqs = plain;
    sqs.source_counts = true;
    sanitise(f, &sqs);
    assert_header(f, GB_H_SQS_RECEIVE_COUNT, "999");
    sanitise(f, &plain);
    assert_header(f, GB_H_SQS_RECEIVE_COUNT, NULL);
    assert_header(f, "sqs.MessageGroupId", "kept");
}

static void a_missing_correlation_id_is_made(void **state)
{
    struct fixture *f = *state;
    sanitise(f, &plain);
    struct gb_bytes first = gb_envelope_text(f->e, GB_H_CORRELATION_ID);
    assert_int_equal(first.size, 32);
    for (size_t i = 0; i < first.size; i++) {
        assert_non_null(memchr("0123456789abcdef", first.data[i], 16));
    }
    char old[33] = {0};
    memcpy(old, first.data, 32);
    sanitise(f, &plain); /* stripped as any other of the wire, and made anew */
    struct gb_bytes second = gb_envelope_text(f->e, GB_H_CORRELATION_ID);
    assert_int_equal(second.size, 32);
    assert_false(gb_bytes_equal_c(second, old));
}

static void a_redrive_is_stamped_after_the_strip(void **state)
{
    struct fixture *f = *state;
    put(f, GB_H_CAUSATION_ID, "from the wire");
    put(f, GB_H_ROUTE_OVERRIDE, "from the wire");
    struct gb_sanitise s = plain;
    s.causation_id = "old-id";
    s.binding_override = "binding-2";
    sanitise(f, &s);
    assert_header(f, GB_H_CAUSATION_ID, "old-id");
    assert_header(f, GB_H_ROUTE_OVERRIDE, "binding-2");
    sanitise(f, &plain);
    assert_header(f, GB_H_CAUSATION_ID, NULL);
    assert_header(f, GB_H_ROUTE_OVERRIDE, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_have_their_kind),
        cmocka_unit_test(only_the_sqs_count_is_a_counter),
        cmocka_unit_test_setup_teardown(the_wire_does_not_set_reserved_headers, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_trusted_name_gets_its_own_case, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_the_adapter_derived_stays, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_forged_receive_count_is_dropped, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_missing_correlation_id_is_made, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_redrive_is_stamped_after_the_strip, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
