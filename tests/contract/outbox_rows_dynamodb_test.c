#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "adapters/dynamodb/dynamodb_outbox_row.h"
#include "base/log.h"
#include "contract/outbox_dynamodb.h"

/* Rows that this program would not write, put by hand: one of them stops no other, nothing of its
 * key passes it, and the log names it (docs/decisions/0203). */

#define S1 "SESSION#s1"
enum { LARGEST = 409600, LINE_MAX = 1024 };

static struct outbox_dynamodb dynamodb;
static struct outbox_backend backend = {.ctx = &dynamodb};
static unsigned errors; /* lines that name a row */
static char last_error[LINE_MAX];

static void watch(void *arg, enum gb_log_level level, const char *line, size_t size)
{
    (void)arg;
    if (level != GB_LOG_ERROR) return;
    (void)snprintf(last_error, sizeof last_error, "%.*s", (int)size, line);
    errors += strstr(last_error, "repair or delete it") != NULL;
}

static int begin(void **state, bool direct)
{
    errors = 0;
    dynamodb.direct = direct;
    outbox_dynamodb_set_up(&backend, 0);
    *state = &backend;
    return 0;
}

static int set_up(void **state)
{
    return begin(state, false);
}

static int set_up_direct(void **state)
{
    return begin(state, true);
}

static int tear_down(void **state)
{
    (void)state;
    outbox_dynamodb_tear_down(&backend);
    outbox_records_free();
    return 0;
}

static void store(const char *envelope, const char *key, const char *payload)
{
    struct outbox_spec spec = {.envelope_id = envelope,
                               .binding_id = "b1",
                               .session_id = "s1",
                               .key = key,
                               .payload = payload};
    assert_int_equal(outbox_store(&backend, &spec), GB_OK);
}

/* `update` with `:v` as DynamoDB's JSON, and #n as `name`, behind the store's back. */
static void plant(const char *sort_key, const char *update, const char *name, const char *value)
{
    struct gb_dynamodb_call call = {0};
    gb_dynamodb_begin(&call, GB_DYNAMODB_UPDATE_ITEM, dynamodb.table);
    gb_dynamodb_object(&call, GB_DYNAMODB_KEY);
    gb_dynamodb_w_s_c(&call.w, "PK", S1);
    gb_dynamodb_w_s_c(&call.w, "SK", sort_key);
    gb_dynamodb_object_end(&call);
    gb_dynamodb_text(&call, GB_DYNAMODB_UPDATE, update);
    gb_dynamodb_names(&call, &(struct gb_dynamodb_name){"#n", name}, 1);
    if (value != NULL) {
        gb_dynamodb_object(&call, GB_DYNAMODB_VALUES);
        gb_json_w_key(&call.w, ":v");
        gb_json_w_raw(&call.w, gb_bytes_c(value));
        gb_dynamodb_object_end(&call);
    }
    assert_int_equal(outbox_dynamodb_run(&dynamodb, &call), GB_OK);
    gb_dynamodb_call_deinit(&call);
}

static char *filled(size_t size)
{
    char *text = malloc(size + 1);
    assert_non_null(text);
    memset(text, 'x', size);
    text[size] = '\0';
    return text;
}

/* What is accepted can be claimed, released and completed: its row has room for that. */
static void largest_record_is_claimed(void **state)
{
    struct outbox_backend *b = *state;
    static char owner[289]; /* the longest instance id, and the nonce */
    unsigned accepted = 0;
    unsigned refused = 0;
    if (!dynamodb_rig_is(dynamodb.rig, "dynoxide")) skip(); /* moto's limit is another */
    memset(owner, 'o', sizeof owner - 1);
    for (size_t size = LARGEST - 1200; size < LARGEST; size += 60) {
        char name[16];
        char *payload = filled(size);
        (void)snprintf(name, sizeof name, "e%zu", size);
        struct outbox_spec spec = {
            .envelope_id = name, .binding_id = "b1", .session_id = "s1", .payload = payload};
        enum gb_code code = outbox_store(b, &spec);
        free(payload);
        if (code == GB_PAYLOAD_TOO_LARGE) {
            refused++;
            continue;
        }
        assert_int_equal(code, GB_OK);
        accepted++;
        for (int i = 0; i < 2; i++) {
            struct gb_outbox_batch *batch = outbox_claim(b, S1, owner, UINT64_MAX - 2, 1, NULL);
            assert_non_null(batch);
            assert_int_equal(outbox_settle(b, i == 0 ? GB_OUTBOX_RELEASE : GB_OUTBOX_COMPLETE, S1,
                                           batch->records[0].id, owner, UINT64_MAX - 2),
                             GB_OK);
            gb_outbox_batch_free(batch);
        }
    }
    print_message("%u accepted, %u refused\n", accepted, refused);
    assert_true(accepted > 0 && refused > 0);
}

