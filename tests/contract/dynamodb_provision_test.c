#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "adapters/dynamodb/dynamodb_provision.h"
#include "base/duration.h"
#include "contract/dynamodb_driver.h"
#include "contract/dynamodb_rig.h"

/* Creation, plan and preflight of tables on the emulator, with faults from the proxy. */

enum { NEWS_SIZE = 2048 };

static struct dynamodb_rig *rig;
static struct dynamodb_driver driver;
static char names[GB_DYNAMODB_ROLES][DYNAMODB_TABLE_SIZE];
static struct gb_dynamodb_want wants[GB_DYNAMODB_ROLES];
static char news_text[NEWS_SIZE]; /* "<role>:<news> ..." and the errors' texts */
static char errors[NEWS_SIZE];

static void append(char *to, const char *text)
{
    size_t size = strlen(to);
    (void)snprintf(to + size, NEWS_SIZE - size, "%s", text);
}

static void report(void *arg, const struct gb_dynamodb_want *want, enum gb_dynamodb_news news,
                   const struct gb_err *err)
{
    static const char *const words[] = {"missing", "fits", "created", "ttl", "warning", "error"};
    char line[64];
    (void)arg;
    (void)snprintf(line, sizeof line, "%d:%s ", (int)want->role, words[news]);
    append(news_text, line);
    if (gb_failed(*err)) append(errors, err->message);
}

static void provisioned(struct gb_op *op, void *arg)
{
    (void)op;
    gb_loop_stop(((struct dynamodb_driver *)arg)->loop);
}

static struct gb_err run(enum gb_dynamodb_provision_mode mode, const struct gb_dynamodb_want *some,
                         size_t count, const char *want_news)
{
    struct gb_dynamodb_provision p = {.reactor = driver.reactor,
                                      .client = driver.client,
                                      .mode = mode,
                                      .wants = some,
                                      .want_count = count,
                                      .report = report};
    news_text[0] = errors[0] = '\0';
    gb_dynamodb_provision(&p, provisioned, &driver);
    gb_loop_run(driver.loop);
    if (strcmp(news_text, want_news) != 0)
        fail_msg("news \"%s\" instead of \"%s\"; %s", news_text, want_news, errors);
    return p.op.result;
}

static int set_up(void **state)
{
    (void)state;
    char endpoint[DYNAMODB_ENDPOINT_SIZE];
    dynamodb_rig_clear(rig);
    dynamodb_rig_client(rig, "A", endpoint);
    dynamodb_driver_open(&driver, &(struct dynamodb_driver_cfg){.endpoint = endpoint});
    for (int i = 0; i < GB_DYNAMODB_ROLES; i++) {
        dynamodb_rig_table(rig, "t", names[i]);
        bool ttl = i == GB_DYNAMODB_OUTBOX || i == GB_DYNAMODB_DLQ;
        wants[i] = (struct gb_dynamodb_want){
            .role = (enum gb_dynamodb_role)i, .table = names[i], .ttl = ttl};
    }
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    dynamodb_driver_close(&driver);
    dynamodb_rig_clear(rig);
    return 0;
}

static void creation_is_idempotent(void **state)
{
    (void)state;
    const size_t all = GB_DYNAMODB_ROLES;
    const char *missing = "0:missing 1:missing 2:missing 3:missing ";
    assert_int_equal(run(GB_DYNAMODB_PLAN, wants, all, missing).code, GB_OK);
    assert_int_equal(run(GB_DYNAMODB_PREFLIGHT, wants, all, missing).code, GB_OK);
    assert_int_equal(
        run(GB_DYNAMODB_CREATE, wants, all, "0:created 1:created 1:ttl 2:created 2:ttl 3:created ")
            .code,
        GB_OK);
    const char *fits = "0:fits 1:fits 2:fits 3:fits ";
    assert_int_equal(run(GB_DYNAMODB_CREATE, wants, all, fits).code, GB_OK);
    assert_int_equal(run(GB_DYNAMODB_PLAN, wants, all, fits).code, GB_OK);
    assert_int_equal(run(GB_DYNAMODB_PREFLIGHT, wants, all, fits).code, GB_OK);
    assert_int_equal(run(GB_DYNAMODB_PREFLIGHT, wants, 0, "").code, GB_OK);
}

