#include "adapters/dynamodb/dynamodb_call.h"

#include "base/assert.h"
#include "base/id.h"

enum { KEPT_BYTES_MAX = 256 * 1024 }; /* of a request's buffer between requests */

void gb_dynamodb_begin(struct gb_dynamodb_call *call, enum gb_dynamodb_action action,
                       const char *table)
{
    struct gb_str *body = &call->aws.body;
    GB_ASSERT(!gb_op_pending(&call->op));
    GB_ASSERT(action < GB_DYNAMODB_ACTIONS);
    GB_ASSERT((table == NULL) == (action == GB_DYNAMODB_TRANSACT_WRITE_ITEMS));
    if (body->capacity > KEPT_BYTES_MAX) gb_str_deinit(body);
    gb_str_clear(body);
    call->action = action;
    call->table = table;
    call->repeatable = false;
    call->item_room = 0;
    call->token[0] = '\0';
    call->actions = 0;
    call->item_start = 0;
    call->complete = false;
    call->refusal = gb_ok();
    gb_json_w_init(&call->w, body);
    gb_json_w_object(&call->w);
    if (table != NULL) {
        gb_json_w_key(&call->w, "TableName");
        gb_json_w_string_c(&call->w, table);
    } else {
        gb_json_w_key(&call->w, "TransactItems");
        gb_json_w_array(&call->w);
    }
}

void gb_dynamodb_call_deinit(struct gb_dynamodb_call *call)
{
    GB_ASSERT(!gb_op_pending(&call->op));
    gb_aws_call_deinit(&call->aws);
    *call = (struct gb_dynamodb_call){0};
}

/* --- parts --- */

static size_t position(const struct gb_dynamodb_call *call)
{
    return call->aws.body.size;
}

void gb_dynamodb_object(struct gb_dynamodb_call *call, enum gb_dynamodb_object object)
{
    static const char *const names[] = {
        [GB_DYNAMODB_KEY] = "Key",
        [GB_DYNAMODB_ITEM] = "Item",
        [GB_DYNAMODB_VALUES] = "ExpressionAttributeValues",
    };
    gb_json_w_key(&call->w, names[object]);
    if (object == GB_DYNAMODB_ITEM) call->item_start = position(call);
    gb_json_w_object(&call->w);
}

/* As text an item is always larger than as DynamoDB counts it, so only few need counting. */
static void check_item(struct gb_dynamodb_call *call)
{
    const struct gb_str *body = &call->aws.body;
    struct gb_bytes item =
        gb_bytes(body->data + call->item_start, position(call) - call->item_start);
    size_t bytes = 0;
    GB_ASSERT(call->item_room < GB_DYNAMODB_ITEM_BYTES_MAX);
    size_t most = GB_DYNAMODB_ITEM_BYTES_MAX - call->item_room;
    if (item.size <= most || body->failed || gb_failed(call->refusal)) return;
    call->refusal = gb_dynamodb_item_size(item, &bytes);
    if (bytes > most) {
        call->refusal =
            gb_err(GB_PAYLOAD_TOO_LARGE, "%s: an item of %zu bytes; DynamoDB takes at most %zu",
                   gb_dynamodb_action_name(call->action), bytes, most);
    }
}

void gb_dynamodb_object_end(struct gb_dynamodb_call *call)
{
    gb_json_w_object_end(&call->w);
    if (call->item_start != 0) check_item(call);
    call->item_start = 0;
}

void gb_dynamodb_text(struct gb_dynamodb_call *call, enum gb_dynamodb_text part, const char *text)
{
    static const char *const names[] = {
        [GB_DYNAMODB_CONDITION] = "ConditionExpression",
        [GB_DYNAMODB_UPDATE] = "UpdateExpression",
        [GB_DYNAMODB_KEY_CONDITION] = "KeyConditionExpression",
        [GB_DYNAMODB_FILTER] = "FilterExpression",
        [GB_DYNAMODB_PROJECTION] = "ProjectionExpression",
        [GB_DYNAMODB_INDEX] = "IndexName",
        [GB_DYNAMODB_RETURN_VALUES] = "ReturnValues",
    };
    gb_json_w_key(&call->w, names[part]);
    gb_json_w_string_c(&call->w, text);
}

