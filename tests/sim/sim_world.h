#ifndef GB_TESTS_SIM_WORLD_H
#define GB_TESTS_SIM_WORLD_H

#include "base/duration.h"
#include "base/metrics.h"
#include "base/op.h"
#include "domain/lease_cadence.h"
#include "domain/policy.h"

/* The world around a simulated bridge: one seed draws the configuration, the faults and every
 * delay. Time jumps from event to event. The world outlives the bridge's crashes: broker, stores
 * and destination are here. What the checkers (sim_check.h) know comes from these, never from the
 * bridge.
 * Owns:   everything in it.
 * Thread: one.
 * Errors: a broken invariant is kept in `violation` and ends the run; it is never printed here. */

enum { SIM_LEGS_MAX = 2, SIM_KEYS_MAX = 4, SIM_VIOLATION_MAX = 300 };

/* Mistakes that are planted at a port, to prove that the checkers see them. */
enum sim_fault {
    SIM_FAULT_NONE = 0,
    SIM_FAULT_ACK_FIRST,          /* the receiver acknowledges what it hands over */
    SIM_FAULT_SWALLOW_FAILED,     /* the sender reports a failed entry as sent */
    SIM_FAULT_REUSE_PACKET_ID,    /* outgoing publishes share one packet id */
    SIM_FAULT_DROP_ON_RECONNECT,  /* redeliveries are acknowledged and dropped */
    SIM_FAULT_LOSE_ORDER,         /* claimed records lose their ordering key */
    SIM_FAULT_STORE_LIES,         /* persist answers OK without storing */
    SIM_FAULT_ACK_OUT_OF_ORDER,   /* acknowledgements leave in another order */
    SIM_FAULT_STALE_TOKEN,        /* complete carries the token before this one */
    SIM_FAULT_ENDLESS_DUPLICATES, /* complete becomes release */
    SIM_FAULT_FORGET_DLQ,         /* the DLQ answers OK without storing */
    SIM_FAULT_UNBOUNDED,          /* the depth check always says "empty" */
    SIM_FAULTS_ALONE,             /* those above are seen with one bridge alone */
    /* The outbox. */
    SIM_FAULT_CLAIM_STALE = SIM_FAULTS_ALONE, /* a claim under an old token is let through */
    SIM_FAULT_COMPLETE_STALE,                 /* so is a completion */
    /* The table of leases. */
    SIM_FAULT_TAKE_BLINDLY,        /* a takeover has no condition */
    SIM_FAULT_OBSERVE_TWICE,       /* two observers add the same time */
    SIM_FAULT_GENERATION_RESTARTS, /* evidence about a row begins with 1 each time */
    SIM_FAULT_EVIDENCE_STAYS,      /* evidence passes for that of the row as it is now */
    SIM_FAULT_ROW_DELETED,         /* a release deletes the row */
    SIM_FAULT_VERSION_STAYS,       /* a takeover keeps the version */
    SIM_FAULT_OWN_VERSION_STAYS,   /* taking the own row again does */
    SIM_FAULT_RENEW_BLINDLY,       /* a renewal has no condition */
    SIM_FAULT_RELEASE_BLINDLY,     /* a release has none */
    SIM_FAULT_RENEW_LIES,          /* a renewal is answered OK without a write */
    SIM_FAULT_ACQUIRE_LIES,        /* a lost race is answered as won */
    SIM_FAULT_TABLE_DEAF,          /* acquires end in a time-out, whoever asks */
    /* The instance's way to the table. */
    SIM_FAULT_BASELINE_EARLY,   /* a baseline is the instant before the request */
    SIM_FAULT_HALF_THE_TIME,    /* half of the duration is enough */
    SIM_FAULT_WALL_EXPIRY,      /* the standby's wall clock decides */
    SIM_FAULT_BASELINE_DROPPED, /* every poll forgets what it saw */
    SIM_FAULT_NO_NONCE,         /* the owner token is the instance id */
    /* The instance. */
    SIM_FAULT_DEADLINE_FROM_ANSWER, /* not from before the call */
    SIM_FAULT_DEADLINE_IGNORED,     /* authority stays until it is taken */
    SIM_FAULT_DEADLINE_BY_WALL,     /* the deadline follows the wall clock */
    SIM_FAULT_RESUME_UNSEEN,        /* the boot clock stands still during suspend */
    SIM_FAULT_RELEASE_FIRST,        /* the source is closed after the release */
    SIM_FAULT_HANG_RETURNS,         /* a close that hangs counts as returned */
    SIM_FAULT_GRACE_SKIPPED,        /* work in flight is not waited for */
    SIM_FAULT_CONNECT_FIRST,        /* standbys connect */
    SIM_FAULT_UNFENCED_WIRE,        /* the session writes without authority */
    SIM_FAULT_OLD_CONNECTION_STAYS, /* the broker lets the older connection live */
    SIM_FAULTS,
};
const char *sim_fault_name(enum sim_fault fault);

