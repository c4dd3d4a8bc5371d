#ifndef GB_ADAPTERS_DYNAMODB_DYNAMODB_TABLE_H
#define GB_ADAPTERS_DYNAMODB_DYNAMODB_TABLE_H

#include "adapters/dynamodb/dynamodb_item.h"

/* The shape of a table (spec 05 §9.2): written for CreateTable, read from DescribeTable, known to
 * the meter.
 * Owns:   nothing; texts of a table that was read are terminated and lie in `scratch`.
 * Thread: any. Pure.
 * Errors: GB_UNAVAILABLE: malformed answer, more indexes than DynamoDB allows, out of memory. */

enum { GB_DYNAMODB_INDEXES_MAX = 20 };

enum gb_dynamodb_projection {
    GB_DYNAMODB_KEYS_ONLY = 0,
    GB_DYNAMODB_INCLUDE, /* of tables that were read only */
    GB_DYNAMODB_ALL,
};
const char *gb_dynamodb_projection_name(enum gb_dynamodb_projection p); /* "KEYS_ONLY" */

struct gb_dynamodb_key {
    const char *name; /* NULL: none */
    enum gb_dynamodb_type type;
};
struct gb_dynamodb_index {
    const char *name;
    struct gb_dynamodb_key hash, range;
    enum gb_dynamodb_projection projection;
};
struct gb_dynamodb_table {
    struct gb_dynamodb_key hash, range;
    struct gb_dynamodb_index indexes[GB_DYNAMODB_INDEXES_MAX]; /* global ones */
    size_t index_count;
    /* only when read */
    const char *status; /* "ACTIVE"; "" when not given */
    size_t local_index_count;
    size_t attribute_count; /* attribute definitions */
};

/* The members AttributeDefinitions, KeySchema, GlobalSecondaryIndexes and BillingMode
 * PAY_PER_REQUEST of the object that is open in `w`. */
void gb_dynamodb_w_table(struct gb_json_writer *w, const struct gb_dynamodb_table *table);
/* `json`: the Table of an answer. */
struct gb_err gb_dynamodb_table_read(struct gb_bytes json, struct gb_str *scratch,
                                     struct gb_dynamodb_table *out);

#endif
