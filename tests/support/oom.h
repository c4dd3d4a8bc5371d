#ifndef GB_TESTS_SUPPORT_OOM_H
#define GB_TESTS_SUPPORT_OOM_H

#include <stddef.h>
#include <stdlib.h>

/* Makes an allocation fail on purpose. Included by one .c file per test executable, which is linked
 * with -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc; the reserved names below are the linker's.
 * Owns:   the countdown of the test executable.
 * Thread: the test's only.
 * Errors: none. */
static unsigned gb_oom_countdown;

/* The n-th allocation from now (1 = the next) answers NULL; those before and after it succeed. */
static inline void gb_oom_fail_at(unsigned n)
{
    gb_oom_countdown = n;
}
static inline void gb_oom_off(void)
{
    gb_oom_countdown = 0;
}
static inline int gb_oom_fails_now(void)
{
    return gb_oom_countdown > 0 && --gb_oom_countdown == 0;
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);

void *__wrap_malloc(size_t size)
{
    return gb_oom_fails_now() ? NULL : __real_malloc(size);
}
void *__wrap_calloc(size_t count, size_t size)
{
    return gb_oom_fails_now() ? NULL : __real_calloc(count, size);
}
void *__wrap_realloc(void *old, size_t size)
{
    return gb_oom_fails_now() ? NULL : __real_realloc(old, size);
}

#endif