struct sim_message { /* one PUBLISH of the world's producer; its payload is its index */
    uint8_t qos;
    uint8_t key;           /* 0 = none */
    bool anonymous;        /* no mqtt.message-id */
    bool poison;           /* the destination refuses it for good */
    int64_t expires_at_ms; /* 0 = never */
    bool queued;           /* the broker took it for the bridge's session */
    bool acked;            /* the bridge acknowledged it */
    bool durable[SIM_LEGS_MAX];
    bool dead_lettered[SIM_LEGS_MAX];
    uint32_t accepted[SIM_LEGS_MAX]; /* times the destination took it */
};
struct sim_row { /* in the order of becoming durable */
    uint32_t message;
    uint8_t leg;
    uint8_t key;
    int64_t created_at_ms;
    uint64_t durable_turn; /* w->store_turn when it became durable */
    uint64_t durable_ns;
    uint64_t claim_turn; /* ... and when it was claimed for the send that counts */
};

struct sim_cfg {        /* drawn from the seed; constant over all restarts */
    uint32_t instances; /* of a cluster; 0: one bridge alone (sim_cluster.h) */
    bool same_instance_id;
    struct gb_lease_cadence cadence;
    int64_t step_down_ns, lease_delay_max_ns, lease_late_max_ns;
    uint32_t lease_throttle, lease_lost_answer, lease_silent, lease_late;
    uint32_t suspend, wall_jump, line_cut, store_cut, close_hang;
    bool shared_outbox, fan_out, same_partition, has_dlq, to_mqtt, v5, ephemeral;
    bool refilter; /* a later process has other subscriptions (spec 03 §8) */
    bool drop_permanent, drop_expired;
    uint8_t sender_qos;
    uint8_t keys; /* 0 = no ordering keys */
    uint32_t messages, batch_max;
    uint16_t receive_maximum;
    struct gb_policy policy;
    struct gb_drain_policy drain;
    int64_t reconnect_delay_ns;
    uint16_t keep_alive_s;
    /* parts in a thousand */
    uint32_t net_cut, net_split, net_stall, dial_fail;
    uint32_t broker_goodbye, broker_garbage, broker_refuse;
    uint32_t sink_transient, sink_lost_answer, sink_silent, sink_hang, poison;
    uint32_t store_fail, store_lost_answer, store_silent, store_full, dlq_fail;
    uint32_t sink_down, broker_amnesia;
    uint32_t crash, graceful;
    int64_t net_delay_max_ns, sink_delay_max_ns, store_delay_max_ns;
    int64_t faults_until_ns, publish_until_ns;
};

/* The machine that a process runs on: its clocks, and its lines to the others. */
struct sim_host {
    uint32_t index;
    struct sim_bridge *bridge;           /* NULL while the process is down */
    int64_t mono_ahead_ns;               /* of the world's clock; falls by what it was suspended */
    uint64_t suspended_ns;               /* altogether */
    uint64_t suspended_at_ns, resume_ns; /* while it is suspended; else 0 */
    int64_t wall_ahead_ms;
    uint64_t up_cut_ns, down_cut_ns; /* until then nothing reaches the broker, or comes from it */
    uint64_t store_cut_ns;           /* nor the stores; */
    bool store_hears;                /* only their answers are lost */
    struct gb_timer restart;
    struct sim_world *world;
};