static void row_without_room_stops_no_other(void **state)
{
    struct outbox_backend *b = *state;
    enum gb_code code = GB_OK;
    if (!dynamodb_rig_is(dynamodb.rig, "dynoxide")) skip(); /* moto lets it grow */
    store("full", "K", NULL);
    store("second", "K", NULL);
    store("other", NULL, NULL);
    struct gb_dynamodb_call get = {0};
    size_t size = 0;
    struct gb_bytes item = outbox_dynamodb_get(&dynamodb, &get, S1, "OUTBOX#full#b1");
    assert_int_equal(gb_dynamodb_item_size(item, &size).code, GB_OK);
    gb_dynamodb_call_deinit(&get);
    char *pad = filled(LARGEST - size - strlen("padding") - 2);
    char *value = malloc(LARGEST + 16);
    assert_non_null(value);
    (void)snprintf(value, LARGEST + 16, "{\"S\":\"%s\"}", pad);
    plant("OUTBOX#full#b1", "SET #n = :v", "padding", value);
    outbox_claim_is(b, S1, "o", 1, 10, "other");
    assert_int_equal(errors, 1);
    assert_non_null(strstr(last_error, "OUTBOX#full#b1"));
    assert_null(outbox_claim(b, S1, "o", 1, 10, &code));
    assert_int_equal(code, GB_PAYLOAD_TOO_LARGE);
    plant("OUTBOX#full#b1", "REMOVE #n", "padding", NULL); /* repaired */
    outbox_claim_is(b, S1, "o", 1, 10, "full second");
    free(value);
    free(pad);
}

/* 05 check 11 in numbers that no counter of ours reaches. */
static void check_05_11_any_replay_count(void **state)
{
    struct outbox_backend *b = *state;
    static const char *const counts[] = {"4294967294", "4294967295", "4294967296", "5000000000",
                                         "18446744073709551614"};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        char value[48];
        char name[8];
        char key[32];
        (void)snprintf(value, sizeof value, "{\"N\":\"%s\"}", counts[i]);
        (void)snprintf(name, sizeof name, "e%zu", i);
        (void)snprintf(key, sizeof key, "OUTBOX#%s#b1", name);
        store(name, NULL, NULL);
        plant(key, "SET #n = :v", "replay_count", value);
        print_message("replay_count %s\n", counts[i]);
        outbox_claim_is(b, S1, "o", 1, 1, name);
    }
}

static void unreadable_time_hides_no_depth(void **state)
{
    struct outbox_backend *b = *state;
    store("bad", NULL, NULL);
    b->driver.wall_ms += 1000;
    store("good", NULL, NULL);
    plant("OUTBOX#bad#b1", "SET #n = :v", "created_at", "{\"S\":\"yesterday\"}");
    struct gb_outbox_stats q = outbox_stats(b, S1);
    assert_int_equal(q.pending, 2);
    assert_int_equal(q.oldest_pending_ms, b->driver.wall_ms);
    outbox_claim_is(b, S1, "o", 1, 10, "good");
    assert_int_equal(outbox_stats(b, S1).oldest_pending_ms, 0);
}

/* Whichever attribute it is, and wherever it stands in the item. */
static void damaged_row_holds_its_key(void **state)
{
    struct outbox_backend *b = *state;
    static const char *const names[] = {"address",    "route_id",     "binding_id",   "envelope_id",
                                        "session_id", "headers_json", "created_at",   "expires_at",
                                        "seq",        "replay_count", "claim_version"};
    store("A", "K", NULL);
    store("B", "K", NULL);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        enum gb_code code = GB_OK;
        struct gb_dynamodb_call get = {0};
        struct gb_bytes item = outbox_dynamodb_get(&dynamodb, &get, S1, "OUTBOX#A#b1");
        char key[32];
        (void)snprintf(key, sizeof key, "\"%s\"", names[i]);
        bool there = memmem(item.data, item.size, key, strlen(key)) != NULL;
        print_message("%s\n", names[i]);
        errors = 0;
        outbox_dynamodb_reopen(b, 0);                 /* its log speaks again */
        plant("OUTBOX#A#b1", "SET #n = :v", names[i], /* of an index key the type stands fast */
              strcmp(names[i], "expires_at") == 0 ? "{\"N\":\"1.5\"}" : "{\"NULL\":true}");
        assert_null(outbox_claim(b, S1, "o", 1, 10, &code));
        assert_int_equal(code, GB_INVALID_OUTBOX_RECORD);
        assert_int_equal(errors, 1);
        assert_non_null(strstr(last_error, "OUTBOX#A#b1"));
        assert_non_null(strstr(last_error, names[i]));
        bool number = strcmp(names[i], "seq") == 0 || strstr(names[i], "_at") != NULL ||
                      strstr(names[i], "_count") != NULL || strstr(names[i], "version") != NULL;
        bool envelope = strcmp(names[i], "envelope_id") == 0;
        plant("OUTBOX#A#b1", there ? "SET #n = :v" : "REMOVE #n", names[i],
              !there     ? NULL
              : number   ? "{\"N\":\"0\"}"
              : envelope ? "{\"S\":\"A\"}"
                         : "{\"S\":\"b1\"}");
        gb_dynamodb_call_deinit(&get);
    }
    outbox_claim_is(b, S1, "o", 1, 10, "A B");
}

