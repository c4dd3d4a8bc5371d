#include <inttypes.h>
#include <stdio.h>

#include "blueprint/validate.h"

/* Options of SQS receivers and senders (spec 04 B2, B3, B9). */

enum { GROUP_ID_MAX = 128, QUEUE_PREFIX_MAX = 80, TAGS_MAX = 50, TAG_KEY_MAX = 128 };
enum { TAG_VALUE_MAX = 256 };

static size_t characters(const char *text)
{
    size_t count = 0;
    for (const char *p = text; *p != '\0'; p++) count += ((unsigned char)*p & 0xC0) != 0x80;
    return count;
}

static void check_tags(struct gb_check *c, const struct gb_bp_map *tags)
{
    if (tags->count > TAGS_MAX) {
        gb_check_error(c, GB_RULE_Q1, "options.queue_tags",
                       "options.queue_tags has %zu tags; AWS allows 50, remove some", tags->count);
    }
    for (size_t i = 0; i < tags->count; i++) {
        size_t key = characters(tags->items[i].key);
        size_t value = characters(tags->items[i].value);
        if (key >= 1 && key <= TAG_KEY_MAX && value <= TAG_VALUE_MAX) continue;
        gb_check_error(c, GB_RULE_Q1, "options.queue_tags",
                       "options.queue_tags: the tag \"%.*s\" has a key of %zu and a value of %zu "
                       "characters; AWS allows keys of 1-128 and values of at most 256, correct it",
                       GB_SHOWN_MAX, tags->items[i].key, key, value);
    }
}

static void check_prefix(struct gb_check *c, const char *prefix, bool tags)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    if (!tags) {
        gb_check_error(
            c, GB_RULE_Q1, "options.queue_name_prefix",
            "options.queue_name_prefix \"%.*s\" is accepted only with queue_tags; remove "
            "it",
            GB_SHOWN_MAX, prefix);
    }
    size_t size = strlen(prefix);
    bool named = true;
    for (const char *p = prefix; named && *p != '\0'; p++) {
        named = strchr(letters, *p) != NULL || strchr("._-", *p) != NULL;
    }
    if (size > QUEUE_PREFIX_MAX || !named) {
        gb_check_error(c, GB_RULE_Q1, "options.queue_name_prefix",
                       "options.queue_name_prefix \"%.*s\" has %zu characters; write at most %d of "
                       "A-Z, a-z, 0-9, \".\", \"_\" and \"-\"",
                       GB_SHOWN_MAX, prefix, size, QUEUE_PREFIX_MAX);
    }
}

static void check_queue(struct gb_check *c, const struct gb_bp_sqs_queue *q)
{
    bool tags = q->queue_tags.count > 0;
    bool url = gb_check_written(c, "queue_url");
    bool name = gb_check_written(c, "queue_name");
    if (!url && !name && !tags && !q->queue_tags.broken) {
        gb_check_error(c, GB_RULE_Q1, "",
                       "options.queue_url is required (or queue_name, or queue_tags); add one of "
                       "them, it names the queue");
    }
    if (tags && (url || name)) {
        gb_check_error(
            c, GB_RULE_Q1, "queue_tags",
            "options.queue_tags excludes queue_url and queue_name; name the queue in one "
            "way, remove the others");
    }
    if (url && name) {
        gb_check_error(
            c, GB_RULE_Q1, "queue_name",
            "options.queue_url and options.queue_name are mutually exclusive; remove one "
            "of the two");
    }
}

/* Keys of `options`, in which queue_tags and the like lie flat. */
static void check_queue_options(struct gb_check *c, const struct gb_node *options,
                                const struct gb_bp_sqs_queue *q)
{
    struct gb_check at = *c;
    if (!gb_check_readable(options)) return;
    if (options != NULL) at.entry = options;
    check_queue(&at, q);
    check_tags(c, &q->queue_tags);
    if (q->queue_name_prefix != NULL) {
        check_prefix(c, q->queue_name_prefix, q->queue_tags.count > 0 || q->queue_tags.broken);
    }
}

