#include "adapters/memory/memory_partition.h"

#include <stdlib.h>

enum { CAPACITY_MIN = 16 };
#define CAPACITY_MAX (UINT32_C(1) << 30)

/* Claim order (spec 05 §2.3). Inside a partition `seq` is unique, so the envelope id never has to
 * decide. */
static bool older(const struct gb_memory_row *a, const struct gb_memory_row *b)
{
    if (a->record.created_at_ms != b->record.created_at_ms)
        return a->record.created_at_ms < b->record.created_at_ms;
    return a->record.seq < b->record.seq;
}

/* --- heaps --- */

static void place(struct gb_memory_heap *h, enum gb_memory_heap_kind kind, uint32_t i,
                  struct gb_memory_row *row)
{
    h->rows[i] = row;
    row->position[kind] = i;
}

static void sift_up(struct gb_memory_heap *h, enum gb_memory_heap_kind kind, uint32_t i,
                    struct gb_memory_row *row)
{
    while (i > 1 && older(row, h->rows[i / 2])) {
        place(h, kind, i, h->rows[i / 2]);
        i /= 2;
    }
    place(h, kind, i, row);
}

static void sift_down(struct gb_memory_heap *h, enum gb_memory_heap_kind kind, uint32_t i,
                      struct gb_memory_row *row)
{
    while (i * 2 <= h->count) {
        uint32_t child = i * 2;
        if (child < h->count && older(h->rows[child + 1], h->rows[child])) child++;
        if (!older(h->rows[child], row)) break;
        place(h, kind, i, h->rows[child]);
        i = child;
    }
    place(h, kind, i, row);
}

static void heap_push(struct gb_memory_partition *p, enum gb_memory_heap_kind kind,
                      struct gb_memory_row *row)
{
    struct gb_memory_heap *h = &p->heap[kind];
    GB_ASSERT(h->count < p->capacity);
    GB_ASSERT(row->position[kind] == 0);
    sift_up(h, kind, ++h->count, row);
}

static void heap_remove(struct gb_memory_partition *p, enum gb_memory_heap_kind kind,
                        struct gb_memory_row *row)
{
    struct gb_memory_heap *h = &p->heap[kind];
    uint32_t i = row->position[kind];
    if (i == 0) return;
    GB_ASSERT(h->rows[i] == row);
    row->position[kind] = 0;
    struct gb_memory_row *last = h->rows[h->count--];
    if (last == row) return;
    if (i > 1 && older(last, h->rows[i / 2])) {
        sift_up(h, kind, i, last);
    } else {
        sift_down(h, kind, i, last);
    }
}

static bool reserve(struct gb_memory_partition *p)
{
    if (p->rows < p->capacity) return true;
    if (p->capacity >= CAPACITY_MAX) return false;
    uint32_t capacity = p->capacity == 0 ? CAPACITY_MIN : p->capacity * 2;
    for (size_t kind = 0; kind < GB_MEMORY_HEAPS; kind++) {
        struct gb_memory_heap *h = &p->heap[kind];
        struct gb_memory_row **rows =
            realloc(h->rows, ((size_t)capacity + 1) * sizeof(struct gb_memory_row *));
        if (rows == NULL) return false;
        h->rows = rows;
    }
    p->capacity = capacity;
    return true;
}

/* --- ordering keys --- */

static bool ready(const struct gb_memory_row *row)
{
    if (row->status == GB_OUTBOX_PENDING) return true;
    return row->status == GB_OUTBOX_CLAIMED && row->record.claim_version < row->partition->mark;
}

static struct gb_memory_row *row_of(struct gb_list_node *key_node)
{
    return key_node == NULL ? NULL : GB_CONTAINER_OF(key_node, struct gb_memory_row, key_node);
}

static void set_candidate(struct gb_memory_partition *p, struct gb_memory_key *k,
                          struct gb_memory_row *row)
{
    if (row != NULL && !ready(row)) row = NULL;
    if (k->candidate == row) return;
    if (k->candidate != NULL) heap_remove(p, GB_MEMORY_READY, k->candidate);
    if (row != NULL) heap_push(p, GB_MEMORY_READY, row);
    k->candidate = row;
}

/* Head-of-line rule between claims: only the oldest row of a key may start one (spec 05 §2.4). */
static void refresh_key(struct gb_memory_partition *p, struct gb_memory_key *k)
{
    set_candidate(p, k, row_of(gb_list_first(&k->rows)));
}

static struct gb_err key_of(struct gb_memory_partition *p, struct gb_bytes name,
                            struct gb_memory_key **out)
{
    struct gb_memory_key *k = gb_map_get(&p->keys, name);
    if (k == NULL) {
        k = calloc(1, sizeof *k);
        if (k == NULL) return gb_err_no_memory("an ordering key");
        gb_list_init(&k->rows);
        struct gb_err err = gb_map_put(&p->keys, name, k);
        if (gb_failed(err)) {
            free(k);
            return err;
        }
    }
    *out = k;
    return gb_ok();
}