static void lost_answers_do_no_harm(void **state)
{
    (void)state;
    static const char *const rules[] = {
        "\"effect\": \"cut\", \"action\": \"CreateTable\"",
        "\"effect\": \"internal\", \"action\": \"CreateTable\"",
        "\"effect\": \"throttle\", \"action\": \"DescribeTable\"",
        "\"effect\": \"drop\", \"action\": \"DescribeTable\"",
    };
    /* After the cut the table is there already: that is success, but who made it is not known. */
    static const char *const made[] = {"0:fits ", "1:created ", "2:created ", "3:created "};
    static const char *const fits[] = {"0:fits ", "1:fits ", "2:fits ", "3:fits "};
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        const struct gb_dynamodb_want *want = &wants[i];
        print_message("%s\n", rules[i]);
        dynamodb_rig_rule(rig, rules[i]);
        struct gb_dynamodb_want plain = {.role = want->role, .table = want->table};
        assert_int_equal(run(GB_DYNAMODB_CREATE, &plain, 1, made[i]).code, GB_OK);
        assert_int_equal(run(GB_DYNAMODB_PLAN, &plain, 1, fits[i]).code, GB_OK);
    }
}

/* One that fails does not keep the others from being made. */
static void refusals_are_told(void **state)
{
    (void)state;
    dynamodb_rig_rule(rig, "\"effect\": \"denied\", \"action\": \"CreateTable\"");
    struct gb_err err = run(GB_DYNAMODB_CREATE, wants, 2, "0:error 1:created 1:ttl ");
    assert_int_equal(err.code, GB_NOT_AUTHORIZED);
    assert_non_null(strstr(err.message, names[0]));
}

static void ttl_that_fails_is_a_warning(void **state)
{
    (void)state;
    dynamodb_rig_rule(rig, "\"effect\": \"denied\", \"action\": \"UpdateTimeToLive\"");
    struct gb_err err = run(GB_DYNAMODB_CREATE, &wants[1], 1, "1:created 1:warning ");
    assert_int_equal(err.code, GB_OK);
    assert_non_null(strstr(errors, names[1]));
    assert_int_equal(run(GB_DYNAMODB_CREATE, &wants[1], 1, "1:fits 1:ttl ").code, GB_OK);
    dynamodb_rig_rule(rig, "\"effect\": \"denied\", \"action\": \"DescribeTimeToLive\"");
    assert_int_equal(run(GB_DYNAMODB_CREATE, &wants[1], 1, "1:fits 1:warning ").code, GB_OK);
}

static void creation_waits_until_active(void **state)
{
    (void)state;
    dynamodb_rig_rule(rig, "\"effect\": \"answer\", \"action\": \"DescribeTable\", \"skip\": 1, "
                           "\"times\": 2, \"status\": 200, \"body\": \"{\\\"Table\\\":{"
                           "\\\"TableStatus\\\":\\\"CREATING\\\",\\\"AttributeDefinitions\\\":[{"
                           "\\\"AttributeName\\\":\\\"PK\\\",\\\"AttributeType\\\":\\\"S\\\"}],"
                           "\\\"KeySchema\\\":[{\\\"AttributeName\\\":\\\"PK\\\",\\\"KeyType\\\":"
                           "\\\"HASH\\\"}]}}\"");
    uint64_t before_ns = gb_reactor_now_ns(driver.reactor);
    assert_int_equal(run(GB_DYNAMODB_CREATE, wants, 1, "0:created ").code, GB_OK);
    assert_true(gb_reactor_now_ns(driver.reactor) - before_ns >= (uint64_t)(900 * GB_MS));
}

/* The table of one role under the name of another's. */
static void check_05_22_other_shapes_are_refused(void **state)
{
    (void)state;
    assert_int_equal(run(GB_DYNAMODB_CREATE, wants, 1, "0:created ").code, GB_OK);
    struct gb_dynamodb_want wrong = {.role = GB_DYNAMODB_OUTBOX, .table = names[0]};
    static const enum gb_dynamodb_provision_mode modes[] = {GB_DYNAMODB_PREFLIGHT, GB_DYNAMODB_PLAN,
                                                            GB_DYNAMODB_CREATE};
    for (size_t i = 0; i < 3; i++) {
        struct gb_err err = run(modes[i], &wrong, 1, "1:error ");
        assert_int_equal(err.code, GB_INVALID_CONFIG);
        assert_non_null(strstr(err.message, names[0]));
        assert_non_null(strstr(err.message, "expected the keys PK (S) hash, SK (S) range"));
    }
    wrong.advisory = true;
    assert_int_equal(run(GB_DYNAMODB_PREFLIGHT, &wrong, 1, "1:warning ").code, GB_OK);
    assert_int_equal(run(GB_DYNAMODB_CREATE, &wrong, 1, "1:error ").code, GB_INVALID_CONFIG);
}

