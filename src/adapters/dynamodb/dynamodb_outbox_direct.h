#ifndef GB_ADAPTERS_DYNAMODB_DYNAMODB_OUTBOX_DIRECT_H
#define GB_ADAPTERS_DYNAMODB_DYNAMODB_OUTBOX_DIRECT_H

#include "adapters/dynamodb/dynamodb_outbox_parts.h"

/* Records that are put already claimed and enter no index, while this process holds their
 * partition (docs/decisions/0623). What an index would tell of them stands here: from the put until
 * they are settled, or until they have left for the indexes and are ordinary records.
 * Owns:   an entry its texts and one reference of the envelope; the store owns the entries.
 * Thread: loop thread only.
 * Errors: see the functions. */

enum gb_dbox_direct_state {
    GB_DBOX_DIRECT_PUTTING = 0, /* its put is under way */
    GB_DBOX_DIRECT_QUEUED,      /* as good as pending: the next claim may hand it out */
    GB_DBOX_DIRECT_HANDED,      /* claimed */
    GB_DBOX_DIRECT_LEAVING,     /* on its way into the indexes, by updates that may have to be
                                   repeated */
};
struct gb_dbox_direct {
    struct gb_list_node node; /* in a list of its partition, but for PUTTING */
    struct gb_dbox_partition *partition;
    /* `replay_count` and `first_attempted_at` as of its hand-outs; those of the row run ahead */
    struct gb_outbox_record record;
    struct gb_bytes sort_key;
    struct gb_token token; /* under which the row is claimed */
    int64_t handed_ms;
    enum gb_dbox_direct_state state;
    bool pending; /* LEAVING: becomes pending */
    bool running; /* LEAVING: an update of it is under way */
    bool indexed; /* HANDED: an ordinary record with an ordering key, here to hold back its key */
    size_t bytes;
    char memory[];
};

/* An entry for a record that may be put directly now; NULL: the ordinary way. */
struct gb_dbox_direct *gb_dbox_direct_begin(struct gb_dbox *s, struct gb_dbox_partition *p,
                                            const struct gb_outbox_record *record);
/* One for a row that is in no index and that nobody here knows: LEAVING. Takes a reference of the
 * envelope. NULL: out of memory. */
struct gb_dbox_direct *gb_dbox_direct_stray(struct gb_dbox *s, struct gb_dbox_partition *p,
                                            const struct gb_dbox_row *row);
/* Remembers an ordinary record that was claimed just now, if it has an ordering key. False: there
 * is no room, so its key is not known to be held. */
bool gb_dbox_direct_hold(struct gb_dbox *s, struct gb_dbox_partition *p,
                         const struct gb_dbox_row *row, const struct gb_token *token);
/* Its put was seen to succeed. True: the partition is still held, the entry is QUEUED. False: it is
 * LEAVING, and nobody must hear of the success before it is in the indexes. */
bool gb_dbox_direct_landed(struct gb_dbox *s, struct gb_dbox_direct *e);
void gb_dbox_direct_free(struct gb_dbox *s, struct gb_dbox_direct *e);
struct gb_dbox_direct *gb_dbox_direct_find(const struct gb_dbox *s, struct gb_bytes id);
/* Pending for whoever asks: it can't be settled. */
bool gb_dbox_direct_is_pending(const struct gb_dbox_direct *e);
/* Whether `token` is what this process has over the partition now. */
bool gb_dbox_direct_holds(const struct gb_dbox *s, const struct gb_dbox_partition *p,
                          const struct gb_token *token);
/* Whether its release may leave it claimed, for its next hand-out by this process. */
bool gb_dbox_direct_may_stay(const struct gb_dbox *s, const struct gb_dbox_direct *e);
/* A released one, whose update kept it claimed for the next hand-out. */
void gb_dbox_direct_requeue(struct gb_dbox_direct *e);
/* The oldest that no handed-out record of their key precedes; at most `limit`. */
struct gb_err gb_dbox_direct_hand_out(struct gb_dbox *s, struct gb_dbox_partition *p,
                                      uint32_t limit, struct gb_outbox_batch **out);
