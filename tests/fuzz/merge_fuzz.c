#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/assert.h"
#include "blueprint/identity.h"

/* Covers: merge, override.
 * The input is base, overlay and overrides PATH=VALUE, each ended by a byte 0xFF, which no document
 * holds. No crash; verdict and findings agree and name a layer that exists; layers that say nothing
 * new change nothing; the first of two equal overlays leaves nothing to do. */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { OVERRIDES_MAX = 4, PATH_MAX_SIZE = 256 };

static struct gb_bytes take(struct gb_bytes *rest)
{
    const uint8_t *end = rest->size == 0 ? NULL : memchr(rest->data, 0xFF, rest->size);
    size_t size = end == NULL ? rest->size : (size_t)(end - rest->data);
    struct gb_bytes part = gb_bytes(rest->data, size);
    size_t used = end == NULL ? size : size + 1;
    *rest = gb_bytes(rest->data + used, rest->size - used);
    return part;
}

static void check_findings(const struct gb_findings *f, const struct gb_blueprint_input *in,
                           struct gb_err err)
{
    GB_ASSERT(!f->failed);
    GB_ASSERT(gb_failed(err) == (f->error_count > 0));
    for (size_t i = 0; i < f->count; i++) {
        const struct gb_finding *item = &f->items[i];
        GB_ASSERT(item->layer <= in->layer_count + in->override_count);
        GB_ASSERT(item->layer < in->layer_count || item->line == 0);
        GB_ASSERT(i == 0 || f->items[i - 1].layer <= item->layer);
    }
    const char *names[GB_BLUEPRINT_NAMES_MAX];
    struct gb_str text = {0};
    gb_blueprint_names(in, names);
    gb_findings_print(f, names, &text);
    GB_ASSERT(!text.failed);
    gb_str_deinit(&text);
}

/* The digest of what is accepted; false when it is refused. */
static bool digest_of(const struct gb_blueprint_input *in, char out[GB_SHA256_HEX])
{
    struct gb_findings findings = {0};
    struct gb_blueprint *b = NULL;
    struct gb_err err = gb_blueprint_load_layers(in, &findings, &b);
    GB_ASSERT(gb_failed(err) == (b == NULL));
    check_findings(&findings, in, err);
    bool ok = b != NULL && !gb_failed(gb_blueprint_digest(b, out));
    gb_blueprint_free(b);
    gb_findings_deinit(&findings);
    return ok;
}

static void check_same(const struct gb_blueprint_input *one, const struct gb_blueprint_input *two)
{
    char first[GB_SHA256_HEX];
    char second[GB_SHA256_HEX];
    if (!digest_of(one, first)) return;
    GB_ASSERT(digest_of(two, second) && strcmp(first, second) == 0);
}

static size_t read_overrides(struct gb_bytes rest, struct gb_blueprint_override *overrides,
                             char (*paths)[PATH_MAX_SIZE])
{
    size_t count = 0;
    while (rest.size > 0 && count < OVERRIDES_MAX) {
        struct gb_bytes set = take(&rest);
        const uint8_t *equals = set.size == 0 ? NULL : memchr(set.data, '=', set.size);
        size_t size = equals == NULL ? 0 : (size_t)(equals - set.data);
        if (equals == NULL || size >= PATH_MAX_SIZE) continue;
        memcpy(paths[count], set.data, size);
        paths[count][size] = '\0';
        overrides[count] =
            (struct gb_blueprint_override){.name = "-set",
                                           .path = paths[count],
                                           .value = gb_bytes(equals + 1, set.size - size - 1)};
        count++;
    }
    return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gb_bytes rest = gb_bytes(data, size);
    struct gb_blueprint_layer base = {.name = "base", .bytes = take(&rest)};
    struct gb_blueprint_layer overlay = {.name = "overlay", .bytes = take(&rest)};
    struct gb_blueprint_override overrides[OVERRIDES_MAX];
    char paths[OVERRIDES_MAX][PATH_MAX_SIZE];
    size_t count = read_overrides(rest, overrides, paths);
    const struct gb_blueprint_layer layers[] = {base, overlay, overlay};
    const struct gb_blueprint_layer same[] = {base, base, {.name = "nothing"}};
    const struct gb_blueprint_input all = {
        .layers = layers, .layer_count = 2, .overrides = overrides, .override_count = count};
    char digest[GB_SHA256_HEX];
    (void)digest_of(&all, digest);
    check_same(&(struct gb_blueprint_input){.layers = layers, .layer_count = 2},
               &(struct gb_blueprint_input){.layers = layers, .layer_count = 3});
    check_same(&(struct gb_blueprint_input){.layers = same, .layer_count = 1},
               &(struct gb_blueprint_input){.layers = same, .layer_count = 3});
    return 0;
}
