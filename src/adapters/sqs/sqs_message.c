#include "adapters/sqs/sqs_message.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/duration.h"
#include "domain/reserved.h"

/* --- body and FIFO ids --- */

static struct gb_err plan_body(const struct gb_envelope *e, const struct gb_sqs_rules *rules,
                               struct gb_sqs_message *m)
{
    bool acceptable = rules->encoding != GB_ENCODING_BASE64 && gb_utf8_sqs_acceptable(e->payload);
    if (!acceptable && rules->encoding == GB_ENCODING_TEXT) {
        return gb_err(GB_INVALID_PAYLOAD,
                      "payload is empty or holds characters that SQS refuses; payload_encoding "
                      "auto or base64 can send it");
    }
    m->base64 = !acceptable;
    m->size = e->payload.size;
    if (m->base64) m->size = e->payload.size == 0 ? 1 : (e->payload.size + 2) / 3 * 4;
    return gb_ok();
}

static bool id_ok(struct gb_bytes id)
{
    if (id.size == 0 || id.size > GB_SQS_ID_MAX) return false;
    for (size_t i = 0; i < id.size; i++) {
        if (id.data[i] <= ' ' || id.data[i] > '~') return false;
    }
    return true;
}

/* Lower-case hex MD5 of payload, subject, id: the same on every retry (spec 04 B9). */
static struct gb_err dedup_of_content(const struct gb_envelope *e, struct gb_str *scratch,
                                      struct gb_sqs_message *m)
{
    gb_str_clear(scratch);
    gb_str_append(scratch, e->payload);
    gb_str_append(scratch, e->subject);
    gb_str_append(scratch, e->id);
    if (e->id.size == 0) gb_str_append_i64(scratch, e->created_at_ms);
    struct gb_err err = gb_str_check(scratch, "deduplication id");
    if (gb_failed(err)) return err;
    gb_md5_hex(gb_str_bytes(scratch), m->dedup_text);
    m->dedup = gb_bytes(m->dedup_text, GB_MD5_HEX - 1);
    return gb_ok();
}

struct gb_bytes gb_sqs_message_group(const struct gb_envelope *e, const struct gb_sqs_rules *rules)
{
    struct gb_bytes key = gb_envelope_text(e, GB_H_ORDERING_KEY);
    return key.size > 0 ? key : gb_bytes_c(rules->group);
}

static struct gb_err plan_fifo(const struct gb_envelope *e, const struct gb_sqs_rules *rules,
                               struct gb_str *scratch, struct gb_sqs_message *m)
{
    m->group = gb_sqs_message_group(e, rules);
    if (m->group.size == 0) {
        return gb_err(GB_INVALID_PAYLOAD, "FIFO queue: the message has no " GB_H_ORDERING_KEY
                                          " and the sender no message_group_id");
    }
    if (!id_ok(m->group)) {
        return gb_err(GB_INVALID_PAYLOAD, "FIFO queue: the group (" GB_H_ORDERING_KEY
                                          ") must be 1-128 letters, digits or punctuation");
    }
    m->dedup = gb_envelope_text(e, GB_H_DEDUP_ID);
    if (m->dedup.size == 0) return dedup_of_content(e, scratch, m);
    if (!id_ok(m->dedup)) {
        return gb_err(GB_INVALID_PAYLOAD,
                      "FIFO queue: " GB_H_DEDUP_ID " must be 1-128 letters, digits or punctuation");
    }
    return gb_ok();
}

/* --- attributes --- */

enum { NEVER = -1, RANK_TRACE = 0, RANK_OWN = 1, RANK_BRIDGE = 2 };

static bool name_legal(struct gb_bytes name)
{
    if (name.size == 0 || name.size > 256) return false;
    if (name.data[0] == '.' || name.data[name.size - 1] == '.') return false;
    for (size_t i = 0; i < name.size; i++) {
        uint8_t c = name.data[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!plain && c != '_' && c != '-' && c != '.') return false;
        if (c == '.' && name.data[i - 1] == '.') return false;
    }
    return !gb_bytes_starts_with_nocase(name, "AWS.") &&
           !gb_bytes_starts_with_nocase(name, "Amazon.");
}

static int rank_of_bridge(struct gb_bytes name)
{
    if (gb_bytes_equal_nocase(name, gb_bytes_c(GB_H_IDEMPOTENCY_KEY))) return RANK_TRACE;
    if (gb_bytes_equal_nocase(name, gb_bytes_c(GB_H_DEDUP_ID)) ||
        gb_bytes_equal_nocase(name, gb_bytes_c(GB_H_ORDERING_KEY)))
        return NEVER;
    return RANK_BRIDGE;
}

