#include "domain/outbox_record.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "domain/token.h"

static struct gb_envelope *new_envelope(void)
{
    struct gb_envelope *e = NULL;
    assert_false(gb_failed(gb_envelope_new(0, &e)));
    assert_false(gb_failed(gb_envelope_set_id(e, gb_bytes_c("m1"))));
    return e;
}

/* Spec 05 §2.1. */
static void partitions_follow_session_or_binding(void **state)
{
    (void)state;
    static const struct partition_row {
        const char *session, *binding, *want;
    } rows[] = {
        {"mqtt-conn", "to-sqs", "SESSION#mqtt-conn"},
        {"", "to-sqs", "BINDING#to-sqs"},
        {NULL, "b", "BINDING#b"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct gb_str out = {0};
        gb_outbox_partition(&out, gb_bytes_c(rows[i].session), gb_bytes_c(rows[i].binding));
        assert_string_equal(out.data, rows[i].want);
        gb_str_deinit(&out);
    }
}

static void a_batch_owns_what_it_was_given(void **state)
{
    (void)state;
    enum { RECORDS = 100 };
    struct gb_outbox_batch *b = NULL;
    assert_false(gb_failed(gb_outbox_batch_new(RECORDS, &b)));
    assert_int_equal(b->count, 0);
    struct gb_envelope *e = new_envelope();
    for (unsigned i = 0; i < RECORDS; i++) {
        char text[40];
        (void)snprintf(text, sizeof text, "record-%u", i);
        struct gb_outbox_record record = {
            .id = gb_bytes_c(text),
            .route_id = gb_bytes(text, 6),
            .binding_id = gb_bytes_c(text),
            .session_id = gb_bytes_c(text),
            .address = gb_bytes_c(text),
            .envelope = gb_envelope_ref(e),
            .dispatch_headers = gb_bytes_c(text),
            .ordering_key = i % 2 == 0 ? gb_bytes(NULL, 0) : gb_bytes_c(text),
            .created_at_ms = 1000 + i,
            .expires_at_ms = 2000 + i,
            .seq = i,
            .first_attempted_at_ms = 3000 + i,
            .claim_version = 4000 + i,
            .replay_count = i,
        };
        assert_false(gb_failed(gb_outbox_batch_add(b, &record)));
    }
    assert_int_equal(b->count, RECORDS);
    for (unsigned i = 0; i < RECORDS; i++) {
        const struct gb_outbox_record *r = &b->records[i];
        char text[40];
        (void)snprintf(text, sizeof text, "record-%u", i);
        assert_true(gb_bytes_equal_c(r->id, text));
        assert_true(gb_bytes_equal_c(r->route_id, "record"));
        assert_true(gb_bytes_equal_c(r->binding_id, text));
        assert_true(gb_bytes_equal_c(r->session_id, text));
        assert_true(gb_bytes_equal_c(r->address, text));
        assert_true(gb_bytes_equal_c(r->dispatch_headers, text));
        assert_true(gb_bytes_equal_c(r->ordering_key, i % 2 == 0 ? "" : text));
        assert_ptr_equal(r->envelope, e);
        assert_int_equal(r->created_at_ms, 1000 + i);
        assert_int_equal(r->expires_at_ms, 2000 + i);
        assert_int_equal(r->seq, i);
        assert_int_equal(r->first_attempted_at_ms, 3000 + i);
        assert_int_equal(r->claim_version, 4000 + i);
        assert_int_equal(r->replay_count, i);
    }
    assert_int_equal(e->refs, RECORDS + 1);
    gb_outbox_batch_free(b);
    assert_int_equal(e->refs, 1);
    gb_envelope_unref(e);
    gb_outbox_batch_free(NULL);
}

static void a_full_batch_says_so(void **state)
{
    (void)state;
    static const size_t capacities[] = {0, 1, 2};
    struct gb_envelope *e = new_envelope();
    for (size_t i = 0; i < sizeof capacities / sizeof capacities[0]; i++) {
        struct gb_outbox_batch *b = NULL;
        assert_false(gb_failed(gb_outbox_batch_new(capacities[i], &b)));
        for (size_t k = 0; k < capacities[i]; k++) {
            struct gb_outbox_record record = {.envelope = gb_envelope_ref(e)};
            assert_false(gb_failed(gb_outbox_batch_add(b, &record)));
        }
        struct gb_outbox_record more = {.envelope = e}; /* stays the caller's */
        assert_int_equal(gb_outbox_batch_add(b, &more).code, GB_UNAVAILABLE);
        assert_int_equal(b->count, capacities[i]);
        gb_outbox_batch_free(b);
        assert_int_equal(e->refs, 1);
    }
    gb_envelope_unref(e);
}

static void an_impossible_batch_is_refused(void **state)
{
    (void)state;
    struct gb_outbox_batch *b = NULL;
    assert_int_equal(gb_outbox_batch_new(SIZE_MAX, &b).code, GB_UNAVAILABLE);
    assert_null(b);
}

/* Spec 05 §1.2. */
static void tokens_need_owner_and_version(void **state)
{
    (void)state;
    struct gb_token token = {.owner = gb_bytes_c("i-1#n"), .version = 1};
    assert_true(gb_token_valid(&token));
    token.version = 0;
    assert_false(gb_token_valid(&token));
    token = (struct gb_token){.version = 1};
    assert_false(gb_token_valid(&token));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(partitions_follow_session_or_binding),
        cmocka_unit_test(a_batch_owns_what_it_was_given),
        cmocka_unit_test(a_full_batch_says_so),
        cmocka_unit_test(an_impossible_batch_is_refused),
        cmocka_unit_test(tokens_need_owner_and_version),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
