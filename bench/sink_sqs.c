#include "sink_sqs.h"

#include "base/digest.h"
#include "base/json_read.h"
#include "base/json_write.h"

enum { ATTRIBUTES_MAX = 10, ENTRIES_MAX = 10 };

struct part { /* of `text`, which may move while it grows */
    size_t at, size;
};
struct attribute {
    struct part name, type, value;
    bool binary, has_value;
};
struct message {
    struct part id, body;
    bool has_body;
    size_t count;
    struct attribute attributes[ATTRIBUTES_MAX];
};

void gb_bench_sqs_deinit(struct gb_bench_sqs *s)
{
    gb_str_deinit(&s->text);
    gb_str_deinit(&s->digest_input);
}

static struct gb_bytes bytes_of(const struct gb_bench_sqs *s, struct part p)
{
    return gb_bytes(s->text.data + p.at, p.size);
}

/* --- parsing: each function is called after the BEGIN or KEY event and is false on any error
 * --- */

static bool take_text(struct gb_bench_sqs *s, const struct gb_json_reader *r, struct part *out)
{
    out->at = s->text.size;
    bool ok = gb_json_string(r, &s->text, NULL);
    out->size = s->text.size - out->at;
    return ok;
}

static bool next_text(struct gb_bench_sqs *s, struct gb_json_reader *r, struct part *out)
{
    return gb_json_next(r) == GB_JSON_STRING && take_text(s, r, out);
}

static bool next_binary(struct gb_bench_sqs *s, struct gb_json_reader *r, struct part *out)
{
    if (gb_json_next(r) != GB_JSON_STRING || r->has_escapes) return false;
    out->at = s->text.size;
    bool ok = gb_base64_decode(&s->text, r->text);
    out->size = s->text.size - out->at;
    return ok;
}

static bool take_attribute(struct gb_bench_sqs *s, struct gb_json_reader *r, struct attribute *a)
{
    if (gb_json_next(r) != GB_JSON_OBJECT_BEGIN) return false;
    for (;;) {
        enum gb_json_event event = gb_json_next(r);
        if (event == GB_JSON_OBJECT_END) return a->has_value && a->type.size > 0;
        if (event != GB_JSON_KEY) return false;
        bool ok = false;
        if (gb_json_text_is(r, "DataType")) {
            ok = next_text(s, r, &a->type);
        } else if (gb_json_text_is(r, "StringValue")) {
            ok = a->has_value = next_text(s, r, &a->value);
        } else if (gb_json_text_is(r, "BinaryValue")) {
            ok = a->has_value = a->binary = next_binary(s, r, &a->value);
        } else {
            ok = gb_json_skip(r);
        }
        if (!ok) return false;
    }
}

static bool take_attributes(struct gb_bench_sqs *s, struct gb_json_reader *r, struct message *m)
{
    if (gb_json_next(r) != GB_JSON_OBJECT_BEGIN) return false;
    for (;;) {
        enum gb_json_event event = gb_json_next(r);
        if (event == GB_JSON_OBJECT_END) return true;
        if (event != GB_JSON_KEY || m->count == ATTRIBUTES_MAX) return false;
        struct attribute *a = &m->attributes[m->count++];
        *a = (struct attribute){0};
        if (!take_text(s, r, &a->name) || !take_attribute(s, r, a)) return false;
    }
}

static bool take_message(struct gb_bench_sqs *s, struct gb_json_reader *r, struct message *m)
{
    gb_str_clear(&s->text);
    m->id = m->body = (struct part){0};
    m->has_body = false;
    m->count = 0;
    for (;;) {
        enum gb_json_event event = gb_json_next(r);
        if (event == GB_JSON_OBJECT_END) return m->has_body;
        if (event != GB_JSON_KEY) return false;
        bool ok = false;
        if (gb_json_text_is(r, "MessageBody")) {
            ok = m->has_body = next_text(s, r, &m->body);
        } else if (gb_json_text_is(r, "Id")) {
            ok = next_text(s, r, &m->id);
        } else if (gb_json_text_is(r, "MessageAttributes")) {
            ok = take_attributes(s, r, m);
        } else {
            ok = gb_json_skip(r);
        }
        if (!ok) return false;
    }
}

/* --- answering --- */

static void put_sized(struct gb_str *out, struct gb_bytes bytes)
{
    uint8_t size[4];
    gb_put_u32(size, (uint32_t)bytes.size);
    gb_str_append(out, gb_bytes(size, sizeof size));
    gb_str_append(out, bytes);
}

/* Insertion sort: at most ten, and mostly in order already. */
static void sort_attributes(const struct gb_bench_sqs *s, struct message *m)
{
    for (size_t i = 1; i < m->count; i++) {
        struct attribute a = m->attributes[i];
        size_t at = i;
        for (; at > 0 &&
               gb_bytes_compare(bytes_of(s, m->attributes[at - 1].name), bytes_of(s, a.name)) > 0;
             at--)
            m->attributes[at] = m->attributes[at - 1];
        m->attributes[at] = a;
    }
}

