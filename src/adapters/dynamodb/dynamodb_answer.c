#include "adapters/dynamodb/dynamodb_answer.h"

#include <math.h>

static const struct action {
    const char *name;
    bool write;
} actions[] = {
    [GB_DYNAMODB_GET_ITEM] = {"GetItem", false},
    [GB_DYNAMODB_PUT_ITEM] = {"PutItem", true},
    [GB_DYNAMODB_UPDATE_ITEM] = {"UpdateItem", true},
    [GB_DYNAMODB_DELETE_ITEM] = {"DeleteItem", true},
    [GB_DYNAMODB_QUERY] = {"Query", false},
    [GB_DYNAMODB_SCAN] = {"Scan", false},
    [GB_DYNAMODB_TRANSACT_WRITE_ITEMS] = {"TransactWriteItems", true},
    [GB_DYNAMODB_DESCRIBE_TABLE] = {"DescribeTable", false},
    [GB_DYNAMODB_CREATE_TABLE] = {"CreateTable", true},
    [GB_DYNAMODB_DESCRIBE_TIME_TO_LIVE] = {"DescribeTimeToLive", false},
    [GB_DYNAMODB_UPDATE_TIME_TO_LIVE] = {"UpdateTimeToLive", true},
    [GB_DYNAMODB_CONDITION_CHECK] = {"ConditionCheck", true},
};

const char *gb_dynamodb_action_name(enum gb_dynamodb_action action)
{
    return actions[action].name;
}

bool gb_dynamodb_is_write(enum gb_dynamodb_action action)
{
    return actions[action].write;
}

/* --- members --- */

static bool is_key(const struct gb_json_reader *r, const char *a, const char *b)
{
    return gb_json_text_is(r, a) || (b != NULL && gb_json_text_is(r, b));
}

/* The value behind a key as JSON; null is left out, anything but `want` is refused. */
static bool read_part(struct gb_json_reader *r, enum gb_json_event want, struct gb_bytes *out)
{
    enum gb_json_event event = gb_json_next(r);
    if (event == GB_JSON_NULL) return true;
    return event == want && gb_json_skip_text(r, out);
}

/* An array of objects. */
static bool read_objects(struct gb_json_reader *r, struct gb_bytes *out)
{
    struct gb_bytes json = {0};
    struct gb_json_reader element;
    enum gb_json_event event;
    if (!read_part(r, GB_JSON_ARRAY_BEGIN, &json)) return false;
    if (json.size == 0) return true;
    gb_json_init(&element, json);
    (void)gb_json_next(&element);
    while ((event = gb_json_next(&element)) == GB_JSON_OBJECT_BEGIN) {
        if (!gb_json_skip(&element)) return false;
    }
    *out = json;
    return event == GB_JSON_ARRAY_END;
}

static bool read_count(struct gb_json_reader *r, uint64_t *out)
{
    return gb_json_next(r) == GB_JSON_NUMBER && gb_json_u64(r, out);
}

static bool read_ttl(struct gb_json_reader *r, struct gb_dynamodb_answer *out)
{
    enum gb_json_event event;
    if (gb_json_next(r) != GB_JSON_OBJECT_BEGIN) return false;
    while ((event = gb_json_next(r)) == GB_JSON_KEY) {
        bool status = gb_json_text_is(r, "TimeToLiveStatus");
        bool attribute = gb_json_text_is(r, "AttributeName");
        bool text = gb_json_next(r) == GB_JSON_STRING;
        if (status && text) out->ttl_status = r->text;
        if (attribute && text) out->ttl_attribute = r->text;
        if (!gb_json_skip(r)) return false;
    }
    return event == GB_JSON_OBJECT_END && out->ttl_status.size > 0;
}

static bool read_capacity_part(struct gb_json_reader *r, struct gb_bytes *out)
{
    enum gb_json_event event = gb_json_next(r);
    if (event == GB_JSON_NULL) return true;
    return (event == GB_JSON_OBJECT_BEGIN || event == GB_JSON_ARRAY_BEGIN) &&
           gb_json_skip_text(r, out);
}

static bool read_member(struct gb_json_reader *r, struct gb_dynamodb_answer *out)
{
    if (is_key(r, "Item", NULL)) return read_part(r, GB_JSON_OBJECT_BEGIN, &out->item);
    if (is_key(r, "Attributes", NULL)) return read_part(r, GB_JSON_OBJECT_BEGIN, &out->attributes);
    if (is_key(r, "Items", NULL)) return read_objects(r, &out->items);
    if (is_key(r, "LastEvaluatedKey", NULL))
        return read_part(r, GB_JSON_OBJECT_BEGIN, &out->last_key);
    if (is_key(r, "Count", NULL)) return read_count(r, &out->count);
    if (is_key(r, "ScannedCount", NULL)) return read_count(r, &out->scanned);
    if (is_key(r, "CancellationReasons", NULL)) return read_objects(r, &out->reasons);
    if (is_key(r, "Table", "TableDescription"))
        return read_part(r, GB_JSON_OBJECT_BEGIN, &out->table);
    if (is_key(r, "TimeToLiveDescription", NULL)) return read_ttl(r, out);
    if (is_key(r, "ConsumedCapacity", NULL)) return read_capacity_part(r, &out->capacity);
    return gb_json_skip(r);
}

