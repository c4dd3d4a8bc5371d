#ifndef GB_BLUEPRINT_EDGE_ROWS_H
#define GB_BLUEPRINT_EDGE_ROWS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "blueprint/blueprint.h"

/* For tests of rules at their edges: a document as small as the rule allows, and whether one rule
 * says one thing about it. Whatever else the document lacks does not matter.
 * Owns:   nothing.
 * Thread: one at a time.
 * Errors: a failed test. */

struct edge_row {
    const char *name;
    const char *text; /* YAML, JSON when it begins with {; @5@ stands for xxxxx */
    enum gb_rule rule;
    const char *part; /* of the finding as it is printed; "doc:5:" is its place */
    bool said;
};

#define EDGES(rows) check_edges((rows), sizeof(rows) / sizeof((rows)[0]))

static inline char *expanded(const char *text)
{
    struct gb_str s = {0};
    gb_str_append_c(&s, "");
    for (const char *p = text; *p != '\0'; p++) {
        if (*p != '@') {
            gb_str_append_char(&s, *p);
            continue;
        }
        char *end;
        unsigned long count = strtoul(p + 1, &end, 10);
        assert_int_equal(*end, '@');
        for (; count > 0; count--) gb_str_append_char(&s, 'x');
        p = end;
    }
    char *out = gb_str_take(&s);
    assert_non_null(out);
    return out;
}

static inline bool is_said(const struct gb_findings *f, const struct edge_row *row)
{
    for (size_t i = 0; i < f->count; i++) {
        if (f->items[i].rule != row->rule) continue;
        struct gb_str s = {0};
        gb_finding_print(&f->items[i], (const char *const[]){"doc"}, &s);
        bool said = strstr(s.data, row->part) != NULL;
        gb_str_deinit(&s);
        if (said) return true;
    }
    return false;
}

static inline void check_edges(const struct edge_row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct gb_findings findings = {0};
        struct gb_blueprint *b = NULL;
        char *text = expanded(rows[i].text);
        enum gb_blueprint_format format = text[0] == '{' ? GB_BLUEPRINT_JSON : GB_BLUEPRINT_YAML;
        (void)gb_blueprint_load(gb_bytes_c(text), "doc", format, &findings, &b);
        if (is_said(&findings, &rows[i]) != rows[i].said) {
            struct gb_str s = {0};
            gb_str_append_c(&s, "");
            gb_findings_print(&findings, (const char *const[]){"doc"}, &s);
            fail_msg("%s: %s [%s] \"%s\", got:\n%s", rows[i].name,
                     rows[i].said ? "expected" : "did not expect", gb_rule_name(rows[i].rule),
                     rows[i].part, s.data);
        }
        gb_findings_deinit(&findings);
        gb_blueprint_free(b);
        free(text);
    }
}

#endif
