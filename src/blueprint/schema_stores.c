#include "blueprint/schema.h"

/* Options of the stores by role and type (spec 01 §3.3, 05 §1.1). Region and endpoint of DynamoDB
 * are unknown keys on purpose: the environment decides (spec 04 A3). */

#define AT(member) GB_FIELD_AT(gb_bp_store_options, member)

#define TABLE(name)                                                                                \
    {"table_name", GB_FIELD_TEXT, 0, AT(table_name), .text_def = (name)},                          \
    {                                                                                              \
        "preflight_advisory", GB_FIELD_BOOL, 0, AT(preflight_advisory)                             \
    }
#define STALE_CLAIM                                                                                \
    {                                                                                              \
        "stale_claim_duration", GB_FIELD_DURATION, 0, AT(stale_claim_duration), .min = 1,          \
                                                                                .max = GB_FOREVER  \
    }
#define PATH                                                                                       \
    {                                                                                              \
        "path", GB_FIELD_TEXT, GB_FIELD_REQUIRED, AT(path)                                         \
    }
#define DLQ_RETENTION                                                                              \
    {                                                                                              \
        "retention", GB_FIELD_DURATION, 0, AT(retention), .max = GB_FOREVER                        \
    }

static const struct gb_field lease_dynamodb[] = {TABLE("gobridge-leases")};
static const struct gb_field outbox_dynamodb[] = {
    TABLE("gobridge-outbox"),
    STALE_CLAIM,
    {"compaction_grace", GB_FIELD_DURATION, 0, AT(compaction_grace), .max = GB_FOREVER,
     .def = GB_HOUR},
};
static const struct gb_field dlq_dynamodb[] = {
    TABLE("gobridge-dlq"),
    DLQ_RETENTION,
    {"max_scan_pages", GB_FIELD_INT, GB_FIELD_ZERO_DEFAULT, AT(max_scan_pages), .min = INT32_MIN,
     .max = INT32_MAX, .def = 100},
};
static const struct gb_field subscriptions_dynamodb[] = {TABLE("gobridge-managed-subscriptions")};
static const struct gb_field path_sqlite[] = {PATH};
static const struct gb_field outbox_sqlite[] = {
    PATH,
    STALE_CLAIM,
    /* Negative: never compact. */
    {"retention", GB_FIELD_DURATION, GB_FIELD_ZERO_DEFAULT, AT(retention), .min = INT64_MIN,
     .max = GB_FOREVER, .def = GB_HOUR},
};
static const struct gb_field dlq_sqlite[] = {PATH, DLQ_RETENTION};
static const struct gb_field lease_memory[] = {
    {"acknowledge_single_replica", GB_FIELD_BOOL, 0, AT(acknowledge_single_replica)},
};
static const struct gb_field volatile_memory[] = {
    {"acknowledge_volatile", GB_FIELD_BOOL, 0, AT(acknowledge_volatile)},
};

#define OPTIONS(array)                                                                             \
    {                                                                                              \
        "options", sizeof(struct gb_bp_store_options), GB_FIELDS(array)                            \
    }
static const struct gb_block blocks[GB_BP_ROLE_COUNT][GB_BP_DYNAMODB + 1] = {
    [GB_BP_LEASE] = {[GB_BP_MEMORY] = OPTIONS(lease_memory),
                     [GB_BP_SQLITE] = OPTIONS(path_sqlite),
                     [GB_BP_DYNAMODB] = OPTIONS(lease_dynamodb)},
    [GB_BP_OUTBOX] = {[GB_BP_MEMORY] = OPTIONS(volatile_memory),
                      [GB_BP_SQLITE] = OPTIONS(outbox_sqlite),
                      [GB_BP_DYNAMODB] = OPTIONS(outbox_dynamodb)},
    [GB_BP_DLQ] = {[GB_BP_MEMORY] = OPTIONS(volatile_memory),
                   [GB_BP_SQLITE] = OPTIONS(dlq_sqlite),
                   [GB_BP_DYNAMODB] = OPTIONS(dlq_dynamodb)},
    [GB_BP_SUBSCRIPTIONS] =
        {[GB_BP_SQLITE] = OPTIONS(path_sqlite), [GB_BP_DYNAMODB] = OPTIONS(subscriptions_dynamodb)},
};

const struct gb_block *gb_schema_store_options(enum gb_bp_role role, enum gb_bp_store_type type)
{
    const struct gb_block *block = &blocks[role][type];
    return block->name == NULL ? NULL : block;
}
