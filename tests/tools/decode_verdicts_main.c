#include <stdio.h>
#include <stdlib.h>

#include "blueprint/decode.h"

/* What the decoder alone says (rules K1 to K7, and the reading), one line for each document: "ok"
 * or the first finding. Documents are the files that are named, else the lines of the standard
 * input, as JSON. For tests that compare it with docs/gobridge.schema.json. */

enum { ARENA_MAX = 64 << 20 };

static bool read_tree(struct gb_bytes bytes, enum gb_blueprint_format format,
                      struct gb_arena *arena, struct gb_findings *findings,
                      const struct gb_node **root)
{
    return format == GB_BLUEPRINT_JSON ? gb_document_json(bytes, 0, arena, findings, root)
                                       : gb_document_yaml(bytes, 0, arena, findings, root);
}

static bool judge(struct gb_bytes document, enum gb_blueprint_format format)
{
    struct gb_findings findings = {0};
    static const char *const names[] = {"document"};
    struct gb_str text = {0};
    struct gb_arena *arena = gb_arena_new(ARENA_MAX);
    struct gb_blueprint *b = arena == NULL ? NULL : gb_arena_alloc(arena, sizeof *b);
    const struct gb_node *root = NULL;
    if (b != NULL && read_tree(document, format, arena, &findings, &root)) {
        struct gb_decode d = {.arena = arena, .findings = &findings};
        b->arena = arena;
        gb_decode_document(&d, root, b);
    }
    bool ok = b != NULL && !gb_arena_failed(arena) && !findings.failed;
    gb_findings_sort(&findings);
    if (findings.count > 0) {
        gb_finding_print(&findings.items[0], names, &text);
    } else {
        gb_str_append_c(&text, "ok");
    }
    if (ok && !text.failed) (void)puts(text.data);
    ok = ok && !text.failed;
    gb_str_deinit(&text);
    gb_findings_deinit(&findings);
    gb_arena_free(arena);
    return ok;
}

static bool judge_lines(void)
{
    char *line = NULL;
    size_t capacity = 0;
    bool ok = true;
    for (;;) {
        ssize_t size = getline(&line, &capacity, stdin);
        if (size < 0 || !ok) break;
        ok = judge(gb_bytes(line, (size_t)size), GB_BLUEPRINT_JSON);
    }
    free(line);
    return ok;
}

static bool judge_file(const char *name)
{
    FILE *file = fopen(name, "rb");
    char *bytes = file == NULL ? NULL : malloc(GB_DOCUMENT_SIZE_MAX + 1);
    bool ok = bytes != NULL;
    if (ok) {
        size_t size = fread(bytes, 1, GB_DOCUMENT_SIZE_MAX + 1, file);
        ok = ferror(file) == 0 && judge(gb_bytes(bytes, size), gb_blueprint_format_of(name));
    }
    if (file != NULL) (void)fclose(file);
    free(bytes);
    return ok;
}

int main(int argc, char **argv)
{
    if (argc == 1) return judge_lines() ? 0 : 1;
    for (int i = 1; i < argc; i++) {
        if (!judge_file(argv[i])) return 1;
    }
    return 0;
}
