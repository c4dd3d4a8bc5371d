#ifndef GB_ADAPTERS_DYNAMODB_DYNAMODB_OUTBOX_PUT_H
#define GB_ADAPTERS_DYNAMODB_DYNAMODB_OUTBOX_PUT_H

#include "adapters/dynamodb/dynamodb_outbox_direct.h"

/* One record of a persist, from its sequence number to its put.
 * Owns:   a job belongs to its persist; a line and a taking to the store while they are needed.
 * Thread: loop thread only.
 * Errors: a taking's failure ends the tasks that wait for it. */

enum gb_dbox_job_state {
    GB_DBOX_JOB_WAITING = 0,
    GB_DBOX_JOB_READY,
    GB_DBOX_JOB_SENT,
    GB_DBOX_JOB_DONE
};

/* Puts of one ordering key go one after the other, over all persists, so that none is claimed
 * before an older one of its key is there. */
struct gb_dbox_line {
    struct gb_list jobs; /* the first is at work */
    struct gb_str name;  /* partition and key */
};
struct gb_dbox_job {
    struct gb_dbox_task *task;
    struct gb_dbox_partition *partition;
    struct gb_outbox_record record; /* with created_at and seq */
    struct gb_dbox_direct *direct;  /* its entry while it is put that way, or what must be indexed
                                       before it ends; NULL: none */
    bool indexing_own;              /* the latter: it is this record itself */
    struct gb_dbox_line *line;      /* NULL: keyless */
    struct gb_list_node line_node;
    struct gb_list_node node; /* in partition->seq_waiting or s->ready */
    enum gb_dbox_job_state state;
    void (*number_failed)(struct gb_dbox_job *job, struct gb_err err);
};

/* Gives the job its number now or later; it then stands in s->ready when its line lets it. */
struct gb_err gb_dbox_job_start(struct gb_dbox *s, struct gb_dbox_job *job);
/* Out of all queues; the next of its line may become ready. */
void gb_dbox_job_leave(struct gb_dbox *s, struct gb_dbox_job *job);
/* Sends what is ready, as slots are free (dynamodb_outbox_persist.c). */
void gb_dbox_puts_dispatch(struct gb_dbox *s);

#endif
