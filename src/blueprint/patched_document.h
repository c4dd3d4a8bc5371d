#ifndef GB_BLUEPRINT_PATCHED_DOCUMENT_H
#define GB_BLUEPRINT_PATCHED_DOCUMENT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/str.h"

/* For tests: the text of a file, and the same with one place changed.
 * Owns:   results are the caller's, free().
 * Thread: any.
 * Errors: a failed test. */

#define DOCUMENTS "tests/fuzz/corpus/blueprint/"

static inline char *read_text(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL) fail_msg("cannot open %s; tests run in the repository's root", path);
    char *text = calloc(1, 65536);
    assert_non_null(text);
    size_t size = fread(text, 1, 65535, file);
    assert_true(size > 0 && size < 65535);
    assert_int_equal(fclose(file), 0);
    return text;
}

static inline char *with_change(const char *text, const char *find, const char *replace)
{
    const char *at = strstr(text, find);
    if (at == NULL) fail_msg("the document has no \"%s\"", find);
    struct gb_str s = {0};
    gb_str_append(&s, gb_bytes(text, (size_t)(at - text)));
    gb_str_append_c(&s, replace);
    gb_str_append_c(&s, at + strlen(find));
    char *changed = gb_str_take(&s);
    assert_non_null(changed);
    return changed;
}

#endif