/* New rows are nearly always the youngest, so the place is looked for from the end. */
static void key_insert(struct gb_memory_key *k, struct gb_memory_row *row)
{
    struct gb_list_node *at = &k->rows.head;
    while (at->prev != &k->rows.head && older(row, row_of(at->prev))) at = at->prev;
    gb_list_insert_before(at, &row->key_node);
}

static void key_remove(struct gb_memory_partition *p, struct gb_memory_row *row)
{
    struct gb_memory_key *k = row->key;
    gb_list_remove(&row->key_node);
    row->key = NULL;
    if (k->candidate == row) set_candidate(p, k, NULL);
    if (!gb_list_empty(&k->rows)) {
        refresh_key(p, k);
        return;
    }
    gb_map_remove(&p->keys, row->record.ordering_key);
    free(k);
}

/* --- the partition --- */

void gb_memory_partition_init(struct gb_memory_partition *p)
{
    *p = (struct gb_memory_partition){0};
    gb_list_init(&p->busy);
}

void gb_memory_partition_deinit(struct gb_memory_partition *p)
{
    size_t cursor = 0;
    struct gb_bytes name;
    void *key;
    while (gb_map_next(&p->keys, &cursor, &name, &key)) free(key);
    gb_map_deinit(&p->keys);
    for (size_t kind = 0; kind < GB_MEMORY_HEAPS; kind++) free(p->heap[kind].rows);
}

struct gb_err gb_memory_partition_add(struct gb_memory_partition *p, struct gb_memory_row *row)
{
    GB_ASSERT(row->status == GB_OUTBOX_PENDING);
    if (!reserve(p)) return gb_err_no_memory("the order of an outbox partition");
    if (row->record.ordering_key.size > 0) {
        struct gb_err err = key_of(p, row->record.ordering_key, &row->key);
        if (gb_failed(err)) return err;
    }
    row->partition = p;
    p->rows++;
    heap_push(p, GB_MEMORY_PENDING, row);
    if (row->key == NULL) {
        heap_push(p, GB_MEMORY_READY, row);
    } else {
        key_insert(row->key, row);
        refresh_key(p, row->key);
    }
    return gb_ok();
}

void gb_memory_partition_remove(struct gb_memory_partition *p, struct gb_memory_row *row)
{
    heap_remove(p, GB_MEMORY_PENDING, row);
    gb_list_remove(&row->state_node);
    if (row->key == NULL) {
        heap_remove(p, GB_MEMORY_READY, row);
    } else {
        key_remove(p, row);
    }
    p->rows--;
}

void gb_memory_partition_raise(struct gb_memory_partition *p, uint64_t version)
{
    if (version <= p->mark) return;
    p->mark = version;
    for (;;) {
        struct gb_list_node *node = gb_list_pop(&p->busy);
        if (node == NULL) return;
        struct gb_memory_row *row = GB_CONTAINER_OF(node, struct gb_memory_row, state_node);
        if (row->key == NULL) {
            heap_push(p, GB_MEMORY_READY, row);
        } else {
            refresh_key(p, row->key);
        }
    }
}

struct gb_memory_row *gb_memory_partition_next(const struct gb_memory_partition *p)
{
    const struct gb_memory_heap *h = &p->heap[GB_MEMORY_READY];
    return h->count == 0 ? NULL : h->rows[1];
}

void gb_memory_partition_take(struct gb_memory_partition *p, struct gb_memory_row *row)
{
    GB_ASSERT(row->position[GB_MEMORY_READY] == 1);
    heap_remove(p, GB_MEMORY_PENDING, row);
    row->status = GB_OUTBOX_CLAIMED;
    row->record.claim_version = p->mark;
    gb_list_push(&p->busy, &row->state_node);
    if (row->key == NULL) {
        heap_remove(p, GB_MEMORY_READY, row);
    } else {
        set_candidate(p, row->key, row_of(gb_list_next(&row->key->rows, &row->key_node)));
    }
}

void gb_memory_partition_taken(struct gb_memory_partition *p, struct gb_memory_row *row)
{
    if (row->key != NULL) refresh_key(p, row->key);
}

void gb_memory_partition_release(struct gb_memory_partition *p, struct gb_memory_row *row)
{
    GB_ASSERT(row->status == GB_OUTBOX_CLAIMED);
    bool was_ready = ready(row);
    gb_list_remove(&row->state_node);
    row->status = GB_OUTBOX_PENDING;
    heap_push(p, GB_MEMORY_PENDING, row);
    if (row->key != NULL) {
        refresh_key(p, row->key);
    } else if (!was_ready) {
        heap_push(p, GB_MEMORY_READY, row);
    }
}

int64_t gb_memory_partition_oldest_ms(const struct gb_memory_partition *p)
{
    const struct gb_memory_heap *h = &p->heap[GB_MEMORY_PENDING];
    return h->count == 0 ? 0 : h->rows[1]->record.created_at_ms;
}
