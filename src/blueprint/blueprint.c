#include "blueprint/blueprint.h"

#include "base/assert.h"
#include "blueprint/decode.h"
#include "blueprint/merge.h"
#include "blueprint/override.h"
#include "blueprint/validate.h"

/* For each layer. With the text, what the YAML reader holds and the program itself, the process
 * stays below 64 MiB where there is one (decision 0160). */
#define ARENA_MAX ((size_t)36 << 20)
/* For each override: it copies the list that it changes. */
#define OVERRIDE_MAX ((size_t)2 << 20)

enum gb_blueprint_format gb_blueprint_format_of(const char *file_name)
{
    size_t size = strlen(file_name);
    bool json = size >= 5 && strcmp(file_name + size - 5, ".json") == 0;
    return json ? GB_BLUEPRINT_JSON : GB_BLUEPRINT_YAML;
}

static const struct gb_node *read_layer(const struct gb_blueprint_layer *l, uint32_t layer,
                                        struct gb_arena *arena, struct gb_findings *findings)
{
    const struct gb_node *root = NULL;
    bool ok = l->format == GB_BLUEPRINT_JSON
                  ? gb_document_json(l->bytes, layer, arena, findings, &root)
                  : gb_document_yaml(l->bytes, layer, arena, findings, &root);
    return ok ? root : NULL;
}

/* A layer has to be sound by itself, though not complete: what the merge replaces is checked too
 * (spec 01 §8.1). The model is thrown away. */
static void check_layer(const struct gb_node *root, struct gb_findings *findings)
{
    struct gb_arena *arena = gb_arena_new(ARENA_MAX);
    struct gb_blueprint *b = arena == NULL ? NULL : gb_arena_alloc(arena, sizeof *b);
    if (b != NULL) {
        struct gb_decode d = {.arena = arena, .findings = findings, .partial = true};
        gb_decode_document(&d, root, b);
    }
    bool full = b != NULL && gb_arena_full(arena); /* the decoder has said so */
    if (b == NULL || (gb_arena_failed(arena) && !full)) findings->failed = true;
    gb_arena_free(arena);
}

static bool is_broken(const struct gb_arena *arena, const struct gb_findings *findings)
{
    return findings->failed || findings->error_count > 0 || gb_arena_failed(arena);
}

/* A merge or override ended without a tree and without a finding. */
static void fail_layer(const struct gb_arena *arena, uint32_t layer, struct gb_findings *findings)
{
    if (gb_arena_full(arena)) {
        gb_findings_add(findings, GB_FINDING_ERROR,
                        (struct gb_finding_at){.layer = layer, .rule = GB_RULE_D4},
                        GB_DOCUMENT_TOO_LARGE);
    } else {
        findings->failed = true;
    }
}

/* All mistakes in one run: the tree goes on without what was refused. */
static const struct gb_node *override_all(const struct gb_blueprint_input *in,
                                          struct gb_arena *arena, const struct gb_node *root,
                                          struct gb_findings *findings)
{
    for (size_t i = 0; root != NULL && i < in->override_count; i++) {
        uint32_t layer = (uint32_t)(in->layer_count + i);
        size_t errors = findings->error_count;
        const struct gb_node *next =
            gb_override_apply(arena, findings, root, layer, &in->overrides[i]);
        if (next == NULL && findings->error_count == errors) {
            fail_layer(arena, layer, findings);
            return NULL;
        }
        if (next != NULL) root = next;
    }
    return root;
}

/* One tree of all layers and overrides; NULL after a finding, or when out of memory. */
static const struct gb_node *compose(const struct gb_blueprint_input *in, struct gb_arena *arena,
                                     struct gb_findings *findings)
{
    const struct gb_node *roots[GB_BLUEPRINT_LAYERS_MAX] = {NULL};
    bool single = in->layer_count == 1 && in->override_count == 0;
    for (size_t i = 0; i < in->layer_count; i++) {
        roots[i] = read_layer(&in->layers[i], (uint32_t)i, arena, findings);
        if (roots[i] != NULL && !single) check_layer(roots[i], findings);
    }
    if (single) return roots[0];
    const struct gb_node *root = is_broken(arena, findings) ? NULL : roots[0];
    for (size_t i = 1; root != NULL && i < in->layer_count; i++) {
        root = gb_merge_layers(arena, root, roots[i]);
        if (root == NULL) fail_layer(arena, (uint32_t)i, findings);
    }
    return override_all(in, arena, root, findings);
}

/* The rule of the document's keys (V10), for those which stand in for them. */
static void check_env_key(const char *name, const char *document, const char *value, uint32_t layer,
                          struct gb_findings *findings)
{
    if (document != NULL || value == NULL || strlen(value) >= GB_API_KEY_BYTES_MIN) return;
    gb_findings_add(findings, GB_FINDING_ERROR,
                    (struct gb_finding_at){.layer = layer, .rule = GB_RULE_V10},
                    "%s has %zu bytes; at least %d are required, use a longer key", name,
                    strlen(value), GB_API_KEY_BYTES_MIN);
}