static void attributes_md5(struct gb_bench_sqs *s, struct message *m, char out[GB_MD5_HEX])
{
    sort_attributes(s, m);
    gb_str_clear(&s->digest_input);
    for (size_t i = 0; i < m->count; i++) {
        const struct attribute *a = &m->attributes[i];
        put_sized(&s->digest_input, bytes_of(s, a->name));
        put_sized(&s->digest_input, bytes_of(s, a->type));
        gb_str_append_char(&s->digest_input, a->binary ? 2 : 1);
        put_sized(&s->digest_input, bytes_of(s, a->value));
    }
    gb_md5_hex(gb_str_bytes(&s->digest_input), out);
}

static void accept_message(struct gb_bench_sqs *s, struct message *m, struct gb_json_writer *w)
{
    char md5[GB_MD5_HEX];
    s->messages++;
    s->message(s->arg, bytes_of(s, m->body));
    gb_json_w_object(w);
    if (m->id.size > 0) {
        gb_json_w_key(w, "Id");
        gb_json_w_string(w, bytes_of(s, m->id));
    }
    char id[40];
    struct gb_str id_text = gb_str_over(id, sizeof id);
    gb_str_appendf(&id_text, "00000000-0000-4000-8000-%012llx", (unsigned long long)s->messages);
    gb_json_w_key(w, "MessageId");
    gb_json_w_string(w, gb_str_bytes(&id_text));
    gb_md5_hex(bytes_of(s, m->body), md5);
    gb_json_w_key(w, "MD5OfMessageBody");
    gb_json_w_string_c(w, md5);
    if (m->count > 0) {
        attributes_md5(s, m, md5);
        gb_json_w_key(w, "MD5OfMessageAttributes");
        gb_json_w_string_c(w, md5);
    }
    gb_json_w_object_end(w);
}

static bool answer_entries(struct gb_bench_sqs *s, struct gb_json_reader *r,
                           struct gb_json_writer *w)
{
    if (gb_json_next(r) != GB_JSON_ARRAY_BEGIN) return false;
    for (size_t count = 0;; count++) {
        struct message m;
        enum gb_json_event event = gb_json_next(r);
        if (event == GB_JSON_ARRAY_END) return count > 0;
        if (event != GB_JSON_OBJECT_BEGIN || count == ENTRIES_MAX) return false;
        if (!take_message(s, r, &m) || m.id.size == 0) return false;
        accept_message(s, &m, w);
    }
}

static bool answer_batch(struct gb_bench_sqs *s, struct gb_json_reader *r, struct gb_json_writer *w)
{
    if (gb_json_next(r) != GB_JSON_OBJECT_BEGIN) return false;
    bool answered = false;
    gb_json_w_object(w);
    gb_json_w_key(w, "Successful");
    gb_json_w_array(w);
    for (;;) {
        enum gb_json_event event = gb_json_next(r);
        if (event == GB_JSON_OBJECT_END) break;
        if (event != GB_JSON_KEY) return false;
        bool is_entries = gb_json_text_is(r, "Entries");
        if (is_entries && answered) return false;
        if (!(is_entries ? answer_entries(s, r, w) : gb_json_skip(r))) return false;
        answered |= is_entries;
    }
    gb_json_w_array_end(w);
    gb_json_w_key(w, "Failed");
    gb_json_w_array(w);
    gb_json_w_array_end(w);
    gb_json_w_object_end(w);
    return answered;
}

static bool answer_single(struct gb_bench_sqs *s, struct gb_json_reader *r,
                          struct gb_json_writer *w)
{
    struct message m;
    if (gb_json_next(r) != GB_JSON_OBJECT_BEGIN || !take_message(s, r, &m)) return false;
    accept_message(s, &m, w);
    return true;
}

unsigned gb_bench_sqs_answer(struct gb_bench_sqs *s, struct gb_bytes operation,
                             struct gb_bytes request, struct gb_str *answer)
{
    struct gb_json_reader r;
    struct gb_json_writer w;
    gb_json_init(&r, request);
    gb_json_w_init(&w, answer);
    s->requests++;
    bool ok = false;
    if (gb_bytes_equal_c(operation, "AmazonSQS.SendMessageBatch")) {
        s->batches++;
        ok = answer_batch(s, &r, &w);
    } else if (gb_bytes_equal_c(operation, "AmazonSQS.SendMessage")) {
        ok = answer_single(s, &r, &w);
    }
    if (ok && gb_json_next(&r) == GB_JSON_END) return 200;
    s->refused++;
    gb_str_clear(answer);
    gb_str_append_c(answer,
                    "{\"__type\":\"com.amazonaws.sqs#InvalidParameterValue\","
                    "\"message\":\"the sink takes SendMessage and SendMessageBatch only\"}");
    return 400;
}
