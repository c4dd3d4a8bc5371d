#include "core/ledger.h"

#include <stdlib.h>

#include "base/list.h"
#include "base/map.h"
#include "base/str.h"
#include "domain/reserved.h"

struct charge {
    struct gb_list_node node; /* oldest first */
    char *key;
    size_t key_size;
    uint32_t attempts;
};

struct gb_ledger {
    struct gb_map by_key;
    struct gb_list by_age;
    size_t entries_max;
};

struct gb_err gb_ledger_new(size_t entries_max, struct gb_ledger **out)
{
    struct gb_ledger *l = calloc(1, sizeof *l);
    if (l == NULL) return gb_err_no_memory("replay ledger");
    gb_list_init(&l->by_age);
    l->entries_max = entries_max == 0 ? GB_LEDGER_MAX : entries_max;
    *out = l;
    return gb_ok();
}

static void drop_charge(struct gb_ledger *l, struct charge *c)
{
    gb_map_remove(&l->by_key, gb_bytes(c->key, c->key_size));
    gb_list_remove(&c->node);
    free(c->key);
    free(c);
}

void gb_ledger_free(struct gb_ledger *l)
{
    if (l == NULL) return;
    struct gb_list_node *n;
    while ((n = gb_list_first(&l->by_age)) != NULL)
        drop_charge(l, GB_CONTAINER_OF(n, struct charge, node));
    gb_map_deinit(&l->by_key);
    free(l);
}

/* Spec 02 §5.2: dedup id, else idempotency key, else envelope id. */
static char *make_key(const struct gb_envelope *e, size_t *size)
{
    struct gb_str key = {0};
    struct gb_bytes text = gb_envelope_text(e, GB_H_DEDUP_ID);
    const char *prefix = "dedup:";
    if (text.size == 0) {
        text = gb_envelope_text(e, GB_H_IDEMPOTENCY_KEY);
        prefix = "idem:";
    }
    if (text.size == 0) {
        text = e->id;
        prefix = "id:";
    }
    gb_str_append_c(&key, prefix);
    gb_str_append(&key, text);
    *size = key.size;
    return gb_str_take(&key);
}

static struct charge *find(const struct gb_ledger *l, const struct gb_envelope *e)
{
    if (l->by_key.count == 0) return NULL;
    size_t size = 0;
    char *key = make_key(e, &size);
    if (key == NULL) return NULL;
    struct charge *c = gb_map_get(&l->by_key, gb_bytes(key, size));
    free(key);
    return c;
}

uint32_t gb_ledger_attempts(const struct gb_ledger *l, const struct gb_envelope *e)
{
    const struct charge *c = find(l, e);
    return c == NULL ? 0 : c->attempts;
}

void gb_ledger_charge(struct gb_ledger *l, const struct gb_envelope *e)
{
    struct charge *c = find(l, e);
    if (c != NULL) {
        if (c->attempts < UINT32_MAX) c->attempts++;
        return;
    }
    c = calloc(1, sizeof *c);
    if (c == NULL) return;
    c->key = make_key(e, &c->key_size);
    c->attempts = 1;
    if (c->key == NULL || gb_failed(gb_map_put(&l->by_key, gb_bytes(c->key, c->key_size), c))) {
        free(c->key);
        free(c);
        return;
    }
    gb_list_push(&l->by_age, &c->node);
    if (l->by_key.count > l->entries_max)
        drop_charge(l, GB_CONTAINER_OF(gb_list_first(&l->by_age), struct charge, node));
}

void gb_ledger_forget(struct gb_ledger *l, const struct gb_envelope *e)
{
    struct charge *c = find(l, e);
    if (c != NULL) drop_charge(l, c);
}

size_t gb_ledger_size(const struct gb_ledger *l)
{
    return l->by_key.count;
}

bool gb_ledger_countable(const struct gb_envelope *e)
{
    if (gb_envelope_get(e, GB_H_GENERATED_ID) == NULL) return true;
    return gb_envelope_text(e, GB_H_DEDUP_ID).size > 0 ||
           gb_envelope_text(e, GB_H_IDEMPOTENCY_KEY).size > 0;
}
