#include "contract/dynamodb_rig.h"

#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

enum { WAIT_MS = 20000, STEP_MS = 5, TEXT_SIZE = 2048 };

/* What the tests of the store adapters rely on, seen with bare sockets. */
struct fixture {
    struct dynamodb_rig *rig;
    char table[DYNAMODB_TABLE_SIZE];
    char endpoint[DYNAMODB_ENDPOINT_SIZE];
};

static int connect_to(const char *endpoint)
{
    const char *port = strrchr(endpoint, ':');
    assert_non_null(port);
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)strtoul(port + 1, NULL, 10)),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct timeval patience = {.tv_sec = WAIT_MS / 1000};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience), 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

static void send_request(int fd, const char *action, const char *body)
{
    char text[TEXT_SIZE];
    int size =
        snprintf(text, sizeof text,
                 "POST / HTTP/1.1\r\nHost: x\r\nX-Amz-Target: DynamoDB_20120810.%s\r\n"
                 "Content-Type: application/x-amz-json-1.0\r\nX-Amz-Date: 20260101T000000Z\r\n"
                 "Authorization: AWS4-HMAC-SHA256 Credential=local/20260101/eu-central-1/"
                 "dynamodb/aws4_request, SignedHeaders=host;x-amz-date, Signature=%064d\r\n"
                 "Content-Length: %zu\r\n\r\n%s",
                 action, 0, strlen(body), body);
    assert_in_range(size, 1, TEXT_SIZE - 1);
    assert_int_equal(send(fd, text, (size_t)size, MSG_NOSIGNAL), size);
}

/* The status of the answer; 0 = closed without one. Bodies here fit one read after the head. */
static int receive_status(int fd)
{
    char text[TEXT_SIZE] = "";
    size_t size = 0;
    while (strstr(text, "\r\n\r\n") == NULL) {
        ssize_t n = recv(fd, text + size, sizeof text - 1 - size, 0);
        if (n <= 0) return 0;
        size += (size_t)n;
        text[size] = '\0';
    }
    const char *space = strchr(text, ' ');
    assert_non_null(space);
    return (int)strtol(space, NULL, 10);
}

static int request(const char *endpoint, const char *action, const char *body)
{
    int fd = connect_to(endpoint);
    send_request(fd, action, body);
    int status = receive_status(fd);
    close(fd);
    return status;
}

static void put_body(const struct fixture *f, const char *key, char out[TEXT_SIZE])
{
    (void)snprintf(out, TEXT_SIZE,
                   "{\"TableName\": \"%s\", \"Item\": {\"PK\": {\"S\": \"%s\"}}, "
                   "\"ConditionExpression\": \"attribute_not_exists(PK)\", "
                   "\"ReturnConsumedCapacity\": \"INDEXES\"}",
                   f->table, key);
}

static int put(const struct fixture *f, const char *endpoint, const char *key)
{
    char body[TEXT_SIZE];
    put_body(f, key, body);
    return request(endpoint, "PutItem", body);
}

static void wait_held(struct dynamodb_rig *r, const char *client, size_t count)
{
    for (int ms = 0; dynamodb_rig_held(r, client) != count; ms += STEP_MS) {
        assert_in_range(ms, 0, WAIT_MS);
        usleep(STEP_MS * 1000);
    }
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->rig = dynamodb_rig_new();
    dynamodb_rig_table(f->rig, "rig", f->table);
    dynamodb_rig_client(f->rig, "A", f->endpoint);
    char body[TEXT_SIZE];
    (void)snprintf(
        body, sizeof body,
        "{\"TableName\": \"%s\", \"BillingMode\": \"PAY_PER_REQUEST\", "
        "\"KeySchema\": [{\"AttributeName\": \"PK\", \"KeyType\": \"HASH\"}], "
        "\"AttributeDefinitions\": [{\"AttributeName\": \"PK\", \"AttributeType\": \"S\"}]}",
        f->table);
    assert_int_equal(request(dynamodb_rig_endpoint(f->rig), "CreateTable", body), 200);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    dynamodb_rig_free(f->rig);
    free(f);
    return 0;
}

static void requests_pass_and_are_counted(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(put(f, f->endpoint, "a"), 200);
    assert_int_equal(put(f, f->endpoint, "a"), 400);
    assert_int_equal(dynamodb_rig_arrived(f->rig), 2);
    assert_true(dynamodb_rig_units(f->rig, "A", "PutItem") >= 1);
    assert_true(dynamodb_rig_units(f->rig, "B", "") == 0);
    assert_true(dynamodb_rig_is(f->rig, "dynoxide") != dynamodb_rig_is(f->rig, "moto"));
}

static void a_cut_answer_was_applied(void **state)
{
    struct fixture *f = *state;
    dynamodb_rig_rule(f->rig, "\"effect\": \"cut\", \"action\": \"PutItem\"");
    assert_int_equal(put(f, f->endpoint, "a"), 0);
    assert_int_equal(put(f, f->endpoint, "a"), 400); /* its condition failed */
}

static void a_dropped_request_was_not(void **state)
{
    struct fixture *f = *state;
    dynamodb_rig_rule(f->rig, "\"effect\": \"drop\"");
    assert_int_equal(put(f, f->endpoint, "a"), 0);
    assert_int_equal(put(f, f->endpoint, "a"), 200);
}

static void the_released_one_wins(void **state)
{
    struct fixture *f = *state;
    char other[DYNAMODB_ENDPOINT_SIZE], body[TEXT_SIZE];
    dynamodb_rig_client(f->rig, "B", other);
    dynamodb_rig_rule(f->rig, "\"hold\": \"request\", \"times\": 0");
    put_body(f, "a", body);
    int a = connect_to(f->endpoint), b = connect_to(other);
    send_request(a, "PutItem", body);
    wait_held(f->rig, "A", 1);
    send_request(b, "PutItem", body);
    wait_held(f->rig, "", 2);
    dynamodb_rig_release(f->rig, "B");
    assert_int_equal(receive_status(b), 200);
    dynamodb_rig_release(f->rig, "A");
    assert_int_equal(receive_status(a), 400);
    assert_int_equal(dynamodb_rig_held(f->rig, ""), 0);
    close(a);
    close(b);
}

static void clear_lets_go(void **state)
{
    struct fixture *f = *state;
    char body[TEXT_SIZE];
    dynamodb_rig_rule(f->rig, "\"hold\": \"answer\", \"times\": 0");
    put_body(f, "a", body);
    int fd = connect_to(f->endpoint);
    send_request(fd, "PutItem", body);
    wait_held(f->rig, "A", 1);
    dynamodb_rig_clear(f->rig);
    assert_int_equal(receive_status(fd), 200);
    assert_int_equal(put(f, f->endpoint, "b"), 200);
    close(fd);
}

int main(void)
{
    struct dynamodb_rig *probe = dynamodb_rig_new();
    if (probe == NULL) return DYNAMODB_RIG_SKIP;
    dynamodb_rig_free(probe);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(requests_pass_and_are_counted, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_cut_answer_was_applied, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_dropped_request_was_not, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_released_one_wins, set_up, tear_down),
        cmocka_unit_test_setup_teardown(clear_lets_go, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
