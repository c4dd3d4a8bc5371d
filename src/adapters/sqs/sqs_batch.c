#include "adapters/sqs/sqs_batch.h"

#include "base/assert.h"

void gb_sqs_batch_init(struct gb_sqs_batch *b, size_t limit)
{
    GB_ASSERT(limit >= 1 && limit <= GB_SQS_ENTRIES_MAX);
    b->count = 0;
    b->next = 0;
    b->sent = 0;
    b->limit = limit;
    b->bytes = 0;
    b->single = false;
}

bool gb_sqs_batch_has_group(const struct gb_sqs_batch *b, uint64_t group)
{
    for (size_t i = b->next; i < b->count; i++) {
        if (b->sends[i] != NULL && b->groups[i] == group) return true;
    }
    return false;
}

bool gb_sqs_batch_add(struct gb_sqs_batch *b, struct gb_send *send, size_t bytes, uint64_t group)
{
    if (b->count == b->limit) return false;
    if (b->count > 0 && bytes > GB_SQS_BATCH_BYTES_MAX - b->bytes) return false;
    b->sends[b->count] = send;
    b->groups[b->count] = group;
    b->count++;
    /* A first entry may be larger than a batch (max_message_bytes raised): it goes alone. */
    b->bytes = bytes > GB_SQS_BATCH_BYTES_MAX ? GB_SQS_BATCH_BYTES_MAX : b->bytes + bytes;
    return true;
}

bool gb_sqs_batch_settled(const struct gb_sqs_batch *b)
{
    for (size_t i = b->next; i < b->count; i++) {
        if (b->sends[i] != NULL) return false;
    }
    return true;
}

/* --- writing --- */

void gb_sqs_batch_begin(struct gb_sqs_batch *b, const struct gb_sqs_request *q,
                        struct gb_json_writer *w, bool single)
{
    b->single = single;
    gb_str_clear(q->body);
    gb_json_w_init(w, q->body);
    gb_json_w_object(w);
    gb_json_w_key(w, "QueueUrl");
    gb_json_w_string_c(w, q->queue_url);
    if (single) return;
    gb_json_w_key(w, "Entries");
    gb_json_w_array(w);
}

void gb_sqs_batch_write(struct gb_sqs_batch *b, const struct gb_sqs_request *q,
                        struct gb_json_writer *w, size_t index, const struct gb_sqs_message *m)
{
    char id[2] = {(char)('0' + (index - b->next)), '\0'};
    if (!b->single) {
        gb_json_w_object(w);
        gb_json_w_key(w, "Id");
        gb_json_w_string_c(w, id);
    }
    gb_sqs_message_write(m, q->rules, w, q->scratch, &b->digests[index]);
    if (!b->single) gb_json_w_object_end(w);
}

void gb_sqs_batch_end(struct gb_sqs_batch *b, struct gb_json_writer *w)
{
    if (!b->single) gb_json_w_array_end(w);
    gb_json_w_object_end(w);
}

/* Entries that were cancelled or timed out meanwhile leave no gap. */
static void close_gaps(struct gb_sqs_batch *b)
{
    size_t to = b->next;
    for (size_t from = b->next; from < b->count; from++) {
        if (b->sends[from] == NULL) continue;
        b->sends[to] = b->sends[from];
        b->groups[to] = b->groups[from];
        to++;
    }
    b->count = to;
}

struct gb_err gb_sqs_batch_rewrite(struct gb_sqs_batch *b, const struct gb_sqs_request *q)
{
    struct gb_json_writer w;
    close_gaps(b);
    size_t left = b->count - b->next;
    b->sent = left < b->limit ? left : b->limit;
    GB_ASSERT(b->sent > 0);
    gb_sqs_batch_begin(b, q, &w, b->sent == 1);
    for (size_t i = b->next; i < b->next + b->sent; i++) {
        struct gb_sqs_message m;
        struct gb_err err = gb_sqs_message_plan(b->sends[i]->envelope, q->rules, q->scratch, &m);
        if (gb_failed(err)) return err; /* planned before: only memory can be short */
        gb_sqs_batch_write(b, q, &w, i, &m);
    }
    gb_sqs_batch_end(b, &w);
    return gb_str_check(q->body, "SQS request");
}

/* --- settling --- */

static void settle(struct gb_sqs_batch *b, size_t index, struct gb_err result)
{
    struct gb_send *send = b->sends[index];
    b->sends[index] = NULL;
    if (send != NULL) gb_op_finish(&send->op, result);
}

static void pass_request(struct gb_sqs_batch *b)
{
    b->next += b->sent;
    b->sent = 0;
}

static bool digest_ok(struct gb_bytes answered, const char *ours)
{
    return answered.size == 0 || gb_bytes_equal_nocase(answered, gb_bytes_c(ours));
}

static struct gb_err result_of(const struct gb_sqs_entry *e, const struct gb_sqs_digests *digests)
{
    if (e->outcome == GB_SQS_FAILED)
        return gb_sqs_classify_entry(e->code, e->sender_fault, e->message);
    if (e->outcome == GB_SQS_MISSING)
        return gb_err(GB_UNAVAILABLE, "SQS: the answer does not name this entry");
    if (!digest_ok(e->md5_body, digests->body) ||
        !digest_ok(e->md5_attributes, digests->attributes))
        return gb_err(GB_UNAVAILABLE, "SQS: the MD5 of the answer is not that of the message");
    return gb_ok();
}

void gb_sqs_batch_answered(struct gb_sqs_batch *b, struct gb_bytes answer)
{
    struct gb_sqs_entry entries[GB_SQS_ENTRIES_MAX];
    struct gb_err err = b->single ? gb_sqs_read_send(answer, &entries[0])
                                  : gb_sqs_read_batch(answer, b->sent, entries);
    if (gb_failed(err)) {
        gb_sqs_batch_failed(b, err);
        return;
    }
    for (size_t i = 0; i < b->sent; i++)
        settle(b, b->next + i, result_of(&entries[i], &b->digests[b->next + i]));
    pass_request(b);
}

void gb_sqs_batch_failed(struct gb_sqs_batch *b, struct gb_err err)
{
    for (size_t i = 0; i < b->sent; i++) settle(b, b->next + i, err);
    pass_request(b);
}

bool gb_sqs_batch_halve(struct gb_sqs_batch *b, const struct gb_aws_error *e)
{
    if (b->sent < 2 || !gb_sqs_is_batch_too_long(e)) return false;
    b->limit = (b->sent + 1) / 2;
    return true;
}
