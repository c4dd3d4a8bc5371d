#ifndef GB_TESTS_CONTRACT_DYNAMODB_RIG_H
#define GB_TESTS_CONTRACT_DYNAMODB_RIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A DynamoDB emulator, and a fault proxy in front of it that the test drives. Both are started
 * around ctest (tests/e2e/emulators.py ctest ...) and named by GB_TEST_DYNAMODB_ENDPOINT, _EMULATOR
 * and _CONTROL. All tests share one emulator: name tables by dynamodb_rig_table. The commands and
 * effects are listed at the top of tests/e2e/fault_proxy.py.
 * Owns:   the connection to the proxy; its ports, rules and records end with it.
 * Thread: the test's. Commands block until the proxy has answered, so the loop stands meanwhile:
 *         never release what the loop must first send, look at dynamodb_rig_held before.
 * Errors: what goes wrong fails the test. */

enum { DYNAMODB_RIG_SKIP = 77, DYNAMODB_ENDPOINT_SIZE = 64, DYNAMODB_TABLE_SIZE = 96 };

struct dynamodb_rig;

/* NULL without an emulator: main returns DYNAMODB_RIG_SKIP. */
struct dynamodb_rig *dynamodb_rig_new(void);
void dynamodb_rig_free(struct dynamodb_rig *r);

/* "http://127.0.0.1:<port>", around the proxy. */
const char *dynamodb_rig_endpoint(const struct dynamodb_rig *r);
/* "dynoxide", "moto": a test of what only one does right is skipped on the other. */
bool dynamodb_rig_is(const struct dynamodb_rig *r, const char *emulator);
/* "<name>-<numbers>", which no other rig uses. */
void dynamodb_rig_table(struct dynamodb_rig *r, const char *name, char out[DYNAMODB_TABLE_SIZE]);

/* A new endpoint through the proxy; rules and orders know it by the client's name. */
void dynamodb_rig_client(struct dynamodb_rig *r, const char *client,
                         char endpoint[DYNAMODB_ENDPOINT_SIZE]);
/* The members of a rule, such as "\"effect\": \"cut\", \"action\": \"PutItem\", \"skip\": 2". */
void dynamodb_rig_rule(struct dynamodb_rig *r, const char *members);
/* What one request may meet: that many of a list that begins with those that differ most. All of
 * them on the better emulator, on moto the first two: it is slow, and no different in this. */
extern const char *const dynamodb_rig_effects[];
size_t dynamodb_rig_effect_count(const struct dynamodb_rig *r);
/* A client's attempt time-out for it. Only an answer that never comes is waited for briefly; where
 * one comes, a slow emulator has the time it needs, so what fails is what the test made fail. */
int64_t dynamodb_rig_attempt_ns(const char *effect);
/* How many requests of this client ("" = of all) are held. */
size_t dynamodb_rig_held(struct dynamodb_rig *r, const char *client);
/* Lets the oldest held request go and returns when the emulator has answered it. */
void dynamodb_rig_release(struct dynamodb_rig *r, const char *client);
/* Requests so far. */
uint64_t dynamodb_rig_arrived(struct dynamodb_rig *r);
/* Capacity units as the emulator counts them, for clients that ask for them. */
double dynamodb_rig_units(struct dynamodb_rig *r, const char *client, const char *action);
/* No rules, no records, nothing held. */
void dynamodb_rig_clear(struct dynamodb_rig *r);

/* Any command as a JSON object; its answer, until the next command. */
const char *dynamodb_rig_ask(struct dynamodb_rig *r, const char *command);

#endif
