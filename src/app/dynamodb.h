#ifndef GB_APP_DYNAMODB_H
#define GB_APP_DYNAMODB_H

#include "adapters/dynamodb/dynamodb_provision.h"
#include "blueprint/blueprint.h"
#include "io/loop.h"

/* What the program needs to reach DynamoDB: region, endpoint and credentials come from the
 * environment (spec 05 §1.1, 04 A3).
 * Owns:   see the functions; the loop is borrowed.
 * Thread: loop thread only.
 * Errors: GB_INVALID_CONFIG (no region, bad endpoint, unreadable CA), GB_UNAVAILABLE. */

/* With the CA certificates that the environment names. */
struct gb_err gb_app_http_new(struct gb_loop *loop, struct gb_http **out);

/* One client and its credentials, over an HTTP client that outlives them. */
struct gb_app_dynamodb {
    struct gb_aws_credentials *credentials;
    struct gb_dynamodb_client *client;
};
/* `instance_id` names the sessions of assumed roles. After an error, too: unref the credentials,
 * and close the client if there is one. */
struct gb_err gb_app_dynamodb_new(struct gb_app_dynamodb *d, struct gb_loop *loop,
                                  struct gb_http *http, const char *instance_id);

/* The tables of the document's stores, in the order of their roles; answers how many. */
size_t gb_app_wants(const struct gb_blueprint *b, struct gb_dynamodb_want out[GB_BP_ROLE_COUNT]);

/* For the modes that use DynamoDB alone and end then: open, start something on `d.client`, run the
 * loop until it is done, close, which runs the loop until all is closed. */
struct gb_app_aws {
    struct gb_loop *loop;
    struct gb_http *http;
    struct gb_app_dynamodb d;
    struct gb_op close;
};
struct gb_err gb_app_aws_open(struct gb_app_aws *a, struct gb_loop *loop);
/* accepts one whose opening failed, or zeroed memory */
void gb_app_aws_close(struct gb_app_aws *a);

#endif