/* Spec 04 B9 attributes 1-3. */
static int rank_of(struct gb_bytes name)
{
    if (!name_legal(name)) return NEVER;
    switch (gb_reserved_kind(name)) {
    case GB_RESERVED_NONE:
        break;
    case GB_RESERVED_BRIDGE:
        return rank_of_bridge(name);
    case GB_RESERVED_INTERNAL:
    case GB_RESERVED_OTHER:
        return NEVER;
    }
    if (gb_bytes_equal_c(name, "traceparent") || gb_bytes_equal_c(name, "tracestate"))
        return RANK_TRACE;
    if (gb_bytes_starts_with_nocase(name, "sqs.") || gb_bytes_equal_c(name, "Subject") ||
        gb_is_redelivery_counter(name))
        return NEVER;
    return RANK_OWN;
}

struct candidate {
    const struct gb_header *header;
    int rank;
};

static int compare_candidates(const void *a, const void *b)
{
    const struct candidate *x = a;
    const struct candidate *y = b;
    if (x->rank != y->rank) return x->rank - y->rank;
    return gb_bytes_compare(x->header->name, y->header->name);
}

static size_t collect(const struct gb_envelope *e, struct candidate *out)
{
    size_t count = 0;
    for (size_t i = 0; i < e->header_count; i++) {
        int rank = rank_of(e->headers[i].name);
        if (rank == NEVER) continue;
        /* Sorted while collecting: envelopes have a handful of headers; at most 1,024. */
        struct candidate c = {&e->headers[i], rank};
        size_t at = count++;
        while (at > 0 && compare_candidates(&out[at - 1], &c) > 0) {
            out[at] = out[at - 1];
            at--;
        }
        out[at] = c;
    }
    return count;
}

static void set_text(struct gb_sqs_attribute *a, int size)
{
    GB_ASSERT(size > 0 && (size_t)size < sizeof a->text);
    a->value = gb_bytes(a->text, (size_t)size);
}

/* Spec 04 B9 attributes 4; false: the value can't be sent. */
static bool set_value(struct gb_sqs_attribute *a, const struct gb_value *v)
{
    a->type = GB_SQS_STRING;
    switch (v->kind) {
    case GB_VALUE_TEXT:
        a->value = v->text;
        return gb_utf8_sqs_acceptable(v->text);
    case GB_VALUE_INT:
        a->type = GB_SQS_NUMBER;
        set_text(a, snprintf(a->text, sizeof a->text, "%lld", (long long)v->number));
        return true;
    case GB_VALUE_DECIMAL:
        a->type = GB_SQS_NUMBER;
        a->value = v->text;
        return gb_utf8_sqs_acceptable(v->text);
    case GB_VALUE_BOOL:
        set_text(a, snprintf(a->text, sizeof a->text, "%s", v->number != 0 ? "true" : "false"));
        return true;
    case GB_VALUE_TIME:
        gb_time_print(v->number, a->text);
        a->value = gb_bytes_c(a->text);
        return true;
    case GB_VALUE_BYTES:
        a->type = GB_SQS_BINARY;
        a->value = v->text;
        return v->text.size > 0;
    }
    return false;
}

enum { TYPE_SIZE = 6 }; /* "String", "Number", "Binary" */

static size_t attribute_size(const struct gb_sqs_attribute *a)
{
    return a->name.size + TYPE_SIZE + a->value.size;
}

static void add_fixed(struct gb_sqs_message *m, const char *name, struct gb_bytes value)
{
    struct gb_sqs_attribute *a = &m->attributes[m->attribute_count++];
    a->name = gb_bytes_c(name);
    a->type = GB_SQS_STRING;
    a->value = value;
    m->size += attribute_size(a);
}

static void add_headers(const struct gb_envelope *e, const struct gb_sqs_rules *rules,
                        struct gb_sqs_message *m)
{
    struct candidate candidates[GB_ENVELOPE_HEADERS_MAX];
    size_t count = collect(e, candidates);
    for (size_t i = 0; i < count; i++) {
        if (m->attribute_count == GB_SQS_ATTRIBUTES_MAX) {
            m->dropped += (uint32_t)(count - i);
            return;
        }
        struct gb_sqs_attribute *a = &m->attributes[m->attribute_count];
        a->name = candidates[i].header->name;
        if (!set_value(a, &candidates[i].header->value) ||
            attribute_size(a) > rules->bytes_max - m->size) {
            m->dropped++;
            continue;
        }
        m->size += attribute_size(a);
        m->attribute_count++;
    }
}

struct gb_err gb_sqs_message_plan(const struct gb_envelope *e, const struct gb_sqs_rules *rules,
                                  struct gb_str *scratch, struct gb_sqs_message *out)
{
    struct gb_sqs_message *m = out;
    GB_ASSERT(e->header_count <= GB_ENVELOPE_HEADERS_MAX);
    m->envelope = e;
    m->attribute_count = 0;
    m->dropped = 0;
    m->group = gb_bytes(NULL, 0);
    m->dedup = gb_bytes(NULL, 0);
    struct gb_err err = plan_body(e, rules, m);
    if (!gb_failed(err) && rules->fifo) err = plan_fifo(e, rules, scratch, m);
    if (gb_failed(err)) return err;
    if (m->base64) add_fixed(m, GB_H_PAYLOAD_ENCODING, gb_bytes_c("base64"));
    if (e->subject.size > 0 && gb_utf8_sqs_acceptable(e->subject)) {
        add_fixed(m, "Subject", e->subject);
    } else if (e->subject.size > 0) {
        m->dropped++;
    }
    if (m->size > rules->bytes_max) {
        return gb_err(GB_PAYLOAD_TOO_LARGE,
                      "message of %zu bytes as sent (body, encoding mark, subject) is above "
                      "max_message_bytes %llu",
                      m->size, (unsigned long long)rules->bytes_max);
    }
    if (e->header_count > 0) add_headers(e, rules, m);
    return gb_ok();
}

