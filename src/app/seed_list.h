#ifndef GB_APP_SEED_LIST_H
#define GB_APP_SEED_LIST_H

#include "app/options.h"
#include "domain/mqtt_topic.h"

/* The values of -seed-managed-subscriptions (spec 08 §2): SESSION or SESSION=FILTER,FILTER.
 * Owns:   a seed owns its text; id and filters point into it.
 * Thread: any. Pure.
 * Errors: GB_INVALID_CONFIG: empty id, session named twice, `=` without filter, empty or illegal
 *         filter, more than GB_SEED_FILTERS_MAX; GB_UNAVAILABLE: no memory. */
enum { GB_SEED_FILTERS_MAX = 256 };

struct gb_seed {
    char *text;
    const char *session_id;
    const char *filters[GB_SEED_FILTERS_MAX];
    size_t count;                         /* 0: the empty baseline of a new broker identity */
    char identity[GB_MQTT_IDENTITY_SIZE]; /* filled from the document */
};

/* `seeds` has o->seed_count zeroed elements; gb_seed_deinit each, after an error too. */
struct gb_err gb_seeds_read(const struct gb_options *o, struct gb_seed *seeds);
void gb_seed_deinit(struct gb_seed *s); /* accepts zeroed memory */

#endif
