#include "blueprint/blueprint.h"

#include "base/assert.h"
#include "blueprint/decode.h"
#include "blueprint/validate.h"

/* A document of the largest accepted size and node count, decoded, stays well below. */
#define ARENA_MAX ((size_t)512 << 20)

enum gb_blueprint_format gb_blueprint_format_of(const char *file_name)
{
    size_t size = strlen(file_name);
    bool json = size >= 5 && strcmp(file_name + size - 5, ".json") == 0;
    return json ? GB_BLUEPRINT_JSON : GB_BLUEPRINT_YAML;
}

static void read_document(struct gb_bytes bytes, enum gb_blueprint_format format,
                          struct gb_findings *findings, struct gb_blueprint *b)
{
    const struct gb_node *root = NULL;
    bool ok = format == GB_BLUEPRINT_JSON ? gb_document_json(bytes, 0, b->arena, findings, &root)
                                          : gb_document_yaml(bytes, 0, b->arena, findings, &root);
    if (!ok) return;
    struct gb_decode d = {.arena = b->arena, .findings = findings};
    gb_decode_document(&d, root, b);
    if (gb_arena_failed(b->arena)) return; /* half a model has no meaning */
    struct gb_check c = {.b = b, .findings = findings};
    gb_validate(&c);
}

struct gb_err gb_blueprint_load(struct gb_bytes bytes, const char *file_name,
                                enum gb_blueprint_format format, struct gb_findings *findings,
                                struct gb_blueprint **out)
{
    struct gb_arena *arena = gb_arena_new(ARENA_MAX);
    if (arena == NULL) return gb_err_no_memory("the blueprint");
    struct gb_blueprint *b = gb_arena_alloc(arena, sizeof *b);
    if (b == NULL) {
        gb_arena_free(arena);
        return gb_err_no_memory("the blueprint");
    }
    b->arena = arena;
    read_document(bytes, format, findings, b);
    gb_findings_sort(findings);
    struct gb_err err = gb_findings_check(findings);
    if (!gb_failed(err) && gb_arena_failed(arena)) err = gb_err_no_memory("the blueprint");
    if (gb_failed(err)) {
        gb_arena_free(arena);
        return gb_err_in(err, "%s", file_name);
    }
    GB_ASSERT(b->bridge.id != NULL);
    *out = b;
    return err;
}

void gb_blueprint_free(struct gb_blueprint *b)
{
    if (b != NULL) gb_arena_free(b->arena);
}
