#include "adapters/dynamodb/dynamodb_meter.h"

enum { WRITE_BYTES = 1024, READ_BYTES = 4096 };

static uint64_t units(uint64_t bytes, uint64_t unit_bytes)
{
    uint64_t n = bytes / unit_bytes + (bytes % unit_bytes == 0 ? 0 : 1);
    return (n == 0 ? 1 : n) * GB_DYNAMODB_UNIT;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

uint64_t gb_dynamodb_meter_read(uint64_t bytes, enum gb_dynamodb_read read)
{
    uint64_t whole = units(bytes, READ_BYTES);
    if (read == GB_DYNAMODB_EVENTUAL) return whole / 2;
    return read == GB_DYNAMODB_TRANSACTED ? whole * 2 : whole;
}

/* 0 for an item that is not there. */
static struct gb_err size_of(struct gb_bytes item, size_t *out)
{
    *out = 0;
    return item.size == 0 ? gb_ok() : gb_dynamodb_item_size(item, out);
}

/* --- index entries --- */

struct meter {
    struct gb_str before_text, after_text; /* what views of the two items point into */
    bool failed;                           /* out of memory: the items were read before */
};

/* Attribute `name` of an item; its views are valid until the next look-up with `scratch`. */
static bool find(struct meter *m, struct gb_bytes item, struct gb_bytes name,
                 struct gb_str *scratch, struct gb_dynamodb_value *out)
{
    struct gb_dynamodb_cursor c;
    gb_str_clear(scratch);
    if (item.size == 0) return false;
    gb_dynamodb_cursor_init(&c, GB_DYNAMODB_M, item, scratch);
    while (gb_dynamodb_next(&c, out)) {
        if (gb_bytes_equal(out->name, name)) return true;
    }
    m->failed = m->failed || gb_failed(c.err);
    return false;
}

/* Containers are compared as written. */
static bool same_value(const struct gb_dynamodb_value *a, const struct gb_dynamodb_value *b)
{
    return a->type == b->type && a->boolean == b->boolean && gb_bytes_equal(a->text, b->text);
}

static size_t attributes(struct meter *m, struct gb_bytes item)
{
    struct gb_dynamodb_cursor c;
    struct gb_dynamodb_value v;
    size_t n = 0;
    gb_str_clear(&m->before_text);
    gb_dynamodb_cursor_init(&c, GB_DYNAMODB_M, item, &m->before_text);
    while (gb_dynamodb_next(&c, &v)) n++;
    return n;
}

static bool same_item(struct meter *m, struct gb_bytes before, struct gb_bytes after)
{
    struct gb_dynamodb_cursor c;
    struct gb_dynamodb_value a;
    struct gb_dynamodb_value b;
    if (attributes(m, before) != attributes(m, after)) return false;
    gb_str_clear(&m->before_text);
    gb_dynamodb_cursor_init(&c, GB_DYNAMODB_M, before, &m->before_text);
    while (gb_dynamodb_next(&c, &a)) {
        if (!find(m, after, a.name, &m->after_text, &b) || !same_value(&a, &b)) return false;
    }
    m->failed = m->failed || gb_failed(c.err);
    return true;
}

static bool has_key(struct meter *m, struct gb_bytes item, const struct gb_dynamodb_key *key)
{
    struct gb_dynamodb_value v;
    return key->name == NULL || find(m, item, gb_bytes_c(key->name), &m->before_text, &v);
}

/* An item without the keys of a sparse index is not in it. */
static bool is_in(struct meter *m, struct gb_bytes item, const struct gb_dynamodb_index *index)
{
    return item.size > 0 && has_key(m, item, &index->hash) && has_key(m, item, &index->range);
}

static bool same_key(struct meter *m, struct gb_bytes before, struct gb_bytes after,
                     const struct gb_dynamodb_key *key)
{
    struct gb_dynamodb_value a;
    struct gb_dynamodb_value b;
    if (key->name == NULL) return true;
    return find(m, before, gb_bytes_c(key->name), &m->before_text, &a) &&
           find(m, after, gb_bytes_c(key->name), &m->after_text, &b) && same_value(&a, &b);
}

static bool is_key_of(const struct gb_dynamodb_key *hash, const struct gb_dynamodb_key *range,
                      struct gb_bytes name)
{
    return (hash->name != NULL && gb_bytes_equal_c(name, hash->name)) ||
           (range->name != NULL && gb_bytes_equal_c(name, range->name));
}

/* The units of an entry: of the whole item, or of the keys of index and table. */
static uint64_t entry_units(struct meter *m, const struct gb_dynamodb_table *t,
                            const struct gb_dynamodb_index *index, struct gb_bytes item,
                            size_t item_bytes)
{
    struct gb_dynamodb_cursor c;
    struct gb_dynamodb_value v;
    size_t bytes = 0;
    if (index->projection != GB_DYNAMODB_KEYS_ONLY) return units(item_bytes, WRITE_BYTES);
    gb_str_clear(&m->before_text);
    gb_dynamodb_cursor_init(&c, GB_DYNAMODB_M, item, &m->before_text);
    while (gb_dynamodb_next(&c, &v)) {
        if (is_key_of(&index->hash, &index->range, v.name) ||
            is_key_of(&t->hash, &t->range, v.name))
            bytes += v.name.size + gb_dynamodb_scalar_size(&v);
    }
    m->failed = m->failed || gb_failed(c.err);
    return units(bytes, WRITE_BYTES);
}

struct change {
    struct gb_bytes before, after;
    size_t before_bytes, after_bytes;
};

static uint64_t index_units(struct meter *m, const struct gb_dynamodb_table *t,
                            const struct gb_dynamodb_index *index, const struct change *change)
{
    bool was = is_in(m, change->before, index);
    bool is = is_in(m, change->after, index);
    uint64_t old_units = was ? entry_units(m, t, index, change->before, change->before_bytes) : 0;
    uint64_t new_units = is ? entry_units(m, t, index, change->after, change->after_bytes) : 0;
    if (!was || !is) return old_units + new_units;
    if (!same_key(m, change->before, change->after, &index->hash) ||
        !same_key(m, change->before, change->after, &index->range))
        return old_units + new_units;
    if (index->projection == GB_DYNAMODB_KEYS_ONLY || same_item(m, change->before, change->after))
        return 0;
    return larger(old_units, new_units);
}

/* --- writes --- */

struct gb_err gb_dynamodb_meter_write(const struct gb_dynamodb_table *table, struct gb_bytes before,
                                      struct gb_bytes after, bool in_transaction,
                                      struct gb_dynamodb_units *out)
{
    struct meter m = {0};
    struct change change = {.before = before, .after = after};
    struct gb_dynamodb_units sum = *out;
    struct gb_err err = size_of(before, &change.before_bytes);
    if (!gb_failed(err)) err = size_of(after, &change.after_bytes);
    if (gb_failed(err)) return err;
    uint64_t own = units(larger(change.before_bytes, change.after_bytes), WRITE_BYTES);
    own *= in_transaction ? 2 : 1;
    sum.table += own;
    sum.total += own;
    for (size_t i = 0; i < table->index_count; i++) {
        uint64_t n = index_units(&m, table, &table->indexes[i], &change);
        sum.index[i] += n;
        sum.total += n;
    }
    gb_str_deinit(&m.before_text);
    gb_str_deinit(&m.after_text);
    if (m.failed) return gb_err_no_memory("capacity meter");
    *out = sum;
    return err;
}

struct gb_err gb_dynamodb_meter_check(struct gb_bytes there, struct gb_bytes wanted,
                                      bool in_transaction, struct gb_dynamodb_units *out)
{
    size_t there_bytes = 0;
    size_t wanted_bytes = 0;
    struct gb_err err = size_of(there, &there_bytes);
    if (!gb_failed(err)) err = size_of(wanted, &wanted_bytes);
    if (gb_failed(err)) return err;
    uint64_t n = units(larger(there_bytes, wanted_bytes), WRITE_BYTES) * (in_transaction ? 2 : 1);
    out->table += n;
    out->total += n;
    return err;
}