static void table_that_can_not_be_described_is_fatal(void **state)
{
    (void)state;
    dynamodb_rig_rule(rig, "\"effect\": \"denied\", \"action\": \"DescribeTable\", \"times\": 0");
    assert_int_equal(run(GB_DYNAMODB_PREFLIGHT, wants, 1, "0:error ").code, GB_NOT_AUTHORIZED);
    wants[0].advisory = true;
    assert_int_equal(run(GB_DYNAMODB_PREFLIGHT, wants, 1, "0:warning ").code, GB_OK);
}

static void check_05_23_lease_table_must_not_expire(void **state)
{
    (void)state;
    assert_int_equal(run(GB_DYNAMODB_CREATE, wants, 1, "0:created ").code, GB_OK);
    struct gb_dynamodb_call call = {0};
    gb_dynamodb_begin(&call, GB_DYNAMODB_UPDATE_TIME_TO_LIVE, names[0]);
    gb_dynamodb_ttl(&call, "ttl");
    assert_int_equal(dynamodb_driver_run(&driver, &call), GB_OK);
    gb_dynamodb_call_deinit(&call);
    struct gb_err err = run(GB_DYNAMODB_PREFLIGHT, wants, 1, "0:fits 0:error ");
    assert_int_equal(err.code, GB_INVALID_CONFIG);
    assert_non_null(strstr(err.message, "expected time to live off, but it is ENABLED"));
    assert_non_null(strstr(err.message, names[0]));
    wants[0].advisory = true;
    assert_int_equal(run(GB_DYNAMODB_PREFLIGHT, wants, 1, "0:fits 0:warning ").code, GB_OK);
    wants[0].advisory = false;
    dynamodb_rig_rule(rig, "\"effect\": \"denied\", \"action\": \"DescribeTimeToLive\"");
    assert_int_equal(run(GB_DYNAMODB_PREFLIGHT, wants, 1, "0:fits 0:error ").code,
                     GB_NOT_AUTHORIZED);
}

struct soon {
    struct gb_timer timer;
    struct gb_dynamodb_provision *p;
};

static void cancel_soon(struct gb_timer *timer)
{
    gb_op_cancel(&GB_CONTAINER_OF(timer, struct soon, timer)->p->op);
}

static void cancel_ends_it(void **state)
{
    (void)state;
    struct gb_dynamodb_provision p = {.reactor = driver.reactor,
                                      .client = driver.client,
                                      .wants = wants,
                                      .want_count = 4,
                                      .report = report};
    struct soon soon = {.p = &p};
    dynamodb_rig_rule(rig, "\"effect\": \"silent\", \"action\": \"DescribeTable\", \"times\": 0");
    assert_int_equal(gb_timer_init(&soon.timer, driver.reactor, cancel_soon).code, GB_OK);
    gb_timer_start(&soon.timer, gb_reactor_now_ns(driver.reactor) + (uint64_t)(50 * GB_MS));
    news_text[0] = '\0';
    gb_dynamodb_provision(&p, provisioned, &driver);
    gb_loop_run(driver.loop);
    gb_timer_deinit(&soon.timer);
    assert_int_equal(p.op.result.code, GB_CANCELLED);
    assert_string_equal(news_text, "");
}

int main(void)
{
    rig = dynamodb_rig_new();
    if (rig == NULL) return DYNAMODB_RIG_SKIP;
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(creation_is_idempotent),
        TEST(lost_answers_do_no_harm),
        TEST(refusals_are_told),
        TEST(ttl_that_fails_is_a_warning),
        TEST(creation_waits_until_active),
        TEST(check_05_22_other_shapes_are_refused),
        TEST(table_that_can_not_be_described_is_fatal),
        TEST(check_05_23_lease_table_must_not_expire),
        TEST(cancel_ends_it),
    };
    int failed = cmocka_run_group_tests_name("DynamoDB tables", tests, NULL, NULL);
    dynamodb_rig_free(rig);
    return failed;
}
