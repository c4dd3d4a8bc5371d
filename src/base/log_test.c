#include "base/log.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/json_read.h"

struct capture {
    unsigned lines;
    enum gb_log_level level;
    size_t size;
    char text[8192];
};

static void on_line(void *arg, enum gb_log_level level, const char *line, size_t size)
{
    struct capture *c = arg;
    assert_true(size < sizeof c->text);
    c->lines++;
    c->level = level;
    c->size = size;
    memcpy(c->text, line, size);
    c->text[size] = '\0';
}

static int setup(void **state)
{
    static struct capture capture;
    capture = (struct capture){0};
    gb_log_set_sink(on_line, &capture);
    gb_log_set_level(GB_LOG_INFO);
    gb_log_set_instance("");
    *state = &capture;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    gb_log_set_sink(NULL, NULL);
    return 0;
}

/* The line is one JSON object and a newline; gives what follows `"time":"...",`. */
static const char *checked_rest(const struct capture *c)
{
    assert_int_equal(c->text[c->size - 1], '\n');
    struct gb_json_reader reader;
    gb_json_init(&reader, gb_bytes(c->text, c->size - 1));
    enum gb_json_event event = gb_json_next(&reader);
    assert_int_equal(event, GB_JSON_OBJECT_BEGIN);
    while (event != GB_JSON_END && event != GB_JSON_ERROR) event = gb_json_next(&reader);
    if (event == GB_JSON_ERROR) fail_msg("%s: %s", reader.err.message, c->text);

    const char shape[] = "{\"time\":\"dddd-dd-ddTdd:dd:dd.dddZ\",";
    for (size_t i = 0; i < sizeof shape - 1; i++) {
        if (shape[i] == 'd') {
            assert_in_range(c->text[i], '0', '9');
        } else {
            assert_int_equal(c->text[i], shape[i]);
        }
    }
    return c->text + sizeof shape - 1;
}

static void fields_of_each_kind(void **state)
{
    struct capture *c = *state;
    struct gb_err err = gb_err(GB_TIMEOUT, "no answer in 5s");
    gb_log_set_instance("node-1");
    GB_LOG(GB_LOG_WARN, "mqtt lost", gb_lf_str("session_id", "s1"), gb_lf_int("epoch", INT64_MIN),
           gb_lf_bool("clean", true), gb_lf_bool("last", false), gb_lf_str("owner", NULL),
           gb_lf_err(&err));
    assert_string_equal(checked_rest(c),
                        "\"level\":\"WARN\",\"msg\":\"mqtt lost\",\"instance_id\":\"node-1\","
                        "\"session_id\":\"s1\",\"epoch\":-9223372036854775808,\"clean\":true,"
                        "\"last\":false,\"owner\":null,\"error\":\"no answer in 5s\","
                        "\"error_code\":\"TIMEOUT\"}\n");
    assert_int_equal(c->level, GB_LOG_WARN);
}

static void no_fields(void **state)
{
    struct capture *c = *state;
    gb_log_write(GB_LOG_INFO, "bridge started", NULL, 0);
    assert_string_equal(checked_rest(c), "\"level\":\"INFO\",\"msg\":\"bridge started\"}\n");
}

static const struct escape_row {
    const char *name;
    const char *text;
    const char *want;
} escape_rows[] = {
    {"plain", "Malm\xC3\xB6 \xF0\x9F\x98\x80", "Malm\xC3\xB6 \xF0\x9F\x98\x80"},
    {"quote and backslash", "a\"b\\c", "a\\\"b\\\\c"},
    {"a line can't be forged", "x\n{\"level\":", "x\\u000a{\\\"level\\\":"},
    {"control characters", "\x01\t\x1F\x7F", "\\u0001\\u0009\\u001f\\u007f"},
    {"bad bytes one by one", "a\xFF\xC3(", "a\\ufffd\\ufffd("},
    {"cut sequence at the end", "a\xE2\x82", "a\\ufffd\\ufffd"},
    {"surrogate", "\xED\xA0\x80", "\\ufffd\\ufffd\\ufffd"},
    {"empty", "", ""},
};

static void strings_are_escaped(void **state)
{
    struct capture *c = *state;
    for (size_t i = 0; i < sizeof escape_rows / sizeof escape_rows[0]; i++) {
        const struct escape_row *row = &escape_rows[i];
        GB_LOG(GB_LOG_INFO, row->text, gb_lf_int("n", 1));
        const char *rest = checked_rest(c);
        const char before[] = "\"level\":\"INFO\",\"msg\":\"";
        size_t size = strlen(row->want);
        assert_memory_equal(rest, before, sizeof before - 1);
        if (strncmp(rest + sizeof before - 1, row->want, size) != 0) {
            fail_msg("%s: %s", row->name, rest);
        }
        assert_string_equal(rest + sizeof before - 1 + size, "\",\"n\":1}\n");
    }
}

