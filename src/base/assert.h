#ifndef GB_BASE_ASSERT_H
#define GB_BASE_ASSERT_H

/* GB_ASSERT stays on in release builds. It is for our own mistakes only; input never reaches it.
 * Owns:   nothing.
 * Thread: any.
 * Errors: none; a false condition writes file, line and condition to stderr and aborts. */
#define GB_ASSERT(condition)                                                                       \
    ((condition) ? (void)0 : gb_assert_failed(__FILE__, __LINE__, #condition))

_Noreturn void gb_assert_failed(const char *file, int line, const char *condition);

#endif
