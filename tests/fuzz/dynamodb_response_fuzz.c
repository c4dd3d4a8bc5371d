#include <stddef.h>
#include <stdint.h>

#include "adapters/dynamodb/dynamodb_answer.h"
#include "adapters/dynamodb/dynamodb_meter.h"
#include "base/assert.h"

/* Any bytes as an answer of DynamoDB: no crash, views inside, sizes within the text's. The first
 * byte chooses the operation and, with its high bit, an error; the rest is the body. */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_inside(struct gb_bytes view, struct gb_bytes body)
{
    if (view.size == 0) return;
    GB_ASSERT(view.data >= body.data);
    GB_ASSERT(view.data + view.size <= body.data + body.size);
}

static void walk(enum gb_dynamodb_type type, struct gb_bytes json, unsigned depth)
{
    struct gb_str scratch = {0};
    struct gb_dynamodb_cursor c;
    struct gb_dynamodb_value v;
    gb_dynamodb_cursor_init(&c, type, json, &scratch);
    const char *room = scratch.data;
    while (gb_dynamodb_next(&c, &v)) {
        bool container = v.type >= GB_DYNAMODB_SS;
        if (container && depth > 0) walk(v.type, v.text, depth - 1);
    }
    GB_ASSERT(scratch.data == room); /* views stayed valid */
    gb_str_deinit(&scratch);
}

static void check_item(struct gb_bytes item)
{
    static const struct gb_dynamodb_table table = {
        .hash = {"PK", GB_DYNAMODB_S},
        .range = {"SK", GB_DYNAMODB_S},
        .indexes = {{"ClaimIndex", {"PK", GB_DYNAMODB_S}, {"s", GB_DYNAMODB_S}, GB_DYNAMODB_ALL},
                    {"Keys", {"s", GB_DYNAMODB_S}, {"n", GB_DYNAMODB_N}, GB_DYNAMODB_KEYS_ONLY}},
        .index_count = 2};
    const struct gb_dynamodb_source from = {"t", "Query"};
    struct gb_str scratch = {0};
    struct gb_bytes text = {0};
    struct gb_bytes map = {0};
    int64_t number = 0;
    struct gb_dynamodb_field fields[] = {
        {"PK", GB_DYNAMODB_FIELD_S, true, &text, false},
        {"n", GB_DYNAMODB_FIELD_I64, false, &number, false},
        {"m", GB_DYNAMODB_FIELD_M, false, &map, false},
    };
    size_t bytes = 0;
    struct gb_err err = gb_dynamodb_item_read(&from, item, &scratch, fields, 3);
    GB_ASSERT(err.code == GB_OK || err.code == GB_INVALID_CONFIG || err.code == GB_UNAVAILABLE);
    walk(GB_DYNAMODB_M, item, 3);
    if (!gb_failed(gb_dynamodb_item_size(item, &bytes))) {
        struct gb_dynamodb_units units = {0};
        GB_ASSERT(bytes <= item.size);
        GB_ASSERT(!gb_failed(gb_dynamodb_meter_write(&table, item, item, true, &units)));
        GB_ASSERT(units.table >= GB_DYNAMODB_UNIT && units.total >= units.table);
    }
    gb_str_deinit(&scratch);
}

static void count(void *arg, const struct gb_dynamodb_capacity *capacity)
{
    check_inside(capacity->table, *(const struct gb_bytes *)arg);
    check_inside(capacity->index, *(const struct gb_bytes *)arg);
}

static void check_answer(enum gb_dynamodb_action action, struct gb_bytes body)
{
    struct gb_dynamodb_answer a;
    struct gb_dynamodb_items items;
    struct gb_bytes item;
    struct gb_str scratch = {0};
    struct gb_dynamodb_table table;
    struct gb_err err = gb_dynamodb_answer_read(action, body, &a);
    GB_ASSERT(err.code == GB_OK || err.code == GB_UNAVAILABLE);
    check_inside(a.last_key, body);
    gb_dynamodb_items_init(&items, a.items);
    while (gb_dynamodb_items_next(&items, &item)) {
        check_inside(item, body);
        check_item(item);
    }
    if (a.item.size > 0) check_item(a.item);
    gb_dynamodb_capacity_read(action, a.capacity, count, &body);
    if (!gb_failed(gb_dynamodb_table_read(a.table, &scratch, &table))) {
        GB_ASSERT(table.hash.name != NULL && table.index_count <= GB_DYNAMODB_INDEXES_MAX);
    }
    gb_str_deinit(&scratch);
}

static void check_error(struct gb_bytes body)
{
    struct gb_aws_error e;
    struct gb_dynamodb_answer a;
    struct gb_dynamodb_reason reasons[4];
    size_t index = 0;
    gb_aws_error_parse(400, body, gb_bytes(NULL, 0), gb_bytes(NULL, 0), &e);
    GB_ASSERT(gb_failed(gb_dynamodb_classify(&e)));
    GB_ASSERT(gb_dynamodb_error_of(&e) != GB_DYNAMODB_NO_ERROR);
    gb_dynamodb_answer_read_error(body, &a);
    check_inside(a.item, body);
    size_t count_of_all = gb_dynamodb_reasons_read(a.reasons, reasons, 4);
    for (size_t i = 0; i < count_of_all && i < 4; i++) check_inside(reasons[i].item, body);
    GB_ASSERT(gb_dynamodb_reasons_verdict(a.reasons, &index) != GB_DYNAMODB_NO_ERROR);
    GB_ASSERT(index == 0 || index < count_of_all);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) return 0;
    struct gb_bytes body = gb_bytes(data + 1, size - 1);
    if (data[0] >= 0x80) {
        check_error(body);
    } else {
        check_answer((enum gb_dynamodb_action)(data[0] % GB_DYNAMODB_ACTIONS), body);
    }
    return 0;
}