static const struct piece_row {
    const char *piece;
    size_t written; /* bytes of it in the line */
} piece_rows[] = {
    {"a", 1}, {"\"", 2}, {"\xC3\xA9", 2}, {"\xE2\x82\xAC", 3}, {"\xF0\x9F\x98\x80", 4}, {"\n", 6},
};

/* A text of many times the piece, at each distance from the limit. */
static void long_line_is_cut_and_marked(void **state)
{
    struct capture *c = *state;
    const char tail[] = "\",\"log_cut\":true}\n";
    for (size_t i = 0; i < sizeof piece_rows / sizeof piece_rows[0]; i++) {
        const struct piece_row *row = &piece_rows[i];
        size_t piece = strlen(row->piece);
        for (size_t pad = 0; pad < 8; pad++) {
            char text[6000];
            size_t size = pad;
            memset(text, 'p', pad);
            for (; size + piece < sizeof text; size += piece)
                memcpy(text + size, row->piece, piece);
            text[size] = '\0';
            GB_LOG(GB_LOG_ERROR, "m", gb_lf_str("big", text), gb_lf_int("after", 1));
            (void)checked_rest(c);
            assert_true(c->size <= 4095 && c->size + row->written > 4095); /* no room is wasted */
            assert_string_equal(c->text + c->size - (sizeof tail - 1), tail);
            assert_true(gb_utf8_valid(gb_bytes(c->text, c->size)));
        }
    }
}

static void many_fields_are_cut_and_marked(void **state)
{
    struct capture *c = *state;
    struct gb_log_field fields[120];
    for (size_t i = 0; i < 120; i++) fields[i] = gb_lf_int("a_rather_long_key", INT64_MIN);
    for (size_t pad = 0; pad < 50; pad++) { /* each place of the last field that fits */
        char msg[64] = {0};
        memset(msg, 'm', pad);
        gb_log_write(GB_LOG_INFO, msg, fields, 90);
        (void)checked_rest(c);
        assert_null(strstr(c->text, "log_cut"));
        gb_log_write(GB_LOG_INFO, msg, fields, 120);
        (void)checked_rest(c);
        assert_non_null(strstr(c->text, ",\"log_cut\":true}\n"));
        assert_in_range(c->size, 4000, 4096);
    }
}

static void level_filters(void **state)
{
    struct capture *c = *state;
    GB_LOG(GB_LOG_DEBUG, "hidden", gb_lf_int("n", 1));
    gb_log_write(GB_LOG_DEBUG, "hidden", NULL, 0);
    assert_int_equal(c->lines, 0);
    assert_false(gb_log_enabled(GB_LOG_DEBUG));
    gb_log_set_level(GB_LOG_DEBUG);
    GB_LOG(GB_LOG_DEBUG, "shown", gb_lf_int("n", 1));
    assert_int_equal(c->lines, 1);
    gb_log_set_level(GB_LOG_ERROR);
    GB_LOG(GB_LOG_WARN, "hidden", gb_lf_int("n", 1));
    GB_LOG(GB_LOG_ERROR, "shown", gb_lf_int("n", 1));
    assert_int_equal(c->lines, 2);
}

static const struct level_row {
    const char *text;
    bool ok;
    enum gb_log_level level;
} level_rows[] = {
    {"debug", true, GB_LOG_DEBUG},  {"INFO", true, GB_LOG_INFO},    {"Warn", true, GB_LOG_WARN},
    {"warning", true, GB_LOG_WARN}, {"error", true, GB_LOG_ERROR},  {"", false, GB_LOG_DEBUG},
    {"warn ", false, GB_LOG_DEBUG}, {"trace", false, GB_LOG_DEBUG},
};

static void levels_parse(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof level_rows / sizeof level_rows[0]; i++) {
        enum gb_log_level level = GB_LOG_DEBUG;
        if (gb_log_parse_level(level_rows[i].text, &level) != level_rows[i].ok) {
            fail_msg("\"%s\"", level_rows[i].text);
        }
        assert_int_equal(level, level_rows[i].level);
    }
}

static void instance_is_cut(void **state)
{
    struct capture *c = *state;
    char id[400];
    memset(id, 'i', sizeof id);
    id[sizeof id - 1] = '\0';
    gb_log_set_instance(id);
    gb_log_write(GB_LOG_INFO, "m", NULL, 0);
    const char *from = strstr(checked_rest(c), "\"instance_id\":\"");
    assert_non_null(from);
    assert_int_equal(strspn(from + 15, "i"), 255);
}

