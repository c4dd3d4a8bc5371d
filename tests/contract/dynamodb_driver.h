#ifndef GB_TESTS_CONTRACT_DYNAMODB_DRIVER_H
#define GB_TESTS_CONTRACT_DYNAMODB_DRIVER_H

#include "adapters/dynamodb/dynamodb_client.h"
#include "adapters/dynamodb/dynamodb_tables.h"
#include "io/http_curl.h"

/* A DynamoDB client on the real HTTP client and loop, against an endpoint that a test names.
 * Owns:   all of it; dynamodb_driver_close closes client and HTTP client and asserts that nothing
 *         is left.
 * Thread: the test's.
 * Errors: set-up failures end the test. */

struct dynamodb_driver {
    struct gb_loop *loop;
    struct gb_reactor *reactor;
    struct gb_http *http;
    struct gb_aws_credentials *credentials;
    struct gb_dynamodb_client *client;
    char endpoint[64];
    unsigned pending;
    struct gb_op close_op;
};

struct dynamodb_driver_cfg {
    const char *endpoint;
    int64_t attempt_timeout_ns;
    uint32_t calls_max;
};
void dynamodb_driver_open(struct dynamodb_driver *d, const struct dynamodb_driver_cfg *cfg);
void dynamodb_driver_close(struct dynamodb_driver *d);
/* Starts what was written into `call`, with a deadline of 20 s. */
void dynamodb_driver_start(struct dynamodb_driver *d, struct gb_dynamodb_call *call);
/* Runs the loop until every started call is done. */
void dynamodb_driver_wait(struct dynamodb_driver *d);
/* Both; answers the result's code. */
enum gb_code dynamodb_driver_run(struct dynamodb_driver *d, struct gb_dynamodb_call *call);
/* The table of a store, under a name of the test's. */
void dynamodb_driver_create_table(struct dynamodb_driver *d, enum gb_dynamodb_role role,
                                  const char *name);

#endif