static bool read_members(struct gb_bytes json, struct gb_dynamodb_answer *out)
{
    struct gb_json_reader r;
    enum gb_json_event event;
    gb_json_init(&r, json);
    if (gb_json_next(&r) != GB_JSON_OBJECT_BEGIN) return false;
    while ((event = gb_json_next(&r)) == GB_JSON_KEY) {
        if (!read_member(&r, out)) return false;
    }
    return event == GB_JSON_OBJECT_END && gb_json_next(&r) == GB_JSON_END;
}

static bool has_what_it_must(enum gb_dynamodb_action action, const struct gb_dynamodb_answer *a,
                             bool counted)
{
    if (action == GB_DYNAMODB_QUERY || action == GB_DYNAMODB_SCAN)
        return a->items.size > 0 || counted;
    if (action == GB_DYNAMODB_DESCRIBE_TABLE) return a->table.size > 0;
    return action != GB_DYNAMODB_DESCRIBE_TIME_TO_LIVE || a->ttl_status.size > 0;
}

struct gb_err gb_dynamodb_answer_read(enum gb_dynamodb_action action, struct gb_bytes json,
                                      struct gb_dynamodb_answer *out)
{
    struct gb_dynamodb_answer a = {.count = UINT64_MAX};
    bool good = read_members(json, &a);
    bool counted = a.count != UINT64_MAX;
    if (!counted) a.count = 0;
    *out = (struct gb_dynamodb_answer){0};
    if (!good || !has_what_it_must(action, &a, counted)) {
        return gb_err(GB_UNAVAILABLE, "%s: the answer is malformed",
                      gb_dynamodb_action_name(action));
    }
    *out = a;
    return gb_ok();
}

void gb_dynamodb_answer_read_error(struct gb_bytes body, struct gb_dynamodb_answer *out)
{
    struct gb_dynamodb_answer a = {0};
    *out = a;
    if (!read_members(body, &a)) return;
    out->item = a.item;
    out->reasons = a.reasons;
}

/* --- reasons of a cancelled transaction --- */

static bool read_reason(struct gb_json_reader *r, struct gb_dynamodb_reason *out)
{
    struct gb_bytes code = {0};
    struct gb_bytes message = {0};
    enum gb_json_event event;
    *out = (struct gb_dynamodb_reason){0};
    while ((event = gb_json_next(r)) == GB_JSON_KEY) {
        bool is_code = gb_json_text_is(r, "Code");
        bool is_message = gb_json_text_is(r, "Message");
        bool is_item = gb_json_text_is(r, "Item");
        event = gb_json_next(r);
        if (event == GB_JSON_STRING && is_code) code = r->text;
        if (event == GB_JSON_STRING && is_message) message = r->text;
        struct gb_bytes value = {0};
        if (!gb_json_skip_text(r, &value)) return false;
        if (event == GB_JSON_OBJECT_BEGIN && is_item) out->item = value;
    }
    out->error = gb_dynamodb_reason_of(code, message);
    return event == GB_JSON_OBJECT_END;
}

size_t gb_dynamodb_reasons_read(struct gb_bytes reasons, struct gb_dynamodb_reason *out, size_t max)
{
    struct gb_json_reader r;
    struct gb_dynamodb_reason reason;
    size_t count = 0;
    gb_json_init(&r, reasons);
    if (reasons.size == 0 || gb_json_next(&r) != GB_JSON_ARRAY_BEGIN) return 0;
    while (gb_json_next(&r) == GB_JSON_OBJECT_BEGIN && read_reason(&r, &reason)) {
        if (count < max) out[count] = reason;
        count++;
    }
    return count;
}

enum gb_dynamodb_error gb_dynamodb_reasons_verdict(struct gb_bytes reasons, size_t *index)
{
    struct gb_dynamodb_reason all[GB_DYNAMODB_TRANSACTION_MAX];
    size_t count = gb_dynamodb_reasons_read(reasons, all, GB_DYNAMODB_TRANSACTION_MAX);
    enum gb_dynamodb_error verdict = GB_DYNAMODB_NO_ERROR;
    if (count > GB_DYNAMODB_TRANSACTION_MAX) count = GB_DYNAMODB_TRANSACTION_MAX;
    *index = 0;
    for (size_t i = 0; i < count && verdict != GB_DYNAMODB_CONDITION_FAILED; i++) {
        bool failed = all[i].error == GB_DYNAMODB_CONDITION_FAILED;
        if (!failed && (verdict != GB_DYNAMODB_NO_ERROR || all[i].error == GB_DYNAMODB_NO_ERROR))
            continue;
        verdict = all[i].error;
        *index = i;
    }
    return verdict == GB_DYNAMODB_NO_ERROR ? GB_DYNAMODB_UNKNOWN : verdict;
}

