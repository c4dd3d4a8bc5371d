#ifndef GB_TESTS_SUPPORT_OOM_H
#define GB_TESTS_SUPPORT_OOM_H

#include <stdbool.h>

/* Makes an allocation fail on purpose, for the allocation ladder of `*_oom_test.c`: repeat an
 * operation with n = 1, 2, ... until it succeeds. Such tests are linked with oom.c and
 * -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc, so only the calls of our own objects count, not
 * those inside shared libraries (strdup and asprintf allocate there).
 * Owns:   the one countdown of the test executable.
 * Thread: any; the counters are atomic, the n-th call is that of whichever thread comes.
 * Errors: none. */

/* The n-th allocation from now (1 = the next) answers NULL; those before and after it succeed. */
void gb_oom_fail_at(unsigned n);
/* No allocation fails from now on. */
void gb_oom_off(void);
/* Allocations since the last gb_oom_fail_at or gb_oom_off, the failed one included. */
unsigned gb_oom_count(void);
/* Calls it with n = 1, 2, ... until it says that no allocation failed; that n. */
unsigned gb_oom_ladder(bool (*failing_at)(const void *arg, unsigned n), const void *arg);

#endif
