#include "adapters/memory/memory_dlq.h"

#include <stdlib.h>

#include "base/map.h"

enum { ENTRIES_DEFAULT = 10000, LIST_DEFAULT = 100 };

struct row {
    struct gb_list_node node;
    struct gb_dlq_entry *entry;
};
struct memory_dlq {
    struct gb_dlq port;
    struct gb_reactor *reactor;
    size_t entries_max;
    struct gb_map ids;   /* id -> struct row */
    struct gb_list rows; /* by (failed_at, id) */
    struct gb_op *closing;
    struct gb_task close_task;
};

static struct memory_dlq *self(struct gb_dlq *d)
{
    return GB_CONTAINER_OF(d, struct memory_dlq, port);
}

/* False when the store is closing: the op is finished then. */
static bool begin(struct memory_dlq *m, struct gb_op *op, gb_done_fn *done, void *arg)
{
    gb_op_start(op, m->reactor, done, arg, NULL, m);
    if (m->closing == NULL) return true;
    gb_op_finish(op, gb_err(GB_UNAVAILABLE, "the memory DLQ is closing"));
    return false;
}

static struct row *row_of(struct gb_list_node *node)
{
    return node == NULL ? NULL : GB_CONTAINER_OF(node, struct row, node);
}

static bool before(const struct gb_dlq_entry *a, const struct gb_dlq_entry *b)
{
    if (a->failed_at_ms != b->failed_at_ms) return a->failed_at_ms < b->failed_at_ms;
    return strcmp(a->id, b->id) < 0;
}

/* Entries arrive nearly in order, so the place is looked for from the end. */
static void insert(struct memory_dlq *m, struct row *row)
{
    struct gb_list_node *at = &m->rows.head;
    while (at->prev != &m->rows.head && before(row->entry, row_of(at->prev)->entry)) at = at->prev;
    gb_list_insert_before(at, &row->node);
}

static void row_remove(struct memory_dlq *m, struct row *row)
{
    gb_list_remove(&row->node);
    gb_map_remove(&m->ids, gb_bytes_c(row->entry->id));
    gb_dlq_entry_free(row->entry);
    free(row);
}

static bool matches(const struct gb_dlq_entry *e, const struct gb_dlq_filter *f)
{
    if (f->route_id != NULL && strcmp(f->route_id, e->route_id) != 0) return false;
    if (f->category != NULL && strcmp(f->category, e->category) != 0) return false;
    if (f->since_ms != 0 && e->failed_at_ms < f->since_ms) return false;
    return f->before_ms == 0 || e->failed_at_ms < f->before_ms;
}

/* The next match after `row`, from the oldest for NULL. */
static struct row *next_match(const struct memory_dlq *m, const struct row *row,
                              const struct gb_dlq_filter *f)
{
    struct gb_list_node *node =
        row == NULL ? gb_list_first(&m->rows) : gb_list_next(&m->rows, &row->node);
    while (node != NULL && !matches(row_of(node)->entry, f)) node = gb_list_next(&m->rows, node);
    return row_of(node);
}

/* --- the port --- */

static struct gb_err store(struct memory_dlq *m, const struct gb_dlq_entry *entry)
{
    if (gb_map_has(&m->ids, gb_bytes_c(entry->id)))
        return gb_err(GB_DUPLICATE_RECORD, "DLQ entry %s exists", entry->id);
    if (m->ids.count >= m->entries_max)
        return gb_err(GB_UNAVAILABLE, "the memory DLQ holds %zu entries, its limit", m->ids.count);
    struct row *row = calloc(1, sizeof *row);
    if (row == NULL) return gb_err_no_memory("a DLQ entry");
    struct gb_err err = gb_dlq_entry_copy(entry, &row->entry);
    if (!gb_failed(err)) err = gb_map_put(&m->ids, gb_bytes_c(entry->id), row);
    if (gb_failed(err)) {
        gb_dlq_entry_free(row->entry);
        free(row);
        return err;
    }
    insert(m, row);
    return err;
}

static void write(struct gb_dlq *d, struct gb_dlq_write *q, gb_done_fn *done, void *arg)
{
    struct memory_dlq *m = self(d);
    if (begin(m, &q->op, done, arg)) gb_op_finish(&q->op, store(m, q->entry));
}

static void get(struct gb_dlq *d, struct gb_dlq_get *q, gb_done_fn *done, void *arg)
{
    struct memory_dlq *m = self(d);
    q->entry = NULL;
    if (!begin(m, &q->op, done, arg)) return;
    const struct row *row = gb_map_get(&m->ids, gb_bytes_c(q->id));
    gb_op_finish(&q->op, row == NULL ? gb_err(GB_NOT_FOUND, "no DLQ entry %s", q->id)
                                     : gb_dlq_entry_copy(row->entry, &q->entry));
}

