#include "adapters/dynamodb/dynamodb_tables.h"

#include <stdio.h>
#include <string.h>

enum { SHAPE_SIZE = 192 };

static const struct gb_dynamodb_table tables[GB_DYNAMODB_ROLES] = {
    [GB_DYNAMODB_LEASE] = {.hash = {"PK", GB_DYNAMODB_S}},
    [GB_DYNAMODB_OUTBOX] =
        {
            .hash = {"PK", GB_DYNAMODB_S},
            .range = {"SK", GB_DYNAMODB_S},
            .indexes = {{"ExpiryIndex",
                         {"has_expiry", GB_DYNAMODB_S},
                         {"expires_at", GB_DYNAMODB_N},
                         GB_DYNAMODB_KEYS_ONLY},
                        {"RecordIDIndex",
                         {"record_id", GB_DYNAMODB_S},
                         {.name = NULL},
                         GB_DYNAMODB_KEYS_ONLY},
                        {"ClaimIndex",
                         {"PK", GB_DYNAMODB_S},
                         {"claim_sort", GB_DYNAMODB_S},
                         GB_DYNAMODB_ALL}},
            .index_count = 3,
        },
    [GB_DYNAMODB_DLQ] =
        {
            .hash = {"PK", GB_DYNAMODB_S},
            .indexes = {{"RouteIndex",
                         {"route_id", GB_DYNAMODB_S},
                         {"failed_at", GB_DYNAMODB_N},
                         GB_DYNAMODB_ALL},
                        {"CategoryIndex",
                         {"category", GB_DYNAMODB_S},
                         {"failed_at", GB_DYNAMODB_N},
                         GB_DYNAMODB_ALL}},
            .index_count = 2,
        },
    [GB_DYNAMODB_SUBSCRIPTIONS] = {.hash = {"storage_identity", GB_DYNAMODB_S}},
};

const struct gb_dynamodb_table *gb_dynamodb_table_of(enum gb_dynamodb_role role)
{
    return &tables[role];
}

/* --- comparison --- */

static bool is_same_key(const struct gb_dynamodb_key *a, const struct gb_dynamodb_key *b)
{
    if (a->name == NULL || b->name == NULL) return a->name == b->name;
    return strcmp(a->name, b->name) == 0 && a->type == b->type;
}

/* "PK (S) hash, SK (S) range"; names of a foreign table may be long. */
static void show_keys(char out[SHAPE_SIZE], const struct gb_dynamodb_key *hash,
                      const struct gb_dynamodb_key *range)
{
    int size = hash->name == NULL ? snprintf(out, SHAPE_SIZE, "no hash key")
                                  : snprintf(out, SHAPE_SIZE, "%.64s (%s) hash", hash->name,
                                             gb_dynamodb_type_name(hash->type));
    if (range->name == NULL) {
        (void)snprintf(out + size, SHAPE_SIZE - (size_t)size, ", no range key");
    } else {
        (void)snprintf(out + size, SHAPE_SIZE - (size_t)size, ", %.64s (%s) range", range->name,
                       gb_dynamodb_type_name(range->type));
    }
}

static const struct gb_dynamodb_index *find_index(const struct gb_dynamodb_table *t,
                                                  const char *name)
{
    for (size_t i = 0; i < t->index_count; i++)
        if (strcmp(t->indexes[i].name, name) == 0) return &t->indexes[i];
    return NULL;
}

/* KEYS_ONLY is what is needed at least. */
static bool projects_enough(enum gb_dynamodb_projection wanted, enum gb_dynamodb_projection actual)
{
    return wanted == GB_DYNAMODB_KEYS_ONLY || actual == GB_DYNAMODB_ALL;
}

static struct gb_err check_index(const char *name, const struct gb_dynamodb_index *wanted,
                                 const struct gb_dynamodb_table *actual)
{
    const struct gb_dynamodb_index *is = find_index(actual, wanted->name);
    char expected[SHAPE_SIZE];
    char found[SHAPE_SIZE];
    show_keys(expected, &wanted->hash, &wanted->range);
    if (is == NULL) {
        return gb_err(GB_INVALID_CONFIG,
                      "table \"%s\": required global secondary index \"%s\" is missing; expected "
                      "%s, projecting %s; add the index",
                      name, wanted->name, expected,
                      gb_dynamodb_projection_name(wanted->projection));
    }
    show_keys(found, &is->hash, &is->range);
    if (!is_same_key(&wanted->hash, &is->hash) || !is_same_key(&wanted->range, &is->range)) {
        return gb_err(GB_INVALID_CONFIG,
                      "table \"%s\": GSI \"%s\" must have the keys %s, but has %s; delete and "
                      "recreate the index",
                      name, wanted->name, expected, found);
    }
    if (projects_enough(wanted->projection, is->projection)) return gb_ok();
    return gb_err(GB_INVALID_CONFIG,
                  "table \"%s\": GSI \"%s\" must project %s attributes, but projects %s; delete "
                  "and recreate the index",
                  name, wanted->name, gb_dynamodb_projection_name(wanted->projection),
                  gb_dynamodb_projection_name(is->projection));
}

struct gb_err gb_dynamodb_table_check(enum gb_dynamodb_role role, const char *name,
                                      const struct gb_dynamodb_table *actual)
{
    const struct gb_dynamodb_table *wanted = &tables[role];
    if (!is_same_key(&wanted->hash, &actual->hash) ||
        !is_same_key(&wanted->range, &actual->range)) {
        char expected[SHAPE_SIZE];
        char found[SHAPE_SIZE];
        show_keys(expected, &wanted->hash, &wanted->range);
        show_keys(found, &actual->hash, &actual->range);
        return gb_err(GB_INVALID_CONFIG,
                      "table \"%s\": expected the keys %s, but it has %s; name another table or "
                      "recreate it",
                      name, expected, found);
    }
    if (role == GB_DYNAMODB_SUBSCRIPTIONS && actual->attribute_count != 1) {
        return gb_err(GB_INVALID_CONFIG,
                      "table \"%s\": expected exactly 1 attribute definition, storage_identity, "
                      "but it has %zu; name another table or recreate it",
                      name, actual->attribute_count);
    }
    struct gb_err err = gb_ok();
    for (size_t i = 0; i < wanted->index_count && !gb_failed(err); i++)
        err = check_index(name, &wanted->indexes[i], actual);
    return err;
}
