#include "support/oom.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* The reserved names are the linker's (--wrap). */
/* NOLINTBEGIN */
void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);

static atomic_uint fail_at; /* 0 = never */
static atomic_uint count;

void gb_oom_fail_at(unsigned n)
{
    atomic_store(&count, 0);
    atomic_store(&fail_at, n);
}

void gb_oom_off(void)
{
    gb_oom_fail_at(0);
}

unsigned gb_oom_count(void)
{
    return atomic_load(&count);
}

static bool fails_now(void)
{
    return atomic_fetch_add(&count, 1) + 1 == atomic_load(&fail_at);
}

void *__wrap_malloc(size_t size)
{
    return fails_now() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
    return fails_now() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *old, size_t size)
{
    return fails_now() ? NULL : __real_realloc(old, size);
}
/* NOLINTEND */

unsigned gb_oom_ladder(bool (*failing_at)(const void *arg, unsigned n), const void *arg)
{
    enum { LADDER_MAX = 1000 };
    unsigned n = 1;
    while (!failing_at(arg, n)) assert_true(++n < LADDER_MAX);
    return n;
}