static void without_sink_it_is_stderr(void **state)
{
    struct capture *c = *state;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    int kept = dup(STDERR_FILENO);
    assert_true(kept >= 0);
    assert_true(dup2(ends[1], STDERR_FILENO) >= 0);
    gb_log_set_sink(NULL, NULL);
    gb_log_write(GB_LOG_INFO, "to stderr", NULL, 0);
    assert_true(dup2(kept, STDERR_FILENO) >= 0);
    (void)close(kept);
    (void)close(ends[1]);
    ssize_t size = read(ends[0], c->text, sizeof c->text - 1);
    (void)close(ends[0]);
    assert_true(size > 0);
    c->size = (size_t)size;
    c->text[c->size] = '\0';
    assert_string_equal(checked_rest(c), "\"level\":\"INFO\",\"msg\":\"to stderr\"}\n");
    assert_int_equal(c->lines, 0);
}

/* A reader that hangs costs lines, never the process; what was lost is said when it is back. */
static void unread_pipe_loses_lines_and_says_so(void **state)
{
    struct capture *c = *state;
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_true(fcntl(ends[1], F_SETPIPE_SZ, 4096) >= 4096);
    int kept = dup(STDERR_FILENO);
    assert_true(kept >= 0);
    assert_true(dup2(ends[1], STDERR_FILENO) >= 0);
    gb_log_set_sink(NULL, NULL);
    char big[6000];
    memset(big, 'x', sizeof big);
    big[sizeof big - 1] = '\n';
    gb_log_write_text(big, sizeof big); /* torn at the page */
    gb_log_write(GB_LOG_INFO, "lost", NULL, 0);
    char room[4096];
    assert_int_equal(read(ends[0], room, sizeof room), sizeof room);
    gb_log_write(GB_LOG_INFO, "back", NULL, 0);
    gb_log_write(GB_LOG_INFO, "again", NULL, 0);
    assert_true(dup2(kept, STDERR_FILENO) >= 0);
    (void)close(kept);
    (void)close(ends[1]);
    ssize_t size = read(ends[0], c->text, sizeof c->text - 1);
    (void)close(ends[0]);
    assert_true(size > 0);
    c->text[size] = '\0';
    static const char notice[] = "\n{\"level\":\"WARN\",\"msg\":\"stderr was not read: lines are "
                                 "lost\",\"lines\":2}\n";
    assert_memory_equal(c->text, notice, sizeof notice - 1);
}

static const struct limit_row {
    uint64_t now_ns;
    bool allowed;
    uint64_t suppressed;
} limit_rows[] = {
    {0, true, 0},    {1, false, 0},  {99, false, 1},  {100, true, 2},
    {101, false, 0}, {350, true, 1}, {449, false, 0}, {450, true, 1},
};

static void repeated_lines_are_limited(void **state)
{
    (void)state;
    struct gb_log_limit limit = {0};
    for (size_t i = 0; i < sizeof limit_rows / sizeof limit_rows[0]; i++) {
        uint64_t suppressed = 999;
        bool allowed = gb_log_allow(&limit, limit_rows[i].now_ns, 100, &suppressed);
        assert_int_equal(allowed, limit_rows[i].allowed);
        assert_int_equal(suppressed, limit_rows[i].suppressed);
    }
    uint64_t suppressed;
    assert_true(gb_log_allow(&limit, 1000, UINT64_MAX, &suppressed)); /* no overflow */
    assert_false(gb_log_allow(&limit, 2000, 1, &suppressed));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(fields_of_each_kind, setup, teardown),
        cmocka_unit_test_setup_teardown(no_fields, setup, teardown),
        cmocka_unit_test_setup_teardown(strings_are_escaped, setup, teardown),
        cmocka_unit_test_setup_teardown(long_line_is_cut_and_marked, setup, teardown),
        cmocka_unit_test_setup_teardown(many_fields_are_cut_and_marked, setup, teardown),
        cmocka_unit_test_setup_teardown(level_filters, setup, teardown),
        cmocka_unit_test_setup_teardown(levels_parse, setup, teardown),
        cmocka_unit_test_setup_teardown(instance_is_cut, setup, teardown),
        cmocka_unit_test_setup_teardown(without_sink_it_is_stderr, setup, teardown),
        cmocka_unit_test_setup_teardown(unread_pipe_loses_lines_and_says_so, setup, teardown),
        cmocka_unit_test_setup_teardown(repeated_lines_are_limited, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