/* The rule of bridge.instance_id (V3), for what stands in for it. */
static void check_env_id(const char *value, uint32_t layer, struct gb_findings *findings)
{
    enum { SHOWN_MAX = 60 };
    struct gb_finding_at at = {.layer = layer, .rule = GB_RULE_V3};
    if (value == NULL) return;
    if (strlen(value) > GB_BLUEPRINT_ID_MAX) {
        gb_findings_add(findings, GB_FINDING_ERROR, at,
                        "GOBRIDGE_INSTANCE_ID \"%.*s...\" has %zu bytes, and at most %d are "
                        "accepted; shorten it",
                        SHOWN_MAX, value, strlen(value), GB_BLUEPRINT_ID_MAX);
    }
    if (!gb_utf8_valid(gb_bytes_c(value)) || !gb_utf8_safe(gb_bytes_c(value))) {
        gb_findings_add(findings, GB_FINDING_ERROR, at,
                        "GOBRIDGE_INSTANCE_ID \"%.*s\" must be UTF-8 without control characters; "
                        "remove them",
                        SHOWN_MAX, value);
    }
}

static const char *copy(struct gb_arena *arena, const char *text)
{
    return text == NULL ? NULL : gb_arena_text(arena, gb_bytes_c(text));
}

static void read_document(const struct gb_blueprint_input *in, struct gb_findings *findings,
                          struct gb_blueprint *b)
{
    b->env = (struct gb_blueprint_env){
        .instance_id = copy(b->arena, in->env.instance_id),
        .admin_api_key = copy(b->arena, in->env.admin_api_key),
        .monitor_api_key = copy(b->arena, in->env.monitor_api_key),
    };
    const struct gb_node *root = compose(in, b->arena, findings);
    if (root == NULL) return;
    struct gb_decode d = {
        .arena = b->arena, .findings = findings, .admin_key_given = b->env.admin_api_key != NULL};
    gb_decode_document(&d, root, b);
    if (gb_arena_failed(b->arena)) return; /* half a model has no meaning */
    struct gb_check c = {.b = b, .findings = findings};
    gb_validate(&c);
    uint32_t layer = (uint32_t)(in->layer_count + in->override_count);
    check_env_id(b->env.instance_id, layer, findings);
    check_env_key("GOBRIDGE_ADMIN_API_KEY", b->http.admin_api_key, b->env.admin_api_key, layer,
                  findings);
    check_env_key("GOBRIDGE_MONITOR_API_KEY", b->http.monitor_api_key, b->env.monitor_api_key,
                  layer, findings);
}

void gb_blueprint_names(const struct gb_blueprint_input *in,
                        const char *names[GB_BLUEPRINT_NAMES_MAX])
{
    size_t count = 0;
    for (size_t i = 0; i < in->layer_count; i++) names[count++] = in->layers[i].name;
    for (size_t i = 0; i < in->override_count; i++) names[count++] = in->overrides[i].name;
    names[count] = "environment";
}

struct gb_err gb_blueprint_load_layers(const struct gb_blueprint_input *in,
                                       struct gb_findings *findings, struct gb_blueprint **out)
{
    GB_ASSERT(in->layer_count >= 1 && in->layer_count <= GB_BLUEPRINT_LAYERS_MAX);
    GB_ASSERT(in->override_count <= GB_BLUEPRINT_OVERRIDES_MAX);
    struct gb_arena *arena =
        gb_arena_new(ARENA_MAX * in->layer_count + OVERRIDE_MAX * in->override_count);
    if (arena == NULL) return gb_err_no_memory("the blueprint");
    struct gb_blueprint *b = gb_arena_alloc(arena, sizeof *b);
    if (b == NULL) {
        gb_arena_free(arena);
        return gb_err_no_memory("the blueprint");
    }
    b->arena = arena;
    read_document(in, findings, b);
    gb_findings_sort(findings);
    struct gb_err err = gb_findings_check(findings);
    if (!gb_failed(err) && gb_arena_failed(arena)) err = gb_err_no_memory("the blueprint");
    if (gb_failed(err)) {
        gb_arena_free(arena);
        return gb_err_in(err, "%s", in->layers[0].name);
    }
    GB_ASSERT(b->bridge.id != NULL);
    *out = b;
    return err;
}

struct gb_err gb_blueprint_load(struct gb_bytes bytes, const char *file_name,
                                enum gb_blueprint_format format, struct gb_findings *findings,
                                struct gb_blueprint **out)
{
    const struct gb_blueprint_layer layer = {.name = file_name, .bytes = bytes, .format = format};
    const struct gb_blueprint_input in = {.layers = &layer, .layer_count = 1};
    return gb_blueprint_load_layers(&in, findings, out);
}

void gb_blueprint_free(struct gb_blueprint *b)
{
    if (b != NULL) gb_arena_free(b->arena);
}
