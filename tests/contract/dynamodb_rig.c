#include "contract/dynamodb_rig.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/duration.h"
#include "base/json_read.h"
#include "base/str.h"

enum { CHUNK = 65536 };

struct dynamodb_rig {
    const char *endpoint, *emulator;
    int control;
    unsigned tables;
    struct gb_str command, answer;
};

static int connect_to(const char *port)
{
    char *end = NULL;
    unsigned long number = strtoul(port, &end, 10);
    assert_true(*port != '\0' && *end == '\0' && number > 0 && number <= UINT16_MAX);
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)number),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    int on = 1; /* a command goes in two pieces: the second would wait 40 ms */
    assert_int_equal(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on), 0);
    return fd;
}

struct dynamodb_rig *dynamodb_rig_new(void)
{
    const char *endpoint = getenv("GB_TEST_DYNAMODB_ENDPOINT");
    const char *emulator = getenv("GB_TEST_DYNAMODB_EMULATOR");
    const char *control = getenv("GB_TEST_DYNAMODB_CONTROL");
    if (endpoint == NULL || emulator == NULL || control == NULL) {
        (void)fputs("skipped: no DynamoDB emulator (tests/e2e/emulators.py ctest ... starts one)\n",
                    stderr);
        return NULL;
    }
    struct dynamodb_rig *r = calloc(1, sizeof *r);
    assert_non_null(r);
    r->endpoint = endpoint;
    r->emulator = emulator;
    r->control = connect_to(control);
    return r;
}

void dynamodb_rig_free(struct dynamodb_rig *r)
{
    if (r == NULL) return;
    close(r->control);
    gb_str_deinit(&r->command);
    gb_str_deinit(&r->answer);
    free(r);
}

const char *dynamodb_rig_endpoint(const struct dynamodb_rig *r)
{
    return r->endpoint;
}

bool dynamodb_rig_is(const struct dynamodb_rig *r, const char *emulator)
{
    return strcmp(r->emulator, emulator) == 0;
}

const char *const dynamodb_rig_effects[] = {"cut",  "throttle", "silent",        "internal",
                                            "half", "drop",     "expired_token", "corrupt"};

size_t dynamodb_rig_effect_count(const struct dynamodb_rig *r)
{
    size_t all = sizeof dynamodb_rig_effects / sizeof dynamodb_rig_effects[0];
    return dynamodb_rig_is(r, "dynoxide") ? all : 2;
}

int64_t dynamodb_rig_attempt_ns(const char *effect)
{
    return strcmp(effect, "silent") == 0 ? 150 * GB_MS : 10 * GB_SEC;
}

void dynamodb_rig_table(struct dynamodb_rig *r, const char *name, char out[DYNAMODB_TABLE_SIZE])
{
    struct sockaddr_in own = {0}; /* differs between rigs of a process */
    socklen_t own_size = sizeof own;
    assert_int_equal(getsockname(r->control, (struct sockaddr *)&own, &own_size), 0);
    int size = snprintf(out, DYNAMODB_TABLE_SIZE, "%s-%ld-%u-%u", name, (long)getpid(),
                        (unsigned)ntohs(own.sin_port), ++r->tables);
    assert_in_range(size, 1, DYNAMODB_TABLE_SIZE - 1);
}

static void send_line(int fd, const char *line)
{
    size_t size = strlen(line);
    for (size_t sent = 0; sent < size;) {
        ssize_t n = send(fd, line + sent, size - sent, MSG_NOSIGNAL);
        assert_true(n > 0);
        sent += (size_t)n;
    }
    assert_int_equal(send(fd, "\n", 1, MSG_NOSIGNAL), 1);
}

static void receive_line(int fd, struct gb_str *out)
{
    gb_str_clear(out);
    do {
        char *room = gb_str_reserve(out, CHUNK);
        assert_non_null(room);
        ssize_t n = recv(fd, room, CHUNK, 0);
        if (n <= 0) fail_msg("the fault proxy has closed its control connection");
        out->size += (size_t)n;
    } while (out->data[out->size - 1] != '\n');
    out->data[out->size - 1] = '\0';
    out->size--;
}

/* Leaves the reader at the value of a member of the answer. */
static enum gb_json_event find(const struct gb_str *answer, const char *key,
                               struct gb_json_reader *json)
{
    gb_json_init(json, gb_str_bytes(answer));
    assert_int_equal(gb_json_next(json), GB_JSON_OBJECT_BEGIN);
    while (gb_json_next(json) == GB_JSON_KEY) {
        if (gb_json_text_is(json, key)) return gb_json_next(json);
        assert_true(gb_json_skip(json));
    }
    fail_msg("no \"%s\" in the fault proxy's answer: %s", key, answer->data);
    return GB_JSON_ERROR;
}

const char *dynamodb_rig_ask(struct dynamodb_rig *r, const char *command)
{
    struct gb_json_reader json;
    send_line(r->control, command);
    receive_line(r->control, &r->answer);
    if (find(&r->answer, "ok", &json) != GB_JSON_TRUE) fail_msg("%s: %s", command, r->answer.data);
    return r->answer.data;
}

static void begin(struct dynamodb_rig *r, const char *verb)
{
    gb_str_clear(&r->command);
    gb_str_appendf(&r->command, "{\"do\": \"%s\"", verb);
}

static void add(struct dynamodb_rig *r, const char *key, const char *value)
{
    gb_str_appendf(&r->command, ", \"%s\": \"%s\"", key, value);
}

static void end(struct dynamodb_rig *r)
{
    gb_str_append_char(&r->command, '}');
    assert_false(r->command.failed);
    dynamodb_rig_ask(r, r->command.data);
}

static uint64_t number(struct dynamodb_rig *r, const char *key)
{
    struct gb_json_reader json;
    uint64_t value = 0;
    assert_int_equal(find(&r->answer, key, &json), GB_JSON_NUMBER);
    assert_true(gb_json_u64(&json, &value));
    return value;
}

void dynamodb_rig_client(struct dynamodb_rig *r, const char *client,
                         char endpoint[DYNAMODB_ENDPOINT_SIZE])
{
    begin(r, "open");
    add(r, "client", client);
    end(r);
    (void)snprintf(endpoint, DYNAMODB_ENDPOINT_SIZE, "http://127.0.0.1:%u",
                   (unsigned)number(r, "port"));
}

void dynamodb_rig_rule(struct dynamodb_rig *r, const char *members)
{
    begin(r, "rule");
    gb_str_appendf(&r->command, ", %s", members);
    end(r);
}

size_t dynamodb_rig_held(struct dynamodb_rig *r, const char *client)
{
    begin(r, "state");
    add(r, "client", client);
    end(r);
    return (size_t)number(r, "waiting");
}

void dynamodb_rig_release(struct dynamodb_rig *r, const char *client)
{
    begin(r, "release");
    add(r, "client", client);
    end(r);
}

uint64_t dynamodb_rig_arrived(struct dynamodb_rig *r)
{
    begin(r, "state");
    end(r);
    return number(r, "arrived");
}

double dynamodb_rig_units(struct dynamodb_rig *r, const char *client, const char *action)
{
    struct gb_json_reader json;
    double units = 0;
    begin(r, "capacity");
    add(r, "client", client);
    add(r, "action", action);
    end(r);
    assert_int_equal(find(&r->answer, "units", &json), GB_JSON_NUMBER);
    assert_true(gb_json_double(&json, &units));
    return units;
}

void dynamodb_rig_clear(struct dynamodb_rig *r)
{
    begin(r, "clear");
    end(r);
}
