#include <stdlib.h>
#include <string.h>

#include "adapters/dynamodb/dynamodb_parts.h"

/* Names of tables and indexes have at most 255 characters. */
enum { NAME_MAX_BYTES = 255, KEY_MAX_BYTES = 4 + 2 * (NAME_MAX_BYTES + 1) };

static struct gb_dynamodb_usage *new_series(enum gb_dynamodb_action action, struct gb_bytes table,
                                            struct gb_bytes index)
{
    struct gb_dynamodb_usage *u = calloc(1, sizeof *u + table.size + index.size + 2);
    if (u == NULL) return NULL;
    char *text = (char *)(u + 1);
    u->action = action;
    u->table = text;
    if (table.size > 0) memcpy(text, table.data, table.size);
    u->index = text + table.size + 1;
    if (index.size > 0) memcpy(text + table.size + 1, index.data, index.size);
    return u;
}

/* NULL: no room for another series. */
static struct gb_dynamodb_usage *series_of(struct gb_dynamodb_ledger *l,
                                           enum gb_dynamodb_action action, struct gb_bytes table,
                                           struct gb_bytes index)
{
    char memory[KEY_MAX_BYTES + 1];
    struct gb_str key = gb_str_over(memory, sizeof memory);
    if (table.size > NAME_MAX_BYTES || index.size > NAME_MAX_BYTES) return NULL;
    gb_str_append_u64(&key, (uint64_t)action);
    gb_str_append_char(&key, '\0');
    gb_str_append(&key, table);
    gb_str_append_char(&key, '\0');
    gb_str_append(&key, index);
    struct gb_dynamodb_usage *u = gb_map_get(&l->series, gb_str_bytes(&key));
    if (u != NULL || l->series.count >= GB_DYNAMODB_USAGE_MAX) return u;
    u = new_series(action, table, index);
    if (u == NULL || !gb_failed(gb_map_put(&l->series, gb_str_bytes(&key), u))) return u;
    free(u);
    return NULL;
}

struct sink {
    struct gb_dynamodb_ledger *ledger;
    enum gb_dynamodb_action action;
};

static void add_units(void *arg, const struct gb_dynamodb_capacity *capacity)
{
    const struct sink *to = arg;
    struct gb_dynamodb_usage *u =
        series_of(to->ledger, to->action, capacity->table, capacity->index);
    if (u == NULL) {
        to->ledger->lost++;
        return;
    }
    u->read_units += capacity->read_units;
    u->write_units += capacity->write_units;
}

void gb_dynamodb_ledger_add(struct gb_dynamodb_ledger *l, const struct gb_dynamodb_call *call,
                            bool failed)
{
    struct sink to = {l, call->action};
    struct gb_dynamodb_usage *u =
        series_of(l, call->action, gb_bytes_c(call->table), gb_bytes(NULL, 0));
    if (u == NULL) {
        l->lost++;
    } else {
        u->calls++;
        u->failures += failed ? 1 : 0;
        u->attempts += call->attempts;
    }
    gb_dynamodb_capacity_read(call->action, call->answer.capacity, add_units, &to);
}

void gb_dynamodb_ledger_deinit(struct gb_dynamodb_ledger *l)
{
    size_t cursor = 0;
    struct gb_bytes key;
    void *value = NULL;
    while (gb_map_next(&l->series, &cursor, &key, &value)) free(value);
    gb_map_deinit(&l->series);
    *l = (struct gb_dynamodb_ledger){0};
}

/* --- reading --- */

void gb_dynamodb_ledger_visit(const struct gb_dynamodb_ledger *l, gb_dynamodb_usage_fn *visit,
                              void *arg)
{
    size_t cursor = 0;
    struct gb_bytes key;
    void *value = NULL;
    while (gb_map_next(&l->series, &cursor, &key, &value)) visit(arg, value);
}

void gb_dynamodb_usage_visit(const struct gb_dynamodb_client *c, gb_dynamodb_usage_fn *visit,
                             void *arg)
{
    gb_dynamodb_ledger_visit(gb_dynamodb_ledger_of(c), visit, arg);
}

uint64_t gb_dynamodb_usage_lost(const struct gb_dynamodb_client *c)
{
    return gb_dynamodb_ledger_of(c)->lost;
}

static void add_up(void *arg, const struct gb_dynamodb_usage *usage)
{
    struct gb_dynamodb_usage *sum = arg;
    if (sum->action != GB_DYNAMODB_ACTIONS && sum->action != usage->action) return;
    if (sum->table != NULL && strcmp(sum->table, usage->table) != 0) return;
    sum->calls += usage->calls;
    sum->failures += usage->failures;
    sum->attempts += usage->attempts;
    sum->read_units += usage->read_units;
    sum->write_units += usage->write_units;
}

struct gb_dynamodb_usage gb_dynamodb_usage_sum(const struct gb_dynamodb_client *c,
                                               const char *table, enum gb_dynamodb_action action)
{
    struct gb_dynamodb_usage sum = {.action = action, .table = table, .index = ""};
    gb_dynamodb_usage_visit(c, add_up, &sum);
    return sum;
}