/* --- rows in no index (docs/decisions/0623) --- */

static void put_stray(const char *envelope, struct gb_bytes body, const char *owner)
{
    struct gb_dynamodb_call call = {0};
    struct gb_str scratch = {0};
    struct gb_outbox_record r = outbox_record(
        &(struct outbox_spec){.envelope_id = envelope, .binding_id = "b1", .session_id = "s1"});
    assert_int_equal(gb_envelope_set_payload(r.envelope, body).code, GB_OK);
    r.seq = 1;
    r.created_at_ms = 1;
    gb_dynamodb_begin(&call, GB_DYNAMODB_PUT_ITEM, dynamodb.table);
    gb_dynamodb_object(&call, GB_DYNAMODB_ITEM);
    gb_dbox_write_direct(&call.w, gb_bytes_c(S1), &r, &(struct gb_token){gb_bytes_c(owner), 1}, 1,
                         &scratch);
    gb_dynamodb_object_end(&call);
    assert_int_equal(outbox_dynamodb_run(&dynamodb, &call), GB_OK);
    gb_dynamodb_call_deinit(&call);
    gb_str_deinit(&scratch);
}

static void stray_that_fits_no_index_row_stops_no_other(void **state)
{
    struct outbox_backend *b = *state;
    if (!dynamodb_rig_is(dynamodb.rig, "dynoxide")) skip();
    char *body = filled(380000); /* as JSON it is larger than an item may be */
    memset(body, 0xff, 380000);
    put_stray("huge", gb_bytes(body, 380000), "gone#1");
    put_stray("lost", gb_bytes_c("body"), "gone#1");
    free(body);
    outbox_claim_is(b, S1, "o", 2, 10, "lost");
    assert_int_equal(errors, 1);
    assert_non_null(strstr(last_error, "OUTBOX#huge#b1"));
    store("next", NULL, NULL);
    outbox_claim_is(b, S1, "o", 2, 10, "next");
}

static void stray_of_nobody_is_told_of(void **state)
{
    struct outbox_backend *b = *state;
    put_stray("lost", gb_bytes_c("body"), "gone#1");
    plant("OUTBOX#lost#b1", "REMOVE #n", "claimed_by", NULL);
    outbox_claim_is(b, S1, "o", 2, 10, "");
    assert_int_equal(errors, 1);
    assert_non_null(strstr(last_error, "OUTBOX#lost#b1: claimed_by is missing"));
}

/* --- the fence row --- */

/* No message is to blame: it is held, not turned away. */
static void damaged_counter_refuses_no_message(void **state)
{
    struct outbox_backend *b = *state;
    static const char *const values[] = {"{\"S\":\"nine\"}", "{\"N\":\"1e30\"}",
                                         "{\"N\":\"18446744073709551000\"}", "{\"N\":\"-5000\"}"};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        plant("FENCE", "SET #n = :v", "seq_counter", values[i]);
        struct outbox_spec spec = {.envelope_id = "A", .binding_id = "b1", .session_id = "s1"};
        print_message("seq_counter %s\n", values[i]);
        assert_int_equal(outbox_store(b, &spec), GB_UNAVAILABLE);
    }
    plant("FENCE", "SET #n = :v", "seq_counter", "{\"N\":\"1000\"}");
    store("A", NULL, NULL);
    outbox_claim_is(b, S1, "o", 1, 10, "A");
}

#define CHECK(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
#define DIRECT(name) cmocka_unit_test_setup_teardown(name, set_up_direct, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK(largest_record_is_claimed),    CHECK(row_without_room_stops_no_other),
        CHECK(check_05_11_any_replay_count), CHECK(unreadable_time_hides_no_depth),
        CHECK(damaged_row_holds_its_key),    DIRECT(stray_that_fits_no_index_row_stops_no_other),
        DIRECT(stray_of_nobody_is_told_of),  CHECK(damaged_counter_refuses_no_message),
    };
    gb_log_set_sink(watch, NULL);
    dynamodb.rig = dynamodb_rig_new();
    if (dynamodb.rig == NULL) return DYNAMODB_RIG_SKIP;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    dynamodb_rig_free(dynamodb.rig);
    return failed;
}
