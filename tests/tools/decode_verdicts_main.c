#include <stdio.h>
#include <stdlib.h>

#include "blueprint/decode.h"

/* What the decoder alone says (rules K1 to K6): one JSON document a line comes in, one line goes
 * out, "ok" or the first finding. For tests that compare it with docs/gobridge.schema.json. */

enum { ARENA_MAX = 64 << 20 };

static bool judge(struct gb_bytes document)
{
    struct gb_findings findings = {0};
    static const char *const names[] = {"document"};
    struct gb_str text = {0};
    struct gb_arena *arena = gb_arena_new(ARENA_MAX);
    struct gb_blueprint *b = arena == NULL ? NULL : gb_arena_alloc(arena, sizeof *b);
    const struct gb_node *root = NULL;
    if (b != NULL && gb_document_json(document, 0, arena, &findings, &root)) {
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

int main(void)
{
    char *line = NULL;
    size_t capacity = 0;
    bool ok = true;
    for (;;) {
        ssize_t size = getline(&line, &capacity, stdin);
        if (size < 0 || !ok) break;
        ok = judge(gb_bytes(line, (size_t)size));
    }
    free(line);
    return ok ? 0 : 1;
}
