#ifndef GB_BLUEPRINT_DECODED_H
#define GB_BLUEPRINT_DECODED_H

#include <stdlib.h>

#include "base/assert.h"
#include "blueprint/decode.h"
#include "blueprint/normal.h"

/* For tests: the normal form of a text that is decoded but not validated, so that one key can stand
 * alone. Each time its digest is made both ways.
 * Owns:   gb_decoded_normal answers a malloc'd text.
 * Thread: one at a time.
 * Errors: an assertion, unless the test asks for the error. */

static inline char *gb_decoded_normal(const char *text, enum gb_blueprint_format format,
                                      struct gb_err *err)
{
    struct gb_findings findings = {0};
    struct gb_arena *arena = gb_arena_new(1 << 24);
    struct gb_str out = {0};
    const struct gb_node *root = NULL;
    GB_ASSERT(arena != NULL);
    struct gb_blueprint *b = gb_arena_alloc(arena, sizeof *b);
    GB_ASSERT(b != NULL);
    bool ok = format == GB_BLUEPRINT_JSON
                  ? gb_document_json(gb_bytes_c(text), 0, arena, &findings, &root)
                  : gb_document_yaml(gb_bytes_c(text), 0, arena, &findings, &root);
    GB_ASSERT(ok);
    struct gb_decode d = {.arena = arena, .findings = &findings};
    gb_decode_document(&d, root, b);
    GB_ASSERT(!gb_arena_failed(arena));
    *err = gb_normal_document(b, &out);
    uint8_t whole[GB_SHA256_SIZE] = {0};
    uint8_t pieces[GB_SHA256_SIZE] = {0};
    GB_ASSERT(gb_normal_document_digest(b, pieces).code == err->code);
    if (!gb_failed(*err)) gb_sha256(gb_str_bytes(&out), whole);
    GB_ASSERT(memcmp(whole, pieces, sizeof whole) == 0);
    gb_findings_deinit(&findings);
    gb_arena_free(arena);
    char *normal = gb_str_take(&out);
    GB_ASSERT(normal != NULL);
    return normal;
}

#endif
