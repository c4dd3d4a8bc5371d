#ifndef GB_BLUEPRINT_BOOTSTRAP_H
#define GB_BLUEPRINT_BOOTSTRAP_H

#include "base/bytes.h"
#include "base/err.h"
#include "blueprint/findings.h"

/* The settings of one process that its deployment owns (spec 07 §1.1, 09 §4.2): JSON text in, a
 * checked value out. Also what a document has to keep to under them (spec 01 §6).
 * Owns:   its texts, released by gb_bootstrap_free.
 * Thread: any. Pure; constant once read.
 * Errors: GB_INVALID_CONFIG naming the key, the value unless it may be secret, the rule and the
 *         remedy; what is valid but not built in this release is refused by name. GB_UNAVAILABLE:
 *         out of memory. */

enum gb_topology {
    GB_TOPOLOGY_SINGLE = 0,
    GB_TOPOLOGY_REPLICATED, /* filesystem_replicated */
    GB_TOPOLOGY_HA,         /* dynamodb_coordinated_ha */
};
const char *gb_topology_name(enum gb_topology topology);

struct gb_arena;
struct gb_bootstrap { /* texts: NULL when absent or empty */
    const char *bridge_id, *instance_id, *member_id;
    bool worker; /* node_role */
    enum gb_topology topology;
    const char *config_file_path;
    int64_t poll_interval_ns;
    const char *credential_file_path;
    const char *lease_table, *outbox_table, *subscriptions_table; /* of an HA deployment */
    const char *fingerprint, *baseline_digest, *rollout_table;
    const char *admin_addr, *monitor_addr;
    const char *metrics_exporter, *aws_region, *ssm_endpoint;
    struct gb_arena *arena; /* private */
};
/* `role` is GOBRIDGE_NODE_ROLE or NULL: it fills an absent node_role, and must not differ from a
 * written one (spec 09 §4.3). */
struct gb_err gb_bootstrap_read(struct gb_bytes json, const char *role, struct gb_bootstrap **out);
void gb_bootstrap_free(struct gb_bootstrap *b); /* NULL ok */

struct gb_blueprint;
/* Adds an error for each rule of the profile that the document breaks; GB_INVALID_CONFIG when there
 * is one. Judged before anything is planned or opened. */
struct gb_err gb_bootstrap_admit(const struct gb_bootstrap *boot, const struct gb_blueprint *b,
                                 struct gb_findings *findings);

#endif
