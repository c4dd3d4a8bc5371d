#include "adapters/dynamodb/dynamodb_subscriptions_row.h"

#include <stdlib.h>
#include <string.h>

#include "domain/mqtt_topic.h"

struct gb_err gb_dsub_no_baseline(const char *identity)
{
    return gb_err(GB_NOT_FOUND, "managed subscriptions of %s: no baseline, seed it first",
                  identity);
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* A filter that no client could have subscribed to would be unsubscribed from for ever: brokers end
 * the connection over it. */
static struct gb_err add_filter(struct gb_filter_list *out, struct gb_bytes filter,
                                const char *table, const char *identity)
{
    struct gb_err err = gb_mqtt_filter_check(filter);
    if (gb_failed(err)) {
        return gb_err(GB_INVALID_CONFIG,
                      "table \"%s\": the item of %s holds a damaged filter, delete it: %s", table,
                      identity, err.message);
    }
    out->filters[out->count] = gb_bytes_dup(filter);
    if (out->filters[out->count] == NULL) return gb_err_no_memory("managed filters");
    out->count++;
    return err;
}

/* Sorts and keeps each text once, as the list's other readers rely on. */
static void collapse(struct gb_filter_list *l)
{
    size_t kept = 0;
    if (l->count > 1) qsort(l->filters, l->count, sizeof *l->filters, compare_texts);
    for (size_t i = 0; i < l->count; i++) {
        if (kept > 0 && strcmp(l->filters[i], l->filters[kept - 1]) == 0) {
            free(l->filters[i]);
        } else {
            l->filters[kept++] = l->filters[i];
        }
    }
    l->count = kept;
}

static struct gb_err read_filters(struct gb_bytes set, const char *table, const char *identity,
                                  struct gb_str *scratch, struct gb_filter_list *out)
{
    struct gb_dynamodb_cursor c;
    struct gb_dynamodb_value v;
    struct gb_err err = gb_ok();
    /* Each element takes at least three bytes of the set's JSON. */
    out->filters = calloc(set.size / 3 + 1, sizeof *out->filters);
    if (out->filters == NULL) return gb_err_no_memory("managed filters");
    gb_dynamodb_cursor_init(&c, GB_DYNAMODB_SS, set, scratch);
    while (!gb_failed(err) && gb_dynamodb_next(&c, &v))
        err = add_filter(out, v.text, table, identity);
    if (!gb_failed(err)) err = c.err;
    collapse(out);
    return err;
}

struct gb_err gb_dsub_row_read(const struct gb_dynamodb_source *from, struct gb_bytes item,
                               const char *identity, struct gb_str *scratch,
                               struct gb_filter_list *out)
{
    bool baseline = false;
    struct gb_bytes set = {0};
    struct gb_dynamodb_field fields[] = {
        {"baseline", GB_DYNAMODB_FIELD_BOOL, false, &baseline, false},
        {"filters", GB_DYNAMODB_FIELD_SS, false, &set, false},
    };
    if (item.size == 0) return gb_dsub_no_baseline(identity);
    struct gb_err err = gb_dynamodb_item_read(from, item, scratch, fields, 2);
    if (gb_failed(err)) return err;
    if (!fields[0].present) return gb_dsub_no_baseline(identity);
    if (!baseline) {
        return gb_err(GB_INVALID_CONFIG,
                      "table \"%s\": attribute baseline of %s must be true, but is false; repair "
                      "or delete the item",
                      from->table, identity);
    }
    if (!fields[1].present) return gb_ok();
    err = read_filters(set, from->table, identity, scratch, out);
    if (gb_failed(err)) gb_filter_list_free(out);
    return err;
}