/* --- writing --- */

static void write_body(const struct gb_sqs_message *m, struct gb_json_writer *w,
                       char md5[GB_MD5_HEX])
{
    struct gb_bytes payload = m->envelope->payload;
    gb_json_w_key(w, "MessageBody");
    if (!m->base64) {
        gb_json_w_string(w, payload);
        gb_md5_hex(payload, md5);
    } else if (payload.size == 0) {
        gb_json_w_string_c(w, "=");
        gb_md5_hex(gb_bytes_c("="), md5);
    } else {
        /* Base64 has nothing to escape: what stands between the quotes is the body itself. */
        size_t before = w->out->size + 1;
        gb_json_w_base64(w, payload);
        if (!w->out->failed)
            gb_md5_hex(gb_bytes(w->out->data + before, w->out->size - 1 - before), md5);
    }
}

static const char *type_name(enum gb_sqs_type type)
{
    switch (type) {
    case GB_SQS_NUMBER:
        return "Number";
    case GB_SQS_BINARY:
        return "Binary";
    case GB_SQS_STRING:
        break;
    }
    return "String";
}

static void write_attributes(const struct gb_sqs_message *m, struct gb_json_writer *w)
{
    gb_json_w_key(w, "MessageAttributes");
    gb_json_w_object(w);
    for (size_t i = 0; i < m->attribute_count; i++) {
        const struct gb_sqs_attribute *a = &m->attributes[i];
        gb_json_w_key_bytes(w, a->name);
        gb_json_w_object(w);
        gb_json_w_key(w, "DataType");
        gb_json_w_string_c(w, type_name(a->type));
        if (a->type == GB_SQS_BINARY) {
            gb_json_w_key(w, "BinaryValue");
            gb_json_w_base64(w, a->value);
        } else {
            gb_json_w_key(w, "StringValue");
            gb_json_w_string(w, a->value);
        }
        gb_json_w_object_end(w);
    }
    gb_json_w_object_end(w);
}

static void append_sized(struct gb_str *out, struct gb_bytes bytes)
{
    uint8_t size[4];
    gb_put_u32(size, (uint32_t)bytes.size);
    gb_str_append(out, gb_bytes(size, sizeof size));
    gb_str_append(out, bytes);
}

/* Spec 04 A1: by name, each as length+name, length+type, 1 (string) or 2 (binary), length+value. */
static void digest_attributes(const struct gb_sqs_message *m, struct gb_str *scratch,
                              char md5[GB_MD5_HEX])
{
    uint8_t order[GB_SQS_ATTRIBUTES_MAX];
    for (size_t i = 0; i < m->attribute_count; i++) {
        size_t at = i;
        while (at > 0 &&
               gb_bytes_compare(m->attributes[order[at - 1]].name, m->attributes[i].name) > 0) {
            order[at] = order[at - 1];
            at--;
        }
        order[at] = (uint8_t)i;
    }
    gb_str_clear(scratch);
    for (size_t i = 0; i < m->attribute_count; i++) {
        const struct gb_sqs_attribute *a = &m->attributes[order[i]];
        append_sized(scratch, a->name);
        append_sized(scratch, gb_bytes_c(type_name(a->type)));
        gb_str_append_char(scratch, a->type == GB_SQS_BINARY ? 2 : 1);
        append_sized(scratch, a->value);
    }
    if (!scratch->failed) gb_md5_hex(gb_str_bytes(scratch), md5);
}

void gb_sqs_message_write(const struct gb_sqs_message *m, const struct gb_sqs_rules *rules,
                          struct gb_json_writer *w, struct gb_str *scratch,
                          struct gb_sqs_digests *digests)
{
    digests->body[0] = '\0';
    digests->attributes[0] = '\0';
    write_body(m, w, digests->body);
    if (m->attribute_count > 0) {
        write_attributes(m, w);
        digest_attributes(m, scratch, digests->attributes);
        if (scratch->failed) w->out->failed = true;
    }
    if (rules->delay_seconds > 0) {
        gb_json_w_key(w, "DelaySeconds");
        gb_json_w_u64(w, rules->delay_seconds);
    }
    if (m->group.size > 0) {
        gb_json_w_key(w, "MessageGroupId");
        gb_json_w_string(w, m->group);
        gb_json_w_key(w, "MessageDeduplicationId");
        gb_json_w_string(w, m->dedup);
    }
}
