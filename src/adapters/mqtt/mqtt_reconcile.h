#ifndef GB_ADAPTERS_MQTT_MQTT_RECONCILE_H
#define GB_ADAPTERS_MQTT_MQTT_RECONCILE_H

#include "adapters/mqtt/mqtt_session.h"

/* Managed subscriptions of one session (spec 03 §8): brings the broker's subscriptions from the
 * history H to the plan P. Durable sessions remember a filter before they subscribe it and forget
 * it only after the broker gave it up and its replay window is over; ephemeral sessions only
 * subscribe.
 * Owns:   its filters; borrows the configuration's stores. It knows no socket: packets go out
 *         through the callbacks.
 * Thread: loop thread only; callbacks run deferred or from inside the event that caused them, never
 *         re-entrantly.
 * Errors: gb_mqtt_reconcile_new: GB_UNAVAILABLE. Failures of a pass are retried for ever, 1 s
 *         doubling to 30 s. */

enum gb_mqtt_reconcile_state {
    GB_MQTT_R_DOWN = 0,    /* no connection */
    GB_MQTT_R_REMEMBER,    /* P \ H goes into the store */
    GB_MQTT_R_SUBSCRIBE,   /* SUBACKs outstanding */
    GB_MQTT_R_CONFIRM,     /* a lower QoS was granted: ask again after 5 s */
    GB_MQTT_R_UNSUBSCRIBE, /* UNSUBACKs outstanding */
    GB_MQTT_R_RECYCLE,     /* waits for the connection to be replaced */
    GB_MQTT_R_WINDOW,      /* replays of removed filters may still arrive */
    GB_MQTT_R_REPLAYS,     /* the session moves them to the DLQ */
    GB_MQTT_R_FORGET,      /* removed filters leave the store */
    GB_MQTT_R_CONVERGED,
    GB_MQTT_R_RETRY, /* waits after a failure */
    GB_MQTT_R_STATES,
};

enum { GB_MQTT_FILTERS_PER_PACKET = 8, GB_MQTT_RECONCILE_ID_FIRST = 60000 };

struct gb_mqtt_subscription { /* for one SUBSCRIBE or UNSUBSCRIBE packet */
    struct gb_bytes filter;
    uint8_t qos;
    bool shared;
    bool again; /* granted on this epoch already: retained messages have come */
};
struct gb_mqtt_reconcile_events {
    void (*subscribe)(void *arg, uint16_t packet_id, const struct gb_mqtt_subscription *subs,
                      size_t count);
    void (*unsubscribe)(void *arg, uint16_t packet_id, const struct gb_mqtt_subscription *subs,
                        size_t count);
    void (*recycle)(void *arg); /* quiesce, disconnect, reconnect */
    void (*replays)(void *arg); /* the window is over: answer with gb_mqtt_reconcile_replays_done */
    void (*changed)(void *arg); /* convergence or last error changed */
};

struct gb_mqtt_reconcile;
struct gb_err gb_mqtt_reconcile_new(const struct gb_mqtt_session_cfg *cfg, const char *identity,
                                    const struct gb_mqtt_reconcile_events *events, void *arg,
                                    struct gb_mqtt_reconcile **out);
void gb_mqtt_reconcile_free(struct gb_mqtt_reconcile *r); /* no store operation pending; NULL ok */
/* True while an operation is with the store. */
bool gb_mqtt_reconcile_busy(const struct gb_mqtt_reconcile *r);

/* The history as listed (before the first connect). GB_UNAVAILABLE: out of memory. */
struct gb_err gb_mqtt_reconcile_history(struct gb_mqtt_reconcile *r,
                                        const struct gb_filter_list *h);
size_t gb_mqtt_reconcile_history_size(const struct gb_mqtt_reconcile *r);

void gb_mqtt_reconcile_connected(struct gb_mqtt_reconcile *r, bool session_present);
void gb_mqtt_reconcile_disconnected(struct gb_mqtt_reconcile *r);
void gb_mqtt_reconcile_suback(struct gb_mqtt_reconcile *r, uint16_t packet_id,
                              struct gb_bytes codes);
void gb_mqtt_reconcile_unsuback(struct gb_mqtt_reconcile *r, uint16_t packet_id,
                                struct gb_bytes codes); /* v3.1.1: no codes = success */
void gb_mqtt_reconcile_replays_done(struct gb_mqtt_reconcile *r, struct gb_err result);

bool gb_mqtt_reconcile_converged(const struct gb_mqtt_reconcile *r);
bool gb_mqtt_reconcile_degraded(
    const struct gb_mqtt_reconcile *r); /* a lower grant is being confirmed */
enum gb_mqtt_reconcile_state gb_mqtt_reconcile_state(const struct gb_mqtt_reconcile *r);
uint32_t gb_mqtt_reconcile_active(const struct gb_mqtt_reconcile *r); /* wanted filters granted */
const struct gb_err *gb_mqtt_reconcile_error(const struct gb_mqtt_reconcile *r);
/* True when a wanted filter matches. */
bool gb_mqtt_reconcile_wants(const struct gb_mqtt_reconcile *r, struct gb_bytes topic);
/* The history filter on its way out that matches, or NULL (spec 03 §8.3). */
const char *gb_mqtt_reconcile_removing(const struct gb_mqtt_reconcile *r, struct gb_bytes topic);

#endif