struct sim_bridge;
struct sim_broker;
struct sim_store;
struct sim_dlq;
struct sim_cluster;

struct sim_world {
    uint64_t seed;
    enum sim_fault fault;
    bool trace;
    struct sim_cfg cfg;
    struct gb_reactor *reactor; /* the world's events and its random numbers */
    uint64_t now_ns;
    uint64_t hash;
    uint64_t events;
    bool healed;
    char violation[SIM_VIOLATION_MAX]; /* empty: none */

    struct sim_message *messages;
    uint32_t published;
    struct sim_row *rows;
    size_t row_count, row_capacity;
    uint64_t store_turn;    /* counts persists and claims */
    uint64_t allowed_drops; /* counted by processes that are gone */
    uint64_t used_drops;    /* acknowledgements that only a drop explains */

    struct sim_broker *broker;
    struct sim_store *store;
    struct sim_dlq *dlq;
    struct gb_list dead_conns;
    struct sim_bridge *bridge;    /* NULL while the process is down, and in a cluster */
    struct sim_host host;         /* the one bridge's */
    struct sim_cluster *cluster;  /* NULL: one bridge alone */
    int64_t duration_ns;          /* of a cluster's faults */
    const struct sim_host *actor; /* whose doing the trace shows; NULL: the world's */
    uint64_t mark[SIM_LEGS_MAX];  /* the highest token that the outbox let through */
    uint32_t starts, crashes, graceful_stops;
    bool refiltered; /* processes that start from now on have the other subscriptions */
    uint32_t accepted_total;
    struct gb_timer publish, trouble, restart;
    uint64_t store_full_until_ns;
    uint64_t net_stalled_until_ns;
    uint64_t sink_down_until_ns;
};

struct sim_report {
    uint64_t hash, events;
    uint64_t sim_ns;
    uint32_t messages, crashes, accepted;
    char violation[SIM_VIOLATION_MAX];
};
/* Runs one seed from start to end. Never fails from the outside; see report->violation. */
void sim_run(uint64_t seed, enum sim_fault fault, bool trace, struct sim_report *report);
/* The same, with the drawn configuration changed before anything starts: scenarios. */
void sim_run_as(uint64_t seed, enum sim_fault fault, bool trace, void (*change)(struct sim_cfg *c),
                struct sim_report *report);

/* --- for the parts of the world --- */

int64_t sim_wall_ms(const struct sim_world *w);
uint64_t sim_below(struct sim_world *w, uint64_t bound);
/* True with `parts` in a thousand, never once the world is healed. */
bool sim_chance(struct sim_world *w, uint32_t parts);
/* A delay in [1 us, max]; short when healed. */
uint64_t sim_delay_ns(struct sim_world *w, int64_t max_ns);
/* One line of the trace; part of the hash. */
void sim_trace(struct sim_world *w, const char *what, uint64_t a, uint64_t b);
/* The first one stays. */
__attribute__((format(printf, 2, 3))) void sim_violate(struct sim_world *w, const char *format,
                                                       ...);
/* The index in a payload; false when it is no message of this world. */
bool sim_parse_payload(const struct sim_world *w, struct gb_bytes payload, uint32_t *index);
void sim_cfg_draw(struct sim_world *w);
/* Builds and takes down what surrounds the bridges. */
void sim_world_build(struct sim_world *w, void (*change)(struct sim_cfg *c));
void sim_world_tear_down(struct sim_world *w);
void sim_world_log_to_trace(struct sim_world *w);
/* An instant of the host's monotonic clock, and back; UINT64_MAX and 0 stay. */
uint64_t sim_host_world_ns(const struct sim_host *h, uint64_t mono_ns);
uint64_t sim_host_mono_ns(const struct sim_host *h);
int64_t sim_host_wall_ms(const struct sim_host *h);
/* The process ended by itself or was killed: tears it down and starts another one later. */
void sim_world_bridge_died(struct sim_world *w, const char *why);

#endif
