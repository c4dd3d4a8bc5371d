#include "io/file.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char path[] = "/tmp/gb_file_test_XXXXXX";

static int make_file(void **state)
{
    (void)state;
    int fd = mkstemp(path);
    if (fd < 0 || write(fd, "hello", 5) != 5) return -1;
    return close(fd);
}

static int remove_file(void **state)
{
    (void)state;
    return unlink(path);
}

static void reading(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        const char *path;
        size_t size_max;
        enum gb_code want;
        const char *text;    /* of the buffer, which starts with "> " */
        const char *message; /* a part of it */
    } rows[] = {
        {"whole file", path, 100, GB_OK, "> hello", ""},
        {"exactly the limit", path, 5, GB_OK, "> hello", ""},
        {"above the limit", path, 4, GB_PAYLOAD_TOO_LARGE, "> ", "limit of 4 bytes"},
        {"no file", "/nonexistent/x", 100, GB_NOT_FOUND, "> ", "/nonexistent/x: no such file"},
        {"file as folder", "/etc/passwd/x", 100, GB_NOT_FOUND, "> ", "/etc/passwd/x"},
        {"folder", "/tmp", 100, GB_UNAVAILABLE, "> ", "is a directory"},
        {"size unknown to stat", "/proc/self/statm", 100, GB_OK, NULL, ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        print_message("row: %s\n", rows[i].name);
        struct gb_str out = {0};
        gb_str_append_c(&out, "> ");
        struct gb_err err = gb_file_read(rows[i].path, rows[i].size_max, &out);
        assert_int_equal(err.code, rows[i].want);
        assert_non_null(strstr(err.message, rows[i].message));
        if (rows[i].text != NULL) assert_string_equal(out.data, rows[i].text);
        if (rows[i].text == NULL) assert_true(out.size > 2);
        gb_str_deinit(&out);
    }
}

/* A token or certificate path that is a pipe must not stop the loop thread. */
static void silent_pipe_is_refused_at_once(void **state)
{
    (void)state;
    char fifo[64];
    (void)snprintf(fifo, sizeof fifo, "/tmp/gb_file_test_%ld.fifo", (long)getpid());
    assert_int_equal(mkfifo(fifo, 0600), 0);
    struct gb_str out = {0};
    struct gb_err err = gb_file_read(fifo, 100, &out);
    assert_int_equal(err.code, GB_UNAVAILABLE);
    assert_non_null(strstr(err.message, "is a pipe"));
    int fd = open(fifo, O_RDWR);
    assert_true(fd >= 0);
    assert_int_equal(gb_file_read_wait(fifo, 100, 1, &out).code, GB_UNAVAILABLE);
    assert_int_equal(out.size, 0);
    assert_int_equal(close(fd), 0);
    assert_int_equal(unlink(fifo), 0);
    gb_str_deinit(&out);
}

static void environment(void **state)
{
    (void)state;
    assert_int_equal(setenv("GB_TEST_EMPTY", "", 1), 0);
    assert_int_equal(setenv("GB_TEST_SET", "value", 1), 0);
    assert_int_equal(unsetenv("GB_TEST_UNSET"), 0);
    assert_null(gb_env("GB_TEST_EMPTY"));
    assert_null(gb_env("GB_TEST_UNSET"));
    assert_string_equal(gb_env("GB_TEST_SET"), "value");
}

static void nonces_are_hex_and_differ(void **state)
{
    (void)state;
    char a[GB_NONCE_SIZE], b[GB_NONCE_SIZE];
    assert_false(gb_failed(gb_nonce(a)));
    assert_false(gb_failed(gb_nonce(b)));
    assert_int_equal(strspn(a, "0123456789abcdef"), 32);
    assert_int_equal(strlen(a), 32);
    assert_string_not_equal(a, b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nonces_are_hex_and_differ),
        cmocka_unit_test_setup_teardown(reading, make_file, remove_file),
        cmocka_unit_test(silent_pipe_is_refused_at_once),
        cmocka_unit_test(environment),
    };
    return cmocka_run_group_tests_name("file", tests, NULL, NULL);
}
