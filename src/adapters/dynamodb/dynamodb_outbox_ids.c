#include <stdlib.h>

#include "adapters/dynamodb/dynamodb_outbox_parts.h"

/* Record id to key, of records claimed here (spec 05 §9.6): a settle then needs no index. Oldest
 * use goes first. */

struct cached {
    struct gb_list_node node;
    struct gb_bytes id, partition, sort_key; /* in `memory` */
    char memory[];
};

static struct gb_bytes copy(char **at, struct gb_bytes from)
{
    struct gb_bytes view = gb_bytes(*at, from.size);
    if (from.size > 0) memcpy(*at, from.data, from.size);
    *at += from.size;
    return view;
}

static void drop(struct gb_dbox *s, struct cached *c)
{
    gb_map_remove(&s->ids, c->id);
    gb_list_remove(&c->node);
    free(c);
}

void gb_dbox_ids_put(struct gb_dbox *s, struct gb_bytes id, struct gb_bytes partition,
                     struct gb_bytes sort_key)
{
    gb_dbox_ids_remove(s, id);
    if (s->ids.count >= GB_DBOX_IDS_MAX)
        drop(s, GB_CONTAINER_OF(gb_list_first(&s->ids_by_age), struct cached, node));
    struct cached *c = calloc(1, sizeof *c + id.size + partition.size + sort_key.size);
    if (c == NULL) return;
    char *at = c->memory;
    c->id = copy(&at, id);
    c->partition = copy(&at, partition);
    c->sort_key = copy(&at, sort_key);
    if (gb_failed(gb_map_put(&s->ids, c->id, c))) {
        free(c);
        return;
    }
    gb_list_push(&s->ids_by_age, &c->node);
}

bool gb_dbox_ids_get(struct gb_dbox *s, struct gb_bytes id, struct gb_bytes *partition,
                     struct gb_bytes *sort_key)
{
    struct cached *c = gb_map_get(&s->ids, id);
    if (c == NULL) return false;
    gb_list_remove(&c->node);
    gb_list_push(&s->ids_by_age, &c->node);
    *partition = c->partition;
    *sort_key = c->sort_key;
    return true;
}

void gb_dbox_ids_remove(struct gb_dbox *s, struct gb_bytes id)
{
    struct cached *c = gb_map_get(&s->ids, id);
    if (c != NULL) drop(s, c);
}

void gb_dbox_ids_deinit(struct gb_dbox *s)
{
    while (!gb_list_empty(&s->ids_by_age))
        drop(s, GB_CONTAINER_OF(gb_list_first(&s->ids_by_age), struct cached, node));
    gb_map_deinit(&s->ids);
}