static struct gb_err collect(const struct memory_dlq *m, struct gb_dlq_list *q)
{
    size_t limit = q->filter.limit > 0 ? (size_t)q->filter.limit : LIST_DEFAULT;
    if (limit > m->ids.count) limit = m->ids.count;
    struct gb_dlq_entry **entries = calloc(limit + 1, sizeof *entries);
    if (entries == NULL) return gb_err_no_memory("a list of DLQ entries");
    struct gb_err err = gb_ok();
    size_t count = 0;
    const struct row *row = next_match(m, NULL, &q->filter);
    for (; row != NULL && count < limit; row = next_match(m, row, &q->filter)) {
        err = gb_dlq_entry_copy(row->entry, &entries[count]);
        if (gb_failed(err)) break;
        count++;
    }
    if (gb_failed(err) || count == 0) {
        while (count > 0) gb_dlq_entry_free(entries[--count]);
        free(entries);
        return err;
    }
    q->entries = entries;
    q->count = count;
    return err;
}

static void list(struct gb_dlq *d, struct gb_dlq_list *q, gb_done_fn *done, void *arg)
{
    struct memory_dlq *m = self(d);
    q->entries = NULL;
    q->count = 0;
    if (begin(m, &q->op, done, arg)) gb_op_finish(&q->op, collect(m, q));
}

static uint64_t remove_matches(struct memory_dlq *m, const struct gb_dlq_filter *f)
{
    uint64_t deleted = 0;
    struct row *row = next_match(m, NULL, f);
    while (row != NULL && (f->limit <= 0 || deleted < (uint64_t)f->limit)) {
        struct row *next = next_match(m, row, f);
        row_remove(m, row);
        deleted++;
        row = next;
    }
    return deleted;
}

static void remove_entries(struct gb_dlq *d, struct gb_dlq_delete *q, gb_done_fn *done, void *arg)
{
    struct memory_dlq *m = self(d);
    q->deleted = 0;
    if (!begin(m, &q->op, done, arg)) return;
    if (q->ids == NULL) q->deleted = remove_matches(m, &q->filter);
    for (size_t i = 0; q->ids != NULL && i < q->id_count; i++) {
        struct row *row = gb_map_get(&m->ids, gb_bytes_c(q->ids[i]));
        if (row == NULL) continue; /* unknown ids are skipped (spec 05 §3) */
        row_remove(m, row);
        q->deleted++;
    }
    gb_op_finish(&q->op, gb_ok());
}

static void count(struct gb_dlq *d, struct gb_dlq_count *q, gb_done_fn *done, void *arg)
{
    struct memory_dlq *m = self(d);
    if (!begin(m, &q->op, done, arg)) return;
    q->count = m->ids.count;
    gb_op_finish(&q->op, gb_ok());
}

/* --- construction and close --- */

static void run_close(struct gb_task *task)
{
    struct memory_dlq *m = GB_CONTAINER_OF(task, struct memory_dlq, close_task);
    struct gb_op *op = m->closing;
    struct gb_list_node *node = NULL;
    while ((node = gb_list_first(&m->rows)) != NULL) row_remove(m, row_of(node));
    gb_map_deinit(&m->ids);
    free(m);
    gb_op_finish(op, gb_ok());
}

static void close_store(struct gb_dlq *d, struct gb_op *op, gb_done_fn *done, void *arg)
{
    struct memory_dlq *m = self(d);
    if (!begin(m, op, done, arg)) return;
    m->closing = op;
    m->close_task.run = run_close;
    gb_reactor_defer(m->reactor, &m->close_task);
}

static const struct gb_dlq_ops ops = {
    .write = write,
    .get = get,
    .list = list,
    .remove = remove_entries,
    .count = count,
    .close = close_store,
};

struct gb_err gb_memory_dlq_new(struct gb_reactor *r, const struct gb_memory_dlq_cfg *cfg,
                                struct gb_dlq **out)
{
    struct memory_dlq *m = calloc(1, sizeof *m);
    if (m == NULL) return gb_err_no_memory("the memory DLQ");
    m->port.ops = &ops;
    m->reactor = r;
    m->entries_max = cfg->entries_max > 0 ? cfg->entries_max : ENTRIES_DEFAULT;
    gb_list_init(&m->rows);
    *out = &m->port;
    return gb_ok();
}
