#ifndef GB_BLUEPRINT_RULE_ROWS_H
#define GB_BLUEPRINT_RULE_ROWS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "blueprint/blueprint.h"

/* For the tests of the rules: each row changes one place of a valid document and names what must be
 * said. The documents are seeds of the fuzzer too.
 * Owns:   nothing.
 * Thread: one at a time.
 * Errors: a failed test. */

struct rule_row {
    const char *name; /* with the rule or acceptance check of the specification */
    const char *find, *replace;
    const char *want; /* NULL: nothing at all; "warning: ...": no error beside it */
};

#define DOCUMENTS "tests/fuzz/corpus/blueprint/"

static inline char *read_document(const char *path)
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

/* All findings as printed, to be freed. */
static inline char *findings_of(const char *text, enum gb_blueprint_format format,
                                struct gb_err *err)
{
    struct gb_findings findings = {0};
    struct gb_blueprint *b = NULL;
    struct gb_str s = {0};
    *err = gb_blueprint_load(gb_bytes_c(text), "doc", format, &findings, &b);
    assert_int_equal(b == NULL, gb_failed(*err));
    if (b != NULL) *err = gb_blueprint_supported(b, &findings);
    gb_str_append_c(&s, "");
    gb_findings_print(&findings, (const char *const[]){"doc"}, &s);
    assert_int_equal(gb_failed(*err), findings.error_count > 0);
    for (size_t i = 1; i < findings.count; i++) {
        assert_true(findings.items[i - 1].line <= findings.items[i].line);
    }
    gb_findings_deinit(&findings);
    gb_blueprint_free(b);
    char *out = gb_str_take(&s);
    assert_non_null(out);
    return out;
}

static inline char *patched(const char *base, const struct rule_row *row)
{
    const char *at = strstr(base, row->find);
    if (at == NULL) fail_msg("%s: the document has no \"%s\"", row->name, row->find);
    struct gb_str s = {0};
    gb_str_append(&s, gb_bytes(base, (size_t)(at - base)));
    gb_str_append_c(&s, row->replace);
    gb_str_append_c(&s, at + strlen(row->find));
    char *text = gb_str_take(&s);
    assert_non_null(text);
    return text;
}

#endif