/* How many of the queue are older than all that may be pending in the indexes, up to `limit`. */
uint32_t gb_dbox_direct_ready(const struct gb_dbox_partition *p, uint32_t limit);

/* A record came into the indexes, as pending or as one that may be reclaimed. */
void gb_dbox_note_indexed(struct gb_dbox_partition *p, const struct gb_outbox_record *record);
void gb_dbox_note_released(struct gb_dbox_partition *p); /* some record */

/* --- rows that stay as they are (docs/decisions/0203); the log is rate-limited --- */

void gb_dbox_log_corrupt(struct gb_dbox *s, const struct gb_err *err);
/* One that can be read, but that DynamoDB does not update: logged, and as an error that names
 * it. */
struct gb_err gb_dbox_refused(struct gb_dbox *s, struct gb_bytes sort_key, enum gb_code code,
                              const char *why);

/* --- leaving (dynamodb_outbox_mend.c) --- */

enum gb_dbox_leave {
    GB_DBOX_LEAVE_QUEUED, /* all that is queued */
    GB_DBOX_LEAVE_DUE,    /* queued, and to expire before `ms` */
    GB_DBOX_LEAVE_STALE,  /* handed out before `ms` */
    GB_DBOX_LEAVE_ALL,    /* queued and handed out */
};
void gb_dbox_leave(struct gb_dbox *s, struct gb_dbox_partition *p, enum gb_dbox_leave which,
                   int64_t ms);

/* What a task embeds to bring the leaving records of a partition into the indexes. */
enum { GB_DBOX_MEND_LANES = 8 };
typedef void gb_dbox_mended_fn(struct gb_dbox_task *t, void *arg);
struct gb_dbox_mend { /* all private */
    gb_dbox_mended_fn *done;
    void *arg;
    struct gb_dbox_partition *partition;
    struct gb_dbox_request requests[GB_DBOX_MEND_LANES];
    struct gb_dbox_direct *entries[GB_DBOX_MEND_LANES];
    unsigned running;
    struct gb_err failure;
    struct gb_str scratch;
};
/* Those of the task's partition, then `done`; a failure ends the task instead. */
void gb_dbox_mend_run(struct gb_dbox_task *t, struct gb_dbox_mend *m, gb_dbox_mended_fn *done,
                      void *arg);
void gb_dbox_mend_deinit(struct gb_dbox_mend *m);
/* The update of one entry: writes the call; when it is done, frees the entry, or keeps it for
 * another try. */
void gb_dbox_mend_write(struct gb_dbox *s, struct gb_dynamodb_call *call, struct gb_dbox_direct *e,
                        struct gb_str *scratch);
struct gb_err gb_dbox_mend_ended(struct gb_dbox *s, struct gb_dbox_direct *e,
                                 const struct gb_dynamodb_call *call);
/* At the store's end: all there are; `done` when that is over or its time is. */
void gb_dbox_mend_all(struct gb_dbox *s, gb_done_fn *done);

/* --- sweep (dynamodb_outbox_sweep.c) --- */

/* Finds rows that are in no index and that nobody here knows, and brings them there, beside the
 * claims. */
bool gb_dbox_sweep_due(const struct gb_dbox *s, const struct gb_dbox_partition *p);
/* What a claim embeds. */
struct gb_dbox_sweep_wait {
    void (*done)(struct gb_dbox_task *t);
    /* private */
    struct gb_list_node node;
    struct gb_dbox_task *task; /* NULL: has not waited */
};
/* Begins one, or goes on with one that broke off. `done` once a page is through, which most
 * partitions are then, or when it breaks off. */
void gb_dbox_sweep_run(struct gb_dbox_task *t, struct gb_dbox_sweep_wait *wait);
void gb_dbox_sweep_wait_deinit(struct gb_dbox_sweep_wait *wait);
/* Of another owner, or at the store's close: it need not be through. */
void gb_dbox_sweep_end(struct gb_dbox_partition *p);
/* A row may be there that nobody knows: look once it would be stale. */
void gb_dbox_sweep_later(struct gb_dbox *s, struct gb_dbox_partition *p);

#endif
