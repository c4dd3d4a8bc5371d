#ifndef GB_ADAPTERS_SQS_SQS_SENDER_PARTS_H
#define GB_ADAPTERS_SQS_SQS_SENDER_PARTS_H

#include "adapters/sqs/sqs_batch.h"

/* The sender's inside, shared by sqs_sender.c (life, sends), sqs_requests.c (forming and settling
 * requests) and sqs_queue.c (names, address, client).
 * Owns:   see sqs_sender.h.
 * Thread: loop thread only.
 * Errors: see sqs_sender.h. */
struct sqs_sender;

struct gb_sqs_slot {
    struct gb_list_node node; /* idle or busy list */
    struct sqs_sender *sender;
    struct gb_aws_call call; /* keeps its buffers from request to request */
    struct gb_sqs_batch batch;
    uint64_t started_ns;
};

struct sqs_sender {
    struct gb_sender base;
    struct gb_sqs_sender_cfg cfg; /* texts are owned copies */
    struct gb_sqs_rules rules;
    /* queue and client, made at first use */
    struct gb_aws_client *client;
    char *url; /* NULL: to be resolved */
    struct gb_aws_call resolve;
    bool resolving;
    struct gb_sqs_grace grace;
    struct gb_metric *send_latency, *batch_latency, *dropped;
    /* sends that wait: gb_op.node of struct gb_send */
    struct gb_list batches; /* of drain cycles */
    struct gb_list directs;
    uint64_t directs_since_ns; /* the oldest of `directs` came then, or later */
    /* since the oldest of `directs` came, or the last batch of them went */
    bool request_ended;
    /* requests */
    struct gb_sqs_slot *slots;
    struct gb_list idle, busy;
    struct gb_str scratch;
    struct gb_task turn_end;
    struct gb_timer linger_timer, deadline_timer;
    /* closing */
    bool closing;
    struct gb_op *close_op;
    struct gb_timer close_timer;
};

struct gb_send *gb_sqs_send_of(struct gb_list_node *node);
uint64_t gb_sqs_now(const struct sqs_sender *s);
void gb_sqs_wake(struct sqs_sender *s); /* forms requests at the end of the turn */
/* Finishes every send that waits. */
void gb_sqs_fail_waiting(struct sqs_sender *s, struct gb_err err);

/* sqs_queue.c */
/* Options that contradict each other (spec 04 B9). */
struct gb_err gb_sqs_check_options(const struct gb_sqs_sender_cfg *cfg, const char *url);
/* True when client and URL are there. Else a GetQueueUrl is under way, or all waiting sends have
 * failed. */
bool gb_sqs_prepare(struct sqs_sender *s);
/* Spec 04 B2. GB_INVALID_TOPIC. */
struct gb_err gb_sqs_check_address(const struct sqs_sender *s, struct gb_bytes address);
/* Adds the authorization grace to a failed call's result (spec 04 B11). */
struct gb_err gb_sqs_with_grace(struct sqs_sender *s, const struct gb_aws_call *call);

/* sqs_requests.c */
void gb_sqs_form_requests(struct sqs_sender *s);

#endif