/* --- consumed capacity --- */

#define UNITS_MAX 1e12 /* of one request, by far */

struct figures {
    double total, read, write;
    bool has_read, has_write;
};

static void read_figure(const struct gb_json_reader *r, double *out)
{
    double value = 0;
    if (gb_json_double(r, &value) && value >= 0 && value < UNITS_MAX) *out = value;
}

/* One of the three numbers; false: the key is another. The reader stands at its value then. */
static bool take_figure(struct gb_json_reader *r, struct figures *f)
{
    double *to = NULL;
    if (gb_json_text_is(r, "CapacityUnits")) to = &f->total;
    if (gb_json_text_is(r, "ReadCapacityUnits")) to = &f->read;
    if (gb_json_text_is(r, "WriteCapacityUnits")) to = &f->write;
    if (to == NULL) return false;
    if (gb_json_next(r) != GB_JSON_NUMBER) return gb_json_skip(r);
    f->has_read = f->has_read || to == &f->read;
    f->has_write = f->has_write || to == &f->write;
    read_figure(r, to);
    return true;
}

struct report {
    enum gb_dynamodb_action action;
    gb_dynamodb_capacity_fn *visit;
    void *arg;
};

static void tell(const struct report *to, struct gb_bytes table, struct gb_bytes index,
                 const struct figures *f)
{
    bool split = f->has_read || f->has_write;
    bool write = gb_dynamodb_is_write(to->action);
    double read_units = split || write ? f->read : f->total;
    double write_units = split || !write ? f->write : f->total;
    const struct gb_dynamodb_capacity capacity = {
        .table = table,
        .index = index,
        .read_units = (uint64_t)llround(read_units * 1000),
        .write_units = (uint64_t)llround(write_units * 1000),
    };
    to->visit(to->arg, &capacity);
}

/* {"CapacityUnits":1,...} */
static void read_figures(struct gb_bytes json, struct figures *out)
{
    struct gb_json_reader r;
    gb_json_init(&r, json);
    (void)gb_json_next(&r);
    while (gb_json_next(&r) == GB_JSON_KEY) {
        if (!take_figure(&r, out)) (void)gb_json_skip(&r);
    }
}

/* {"name":{"CapacityUnits":1},...} */
static void tell_indexes(const struct report *to, struct gb_bytes table, struct gb_bytes json)
{
    struct gb_json_reader r;
    gb_json_init(&r, json);
    if (gb_json_next(&r) != GB_JSON_OBJECT_BEGIN) return;
    while (gb_json_next(&r) == GB_JSON_KEY) {
        struct gb_bytes index = r.text;
        struct gb_bytes value = {0};
        struct figures f = {0};
        if (!read_part(&r, GB_JSON_OBJECT_BEGIN, &value)) return;
        read_figures(value, &f);
        tell(to, table, index, &f);
    }
}

static void tell_table(const struct report *to, struct gb_bytes json)
{
    struct gb_json_reader r;
    struct gb_bytes table = {0};
    struct gb_bytes parts[3] = {{0}}; /* of the table itself, global and local indexes */
    struct figures whole = {0};
    gb_json_init(&r, json);
    (void)gb_json_next(&r);
    while (gb_json_next(&r) == GB_JSON_KEY) {
        static const char *const names[] = {"Table", "GlobalSecondaryIndexes",
                                            "LocalSecondaryIndexes"};
        size_t part = 0;
        while (part < 3 && !gb_json_text_is(&r, names[part])) part++;
        bool is_name = gb_json_text_is(&r, "TableName");
        if (take_figure(&r, &whole)) continue;
        enum gb_json_event event = gb_json_next(&r);
        if (is_name && event == GB_JSON_STRING) table = r.text;
        struct gb_bytes value = {0};
        if (!gb_json_skip_text(&r, &value)) return;
        if (part < 3 && event == GB_JSON_OBJECT_BEGIN) parts[part] = value;
    }
    if (parts[0].size > 0) {
        whole = (struct figures){0};
        read_figures(parts[0], &whole);
    }
    tell(to, table, gb_bytes(NULL, 0), &whole);
    for (size_t i = 1; i < 3; i++) {
        if (parts[i].size > 0) tell_indexes(to, table, parts[i]);
    }
}

void gb_dynamodb_capacity_read(enum gb_dynamodb_action action, struct gb_bytes capacity,
                               gb_dynamodb_capacity_fn *visit, void *arg)
{
    const struct report to = {action, visit, arg};
    if (capacity.size == 0) return;
    if (capacity.data[0] == '{') {
        tell_table(&to, capacity);
        return;
    }
    struct gb_dynamodb_items tables;
    struct gb_bytes table;
    gb_dynamodb_items_init(&tables, capacity);
    while (gb_dynamodb_items_next(&tables, &table)) tell_table(&to, table);
}
