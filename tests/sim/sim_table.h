#ifndef GB_TESTS_SIM_TABLE_H
#define GB_TESTS_SIM_TABLE_H

#include "sim/sim_lease.h"

/* One request at the table: its condition and its write, at one instant (spec 06 §6).
 * Owns:   nothing.
 * Thread: one.
 * Errors: false: the condition failed; sim_violate for what no table may show. */

enum sim_table_kind { SIM_READ = 0, SIM_CREATE, SIM_OBSERVE, SIM_TAKE, SIM_RENEW, SIM_RELEASE };

struct sim_request_body { /* as it was sent; sent again it says the same */
    enum sim_table_kind kind;
    char owner[64];
    uint64_t version; /* written by CREATE and TAKE, demanded by RENEW and RELEASE */
    int64_t now_ms, expires_ms;
    struct sim_row_image as_read; /* what OBSERVE and TAKE demand */
    char fingerprint[GB_SHA256_HEX];
    int64_t elapsed_ns;
    uint64_t generation;
};
void sim_row_view(const struct sim_row_image *row, struct gb_lease_row *out);
/* `result`: the row after the request, or what stood against it. */
bool sim_table_apply(struct sim_table *t, const struct sim_request_body *q,
                     struct sim_row_image *result);

#endif
