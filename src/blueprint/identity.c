#include "blueprint/identity.h"

#include <stdlib.h>

#include "base/assert.h"
#include "base/json_write.h"
#include "blueprint/normal.h"
#include "blueprint/schema.h"

struct gb_err gb_blueprint_digest(const struct gb_blueprint *b, char out[GB_SHA256_HEX])
{
    uint8_t digest[GB_SHA256_SIZE];
    struct gb_err err = gb_normal_document_digest(b, digest);
    if (!gb_failed(err)) gb_hex(gb_bytes(digest, sizeof digest), out);
    return err;
}

const char *gb_blueprint_store_target(const struct gb_bp_store *store)
{
    switch ((enum gb_bp_store_type)store->type.value) {
    case GB_BP_DYNAMODB:
        return store->options.table_name;
    case GB_BP_SQLITE:
        return store->options.path;
    case GB_BP_MEMORY:
    case GB_BP_STORE_NONE:
        break;
    }
    return NULL;
}

const char *gb_blueprint_store_type(const struct gb_bp_store *store)
{
    switch ((enum gb_bp_store_type)store->type.value) {
    case GB_BP_DYNAMODB:
        return "dynamodb";
    case GB_BP_SQLITE:
        return "sqlite";
    case GB_BP_MEMORY:
        return "memory";
    case GB_BP_STORE_NONE:
        break;
    }
    GB_ASSERT(false); /* a store without type is refused when it is decoded */
    return NULL;
}

static void begin_line(struct gb_str *out, struct gb_json_writer *w, const char *key)
{
    gb_str_append_c(out, out->size == 0 ? "" : "\n");
    gb_str_append_c(out, key);
    gb_str_append_char(out, '=');
    gb_json_w_init(w, out);
}

static void add_text(struct gb_str *out, const char *key, const char *value)
{
    struct gb_json_writer w;
    begin_line(out, &w, key);
    gb_json_w_string_c(&w, value);
}

static int compare_texts(const void *left, const void *right)
{
    const char *const *a = left;
    const char *const *b = right;
    return strcmp(*a, *b);
}

static void add_members(struct gb_str *out, const struct gb_bp_strings *members)
{
    struct gb_json_writer w;
    const char **sorted = calloc(members->count + 1, sizeof *sorted);
    if (sorted == NULL) {
        out->failed = true;
        return;
    }
    for (size_t i = 0; i < members->count; i++) sorted[i] = members->items[i];
    qsort(sorted, members->count, sizeof *sorted, compare_texts);
    begin_line(out, &w, "cluster.members");
    gb_json_w_array(&w);
    for (size_t i = 0; i < members->count; i++) {
        if (i > 0 && strcmp(sorted[i - 1], sorted[i]) == 0) continue;
        gb_json_w_string_c(&w, sorted[i]);
    }
    gb_json_w_array_end(&w);
    free(sorted);
}

static int compare_pairs(const void *left, const void *right)
{
    const struct gb_bp_pair *const *a = left;
    const struct gb_bp_pair *const *b = right;
    return strcmp((*a)->key, (*b)->key);
}

static void add_endpoints(struct gb_str *out, const struct gb_bp_map *endpoints)
{
    struct gb_json_writer w;
    const struct gb_bp_pair **sorted = calloc(endpoints->count + 1, sizeof *sorted);
    if (sorted == NULL) {
        out->failed = true;
        return;
    }
    for (size_t i = 0; i < endpoints->count; i++) sorted[i] = &endpoints->items[i];
    qsort(sorted, endpoints->count, sizeof *sorted, compare_pairs);
    begin_line(out, &w, "cluster.endpoints");
    gb_json_w_object(&w);
    for (size_t i = 0; i < endpoints->count; i++) {
        gb_json_w_key_bytes(&w, gb_bytes_c(sorted[i]->key));
        gb_json_w_string_c(&w, sorted[i]->value);
    }
    gb_json_w_object_end(&w);
    free(sorted);
}

static void add_store(struct gb_str *out, const char *role, const struct gb_bp_store *store)
{
    struct gb_json_writer w;
    begin_line(out, &w, role);
    if (store->node == NULL) {
        gb_json_w_null(&w);
        return;
    }
    const char *target = gb_blueprint_store_target(store);
    bool table = store->type.value == GB_BP_DYNAMODB;
    gb_json_w_object(&w);
    if (target != NULL) {
        gb_json_w_key(&w, table ? "table_name" : "path");
        gb_json_w_string_c(&w, target);
    }
    gb_json_w_key(&w, "type");
    gb_json_w_string_c(&w, gb_blueprint_store_type(store));
    gb_json_w_object_end(&w);
}

struct gb_err gb_blueprint_fingerprint_text(const struct gb_blueprint *b, struct gb_str *out)
{
    static const char *const modes[] = {
        [GB_BP_STANDALONE] = "standalone", [GB_BP_CLUSTERED] = "clustered"};
    static const char *const rollouts[] = {
        [GB_BP_ROLLOUT_REFUSE] = "refuse",
        [GB_BP_ROLLOUT_INDEPENDENT] = "independent",
        [GB_BP_ROLLOUT_COORDINATED] = "coordinated",
    };
    add_text(out, "tag", "gobridge/deployment-profile/v1");
    add_text(out, "deployment_mode", modes[b->bridge.deployment_mode.value]);
    add_text(out, "cluster.rollout", rollouts[b->bridge.cluster.rollout.value]);
    add_members(out, &b->bridge.cluster.members);
    add_endpoints(out, &b->bridge.cluster.endpoints);
    for (int role = 0; role < GB_BP_ROLE_COUNT; role++) {
        add_store(out, gb_schema_role_name((enum gb_bp_role)role), &b->stores[role]);
    }
    return gb_str_check(out, "the deployment fingerprint");
}

struct gb_err gb_blueprint_fingerprint(const struct gb_blueprint *b, char out[GB_SHA256_HEX])
{
    struct gb_str text = {0};
    struct gb_err err = gb_blueprint_fingerprint_text(b, &text);
    if (!gb_failed(err)) gb_sha256_hex(gb_str_bytes(&text), out);
    gb_str_deinit(&text);
    return err;
}