void gb_dynamodb_flag(struct gb_dynamodb_call *call, enum gb_dynamodb_flag flag)
{
    struct gb_json_writer *w = &call->w;
    switch (flag) {
    case GB_DYNAMODB_CONSISTENT_READ:
        gb_json_w_key(w, "ConsistentRead");
        gb_json_w_bool(w, true);
        return;
    case GB_DYNAMODB_DESCENDING:
        gb_json_w_key(w, "ScanIndexForward");
        gb_json_w_bool(w, false);
        return;
    case GB_DYNAMODB_COUNT_ONLY:
        gb_json_w_key(w, "Select");
        gb_json_w_string_c(w, "COUNT");
        return;
    case GB_DYNAMODB_RETURN_ON_FAILURE:
        gb_json_w_key(w, "ReturnValuesOnConditionCheckFailure");
        gb_json_w_string_c(w, "ALL_OLD");
        return;
    }
}

void gb_dynamodb_names(struct gb_dynamodb_call *call, const struct gb_dynamodb_name *names,
                       size_t count)
{
    gb_json_w_key(&call->w, "ExpressionAttributeNames");
    gb_json_w_object(&call->w);
    for (size_t i = 0; i < count; i++) {
        gb_json_w_key(&call->w, names[i].alias);
        gb_json_w_string_c(&call->w, names[i].name);
    }
    gb_json_w_object_end(&call->w);
}

void gb_dynamodb_limit(struct gb_dynamodb_call *call, uint32_t items)
{
    gb_json_w_key(&call->w, "Limit");
    gb_json_w_u64(&call->w, items);
}

void gb_dynamodb_start_key(struct gb_dynamodb_call *call, struct gb_bytes last_key)
{
    if (last_key.size == 0) return;
    gb_json_w_key(&call->w, "ExclusiveStartKey");
    gb_json_w_raw(&call->w, last_key);
}

void gb_dynamodb_ttl(struct gb_dynamodb_call *call, const char *attribute)
{
    gb_json_w_key(&call->w, "TimeToLiveSpecification");
    gb_json_w_object(&call->w);
    gb_json_w_key(&call->w, "AttributeName");
    gb_json_w_string_c(&call->w, attribute);
    gb_json_w_key(&call->w, "Enabled");
    gb_json_w_bool(&call->w, true);
    gb_json_w_object_end(&call->w);
}

/* --- transactions --- */

void gb_dynamodb_action(struct gb_dynamodb_call *call, enum gb_dynamodb_action action,
                        const char *table)
{
    GB_ASSERT(call->action == GB_DYNAMODB_TRANSACT_WRITE_ITEMS);
    const char *name = action == GB_DYNAMODB_PUT_ITEM          ? "Put"
                       : action == GB_DYNAMODB_UPDATE_ITEM     ? "Update"
                       : action == GB_DYNAMODB_DELETE_ITEM     ? "Delete"
                       : action == GB_DYNAMODB_CONDITION_CHECK ? "ConditionCheck"
                                                               : NULL;
    GB_ASSERT(name != NULL);
    if (call->actions == 0) call->table = table;
    call->actions++;
    if (call->actions > GB_DYNAMODB_TRANSACTION_MAX) {
        call->refusal =
            gb_err(GB_INVALID_PAYLOAD, "TransactWriteItems: %zu actions; DynamoDB takes at most %d",
                   call->actions, GB_DYNAMODB_TRANSACTION_MAX);
    }
    gb_json_w_object(&call->w);
    gb_json_w_key(&call->w, name);
    gb_json_w_object(&call->w);
    gb_json_w_key(&call->w, "TableName");
    gb_json_w_string_c(&call->w, table);
}

void gb_dynamodb_action_end(struct gb_dynamodb_call *call)
{
    gb_json_w_object_end(&call->w);
    gb_json_w_object_end(&call->w);
}

void gb_dynamodb_token(struct gb_dynamodb_call *call, const char *token)
{
    size_t size = strlen(token);
    GB_ASSERT(size > 0 && size < sizeof call->token);
    memcpy(call->token, token, size + 1);
}
