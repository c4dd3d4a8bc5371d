#include "base/assert.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static void true_condition_is_evaluated_once(void **state)
{
    (void)state;
    int calls = 0;
    GB_ASSERT(++calls == 1);
    assert_int_equal(calls, 1);
}

static void false_condition_names_itself_and_aborts(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        (void)signal(SIGABRT, SIG_DFL); /* cmocka's own handler would report it as a failed test */
        (void)dup2(ends[1], STDERR_FILENO);
        int answer = 41;
        GB_ASSERT(answer == 42);
        _exit(0);
    }
    (void)close(ends[1]);
    char text[512] = {0};
    size_t size = 0;
    ssize_t got;
    while ((got = read(ends[0], text + size, sizeof text - 1 - size)) > 0) size += (size_t)got;
    (void)close(ends[0]);

    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGABRT);
    assert_non_null(strstr(text, "assert_test.c:"));
    assert_non_null(strstr(text, ": assertion failed: answer == 42\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(true_condition_is_evaluated_once),
        cmocka_unit_test(false_condition_names_itself_and_aborts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