void gb_validate_sqs_receiver(struct gb_check *c, const struct gb_bp_receiver *receiver)
{
    const struct gb_bp_sqs_receiver *r = &receiver->sqs;
    check_queue_options(c, receiver->raw, &r->queue);
    bool known = !r->poll_backoff_max.broken && !r->poll_backoff_initial.broken;
    if (known && r->poll_backoff_max.ns < r->poll_backoff_initial.ns) {
        char most[GB_DURATION_TEXT_MAX];
        char first[GB_DURATION_TEXT_MAX];
        gb_duration_print(r->poll_backoff_max.ns, most);
        gb_duration_print(r->poll_backoff_initial.ns, first);
        gb_check_error(c, GB_RULE_Q2,
                       r->poll_backoff_max.given ? "options.poll_backoff_max"
                                                 : "options.poll_backoff_initial",
                       "options.poll_backoff_max %s is less than options.poll_backoff_initial, %s; "
                       "raise the former or lower the latter",
                       most, first);
    }
    if (r->poison_max_receives.value == 1 && !r->poison_drop_without_dlq.value &&
        !r->poison_drop_without_dlq.broken) {
        gb_check_error(c, GB_RULE_Q3, "options.poison_max_receives",
                       "options.poison_max_receives: 1 deletes every message that is received "
                       "once; it needs poison_drop_without_dlq: true, or a larger number");
    }
    gb_validate_credentials_uri(c, r->credentials_uri);
}

static bool is_group_id(const char *text)
{
    for (const char *p = text; *p != '\0'; p++) {
        if (*p < 0x21 || *p > 0x7e) return false;
    }
    return strlen(text) <= GROUP_ID_MAX;
}

/* The end of a name, which decides whether the queue is FIFO; `cut` goes before it. */
static const char *end_of(const char *name, const char **cut)
{
    size_t size = strlen(name);
    bool whole = size <= GB_SHOWN_MAX;
    *cut = whole ? "" : "...";
    return whole ? name : name + size - GB_SHOWN_MAX;
}

/* Spec 04 B9. */
static void check_fifo(struct gb_check *c, const struct gb_bp_sqs_sender *s)
{
    const struct gb_bp_sqs_queue *q = &s->queue;
    bool asked = s->fifo.value || s->message_group_id != NULL;
    bool maybe = s->fifo.broken || (s->message_group_id == NULL && s->node != NULL &&
                                    gb_node_get(s->node, "message_group_id") != NULL);
    const char *name = q->queue_url != NULL ? q->queue_url : q->queue_name;
    bool suffix = gb_blueprint_is_fifo_name(name);
    const char *cut = "";
    const char *shown = name == NULL ? "" : end_of(name, &cut);
    if (suffix && !asked && !maybe) {
        gb_check_error(c, GB_RULE_Q4,
                       q->queue_url != NULL ? "options.queue_url" : "options.queue_name",
                       "options.%s \"%s%s\" is a .fifo queue, where every message has a group; it "
                       "needs fifo: true or message_group_id, add one",
                       q->queue_url != NULL ? "queue_url" : "queue_name", cut, shown);
    }
    if (asked && name != NULL && !suffix) {
        const char *key = s->fifo.value ? "fifo" : "message_group_id";
        char path[GB_CHECK_PATH_MAX];
        (void)snprintf(path, sizeof path, "options.%s", key);
        gb_check_error(c, GB_RULE_Q4, path,
                       "options.%s needs a queue whose name ends in .fifo, and \"%s%s\" does not; "
                       "remove it or name another queue",
                       key, cut, shown);
    }
    if ((asked || suffix) && s->delay_seconds.value > 0) {
        gb_check_error(c, GB_RULE_Q4, "options.delay_seconds",
                       "options.delay_seconds %" PRId64 " is refused on a FIFO queue, which delays "
                       "as a whole; remove it and set the delay of the queue",
                       s->delay_seconds.value);
    }
    if (s->message_group_id != NULL && !is_group_id(s->message_group_id)) {
        gb_check_error(c, GB_RULE_Q4, "options.message_group_id",
                       "options.message_group_id \"%.*s\" must be at most %d letters, digits and "
                       "punctuation; correct it",
                       GB_SHOWN_MAX, s->message_group_id, GROUP_ID_MAX);
    }
}

void gb_validate_sqs_sender(struct gb_check *c, const struct gb_bp_sender *sender)
{
    check_queue_options(c, sender->raw, &sender->sqs.queue);
    check_fifo(c, &sender->sqs);
    gb_validate_credentials_uri(c, sender->sqs.credentials_uri);
}
