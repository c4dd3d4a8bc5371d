#ifndef GB_TESTS_CONTRACT_LEASE_DYNAMODB_H
#define GB_TESTS_CONTRACT_LEASE_DYNAMODB_H

#include "contract/dynamodb_driver.h"
#include "contract/dynamodb_rig.h"
#include "contract/lease_contract.h"

/* A process with a lease store on DynamoDB and clocks that the test moves.
 * Owns:   its client and store between open and close.
 * Thread: the test's.
 * Errors: set-up failures fail the test. */
struct lease_process {
    struct dynamodb_driver driver;
    struct lease_backend b; /* for lease_acquire and the others */
    int64_t wall_ms;
    uint64_t mono_ns;
    const char *table;
};

/* `client`: of the rig. The table may not be there yet. */
void lease_process_open(struct lease_process *p, struct dynamodb_rig *rig, const char *client,
                        const char *table, int64_t attempt_timeout_ns);
void lease_process_close(struct lease_process *p);
void lease_process_create_table(struct lease_process *p);
/* Killed, and started again. */
void lease_process_restart(struct lease_process *p);
/* The row as the table has it; "" and 0 without one. Valid until the next call. */
const char *lease_process_owner(struct lease_process *p, const char *id, uint64_t *version);

#endif
