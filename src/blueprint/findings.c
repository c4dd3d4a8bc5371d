#include "blueprint/findings.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/assert.h"

void gb_findings_deinit(struct gb_findings *f)
{
    for (size_t i = 0; i < f->count; i++) {
        free(f->items[i].path);
        free(f->items[i].id);
        free(f->items[i].text);
    }
    free(f->items);
    *f = (struct gb_findings){0};
}

static bool grow(struct gb_findings *f)
{
    if (f->count < f->capacity) return true;
    size_t capacity = f->capacity == 0 ? 16 : f->capacity * 2;
    struct gb_finding *items = realloc(f->items, capacity * sizeof *items);
    if (items == NULL) return false;
    f->items = items;
    f->capacity = capacity;
    return true;
}

/* The size of the UTF-8 sequence at `p`, 0 when there is none. */
static size_t sequence_size(const char *p)
{
    for (size_t size = 1; size <= 4 && p[size - 1] != '\0'; size++) {
        if (gb_utf8_valid(gb_bytes(p, size))) return size;
    }
    return 0;
}

/* Values of the document come along: a finding stays on one line, and a value that was shortened
 * inside a character loses the rest of it. */
static char *clean_copy(const char *text)
{
    char *copy = gb_strdup(text);
    if (copy == NULL) return NULL;
    size_t used = 0;
    for (const char *p = text; *p != '\0';) {
        size_t size = sequence_size(p);
        if (size > 0 && gb_utf8_safe(gb_bytes(p, size))) {
            memcpy(copy + used, p, size);
            used += size;
        } else if (size > 0) {
            copy[used++] = '?';
        }
        p += size > 0 ? size : 1;
    }
    copy[used] = '\0';
    return copy;
}

static char *text_of(const char *format, va_list args)
{
    char text[GB_FINDING_TEXT_MAX];
    int size = vsnprintf(text, sizeof text, format, args);
    GB_ASSERT(size >= 0);
    return clean_copy(text);
}

static void count(struct gb_findings *f, enum gb_severity severity)
{
    if (severity == GB_FINDING_ERROR) f->error_count++;
    if (severity == GB_FINDING_WARNING) f->warning_count++;
}

/* By severity, so that warnings never push out the error that decides. */
bool gb_findings_skip(struct gb_findings *f, enum gb_severity severity)
{
    if (!f->failed && f->kept[severity] < GB_FINDINGS_MAX) return false;
    count(f, severity);
    return true;
}

void gb_findings_add(struct gb_findings *f, enum gb_severity severity, struct gb_finding_at at,
                     const char *format, ...)
{
    va_list args;
    va_start(args, format);
    gb_findings_add_v(f, severity, at, format, args);
    va_end(args);
}

void gb_findings_add_v(struct gb_findings *f, enum gb_severity severity, struct gb_finding_at at,
                       const char *format, va_list args)
{
    if (gb_findings_skip(f, severity)) return;
    count(f, severity);
    if (!grow(f)) {
        f->failed = true;
        return;
    }
    struct gb_finding *item = &f->items[f->count];
    *item = (struct gb_finding){
        .severity = severity,
        .rule = at.rule,
        .layer = at.layer,
        .line = at.line,
        .column = at.column,
        .order = f->count,
        .path = clean_copy(at.path == NULL ? "" : at.path),
        .id = clean_copy(at.id == NULL ? "" : at.id),
        .text = text_of(format, args),
    };
    f->count++;
    f->kept[severity]++;
    if (item->path == NULL || item->id == NULL || item->text == NULL) f->failed = true;
}

static int compare(const void *left, const void *right)
{
    const struct gb_finding *a = left;
    const struct gb_finding *b = right;
    if (a->layer != b->layer) return a->layer < b->layer ? -1 : 1;
    if (a->line != b->line) return a->line < b->line ? -1 : 1;
    if (a->column != b->column) return a->column < b->column ? -1 : 1;
    return a->order < b->order ? -1 : a->order > b->order;
}

void gb_findings_sort(struct gb_findings *f)
{
    if (f->count > 1) qsort(f->items, f->count, sizeof *f->items, compare);
}

struct gb_err gb_findings_check(const struct gb_findings *f)
{
    if (f->failed) return gb_err_no_memory("the findings of the document");
    if (f->error_count == 0) return gb_ok();
    return gb_err(GB_INVALID_CONFIG, "config validation failed: %zu error%s", f->error_count,
                  f->error_count == 1 ? "" : "s");
}

void gb_finding_print(const struct gb_finding *finding, const char *const *names,
                      struct gb_str *out)
{
    gb_str_append_c(out, names[finding->layer]);
    if (finding->line > 0) gb_str_appendf(out, ":%u:%u", finding->line, finding->column);
    gb_str_append_c(out, finding->severity == GB_FINDING_ERROR ? ": error: " : ": warning: ");
    if (finding->path[0] != '\0') {
        gb_str_append_c(out, finding->path);
        if (finding->id[0] != '\0') gb_str_appendf(out, " (%s)", finding->id);
        gb_str_append_c(out, ": ");
    }
    gb_str_append_c(out, finding->text);
    if (finding->rule != GB_RULE_NONE) gb_str_appendf(out, " [%s]", gb_rule_name(finding->rule));
}

void gb_findings_print(const struct gb_findings *f, const char *const *names, struct gb_str *out)
{
    GB_ASSERT(!f->failed);
    for (size_t i = 0; i < f->count; i++) {
        gb_finding_print(&f->items[i], names, out);
        gb_str_append_char(out, '\n');
    }
    size_t all = f->error_count + f->warning_count;
    if (all > f->count) {
        gb_str_appendf(out, "%s: %zu further findings are not shown\n", names[0], all - f->count);
    }
}
