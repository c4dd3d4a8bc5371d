#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "contract/outbox_dynamodb.h"

/* The contract suite on DynamoDB: in an emulator, without faults; with the ordinary way of each
 * record, and again with the direct one where it is allowed. */

enum { SMALL = 8, MODEL_STEPS = 2000, MODEL_STEPS_SLOW = 400 };

static void set_up(struct outbox_backend *b)
{
    outbox_dynamodb_set_up(b, 0);
}

static void set_up_small(struct outbox_backend *b)
{
    outbox_dynamodb_set_up(b, SMALL);
}

static void reopen(struct outbox_backend *b)
{
    outbox_dynamodb_reopen(b, 0);
}

int main(void)
{
    struct outbox_dynamodb dynamodb = {.rig = dynamodb_rig_new()};
    if (dynamodb.rig == NULL) return DYNAMODB_RIG_SKIP;
    struct outbox_backend backend = {
        .name = "outbox on DynamoDB",
        .durable = true,
        .stale_ms = OUTBOX_STALE_MS + 1, /* strict: older than (spec 05 §2.6) */
        .full_at = SMALL,
        .ids_unchecked = true,
        .model_steps = dynamodb_rig_is(dynamodb.rig, "moto") ? MODEL_STEPS_SLOW : MODEL_STEPS,
        .set_up = set_up,
        .set_up_small = set_up_small,
        .reopen = reopen,
        .tear_down = outbox_dynamodb_tear_down,
        .ctx = &dynamodb,
    };
    int failed = outbox_contract_run(&backend);
    backend.name = "outbox on DynamoDB, partitions held";
    dynamodb.direct = true;
    dynamodb.keyed_after_ns = 1000000; /* the model's clock makes small steps */
    failed += outbox_contract_run(&backend);
    dynamodb_rig_free(dynamodb.rig);
    return failed;
}
