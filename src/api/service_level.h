#ifndef GB_API_SERVICE_LEVEL_H
#define GB_API_SERVICE_LEVEL_H

#include "api/monitor_snapshot.h"

/* Readiness, role and service level of an instance (spec 08 §6, 06 §10), from one snapshot for all
 * probes.
 * Owns:   nothing.
 * Thread: any. Pure.
 * Errors: none. */
enum gb_readiness {
    GB_READY_DOWN = 0, /* no process; can't be asked for */
    GB_READY_LIVE,
    GB_READY_RUNNING,
    GB_READY_CONNECTED,
    GB_READY_SUBSCRIBED,
    GB_READY_FULL,
};
enum gb_role { GB_ROLE_STANDALONE = 0, GB_ROLE_ACTIVE, GB_ROLE_STANDBY };

const char *gb_readiness_name(enum gb_readiness level); /* "live" ... */
/* Any case, blanks around it; false for an unknown level and for `down`. */
bool gb_readiness_parse(const char *text, enum gb_readiness *out);
const char *gb_role_name(enum gb_role role);
const char *gb_service_level_name(enum gb_service_level level);

enum gb_readiness gb_readiness_of(const struct gb_monitor_snapshot *s);
enum gb_role gb_role_of(const struct gb_monitor_snapshot *s);
enum gb_service_level gb_service_level_of(const struct gb_monitor_snapshot *s);
bool gb_monitor_empty(const struct gb_monitor_snapshot *s); /* neither routes nor sessions */
/* Decides the status of /deephealth. */
bool gb_ready_for_traffic(const struct gb_monitor_snapshot *s);

#endif
