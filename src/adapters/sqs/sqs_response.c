#include "adapters/sqs/sqs_response.h"

#include <string.h>

#include "base/json_read.h"

static struct gb_err malformed(void)
{
    return gb_err(GB_UNAVAILABLE, "SQS: the answer is malformed");
}

/* Printable ASCII, cut: goes into errors and logs. The text is still escaped, which is good
 * enough. */
static void copy_text(char *out, size_t size, struct gb_bytes text)
{
    size_t n = text.size < size - 1 ? text.size : size - 1;
    for (size_t i = 0; i < n; i++)
        out[i] = text.data[i] < 0x20 || text.data[i] > 0x7E ? '?' : (char)text.data[i];
    out[n] = '\0';
}

struct fields {
    struct gb_sqs_entry entry;
    struct gb_bytes id;
    bool has_message_id;
};

static bool read_field(struct gb_json_reader *r, struct fields *f)
{
    bool body = gb_json_text_is(r, "MD5OfMessageBody");
    bool attributes = gb_json_text_is(r, "MD5OfMessageAttributes");
    bool id = gb_json_text_is(r, "Id");
    bool code = gb_json_text_is(r, "Code");
    bool message = gb_json_text_is(r, "Message");
    bool fault = gb_json_text_is(r, "SenderFault");
    bool message_id = gb_json_text_is(r, "MessageId");
    enum gb_json_event event = gb_json_next(r);
    if (fault) f->entry.sender_fault = event == GB_JSON_TRUE;
    if (event != GB_JSON_STRING) return gb_json_skip(r);
    if (body) f->entry.md5_body = r->text;
    if (attributes) f->entry.md5_attributes = r->text;
    if (id) f->id = r->text;
    if (code) copy_text(f->entry.code, sizeof f->entry.code, r->text);
    if (message) copy_text(f->entry.message, sizeof f->entry.message, r->text);
    if (message_id) f->has_message_id = true;
    return true;
}

/* The members of an object whose BEGIN was read, to its END. */
static bool read_object(struct gb_json_reader *r, struct fields *f)
{
    *f = (struct fields){0};
    enum gb_json_event event;
    while ((event = gb_json_next(r)) == GB_JSON_KEY) {
        if (!read_field(r, f)) return false;
    }
    return event == GB_JSON_OBJECT_END;
}

struct gb_err gb_sqs_read_send(struct gb_bytes answer, struct gb_sqs_entry *out)
{
    struct gb_json_reader r;
    struct fields f = {0};
    gb_json_init(&r, answer);
    if (gb_json_next(&r) != GB_JSON_OBJECT_BEGIN || !read_object(&r, &f) ||
        gb_json_next(&r) != GB_JSON_END || !f.has_message_id)
        return malformed();
    f.entry.outcome = GB_SQS_ACCEPTED;
    *out = f.entry;
    return gb_ok();
}

/* "0" to "9": ids are the decimal positions (spec 04 B9). */
static bool position(struct gb_bytes id, size_t count, size_t *out)
{
    if (id.size != 1 || id.data[0] < '0' || id.data[0] > '9') return false;
    *out = (size_t)(id.data[0] - '0');
    return *out < count;
}

static bool read_list(struct gb_json_reader *r, enum gb_sqs_outcome outcome, size_t count,
                      struct gb_sqs_entry *entries)
{
    enum gb_json_event event = gb_json_next(r);
    struct fields f;
    size_t at = 0;
    if (event == GB_JSON_NULL) return true;
    if (event != GB_JSON_ARRAY_BEGIN) return false;
    while ((event = gb_json_next(r)) == GB_JSON_OBJECT_BEGIN) {
        if (!read_object(r, &f)) return false;
        if (!position(f.id, count, &at) || entries[at].outcome == GB_SQS_FAILED) continue;
        entries[at] = f.entry;
        entries[at].outcome = outcome;
    }
    return event == GB_JSON_ARRAY_END;
}

static bool read_lists(struct gb_json_reader *r, size_t count, struct gb_sqs_entry *entries)
{
    enum gb_json_event event;
    if (gb_json_next(r) != GB_JSON_OBJECT_BEGIN) return false;
    while ((event = gb_json_next(r)) == GB_JSON_KEY) {
        bool good = true;
        if (gb_json_text_is(r, "Successful")) {
            good = read_list(r, GB_SQS_ACCEPTED, count, entries);
        } else if (gb_json_text_is(r, "Failed")) {
            good = read_list(r, GB_SQS_FAILED, count, entries);
        } else {
            (void)gb_json_next(r);
            good = gb_json_skip(r);
        }
        if (!good) return false;
    }
    return event == GB_JSON_OBJECT_END && gb_json_next(r) == GB_JSON_END;
}

struct gb_err gb_sqs_read_batch(struct gb_bytes answer, size_t count, struct gb_sqs_entry *entries)
{
    struct gb_json_reader r;
    memset(entries, 0, count * sizeof *entries);
    gb_json_init(&r, answer);
    return read_lists(&r, count, entries) ? gb_ok() : malformed();
}

static bool read_url(struct gb_json_reader *r, struct gb_str *url)
{
    enum gb_json_event event;
    if (gb_json_next(r) != GB_JSON_OBJECT_BEGIN) return false;
    while ((event = gb_json_next(r)) == GB_JSON_KEY) {
        bool wanted = gb_json_text_is(r, "QueueUrl");
        if (gb_json_next(r) == GB_JSON_STRING && wanted && url->size == 0) {
            (void)gb_json_string(r, url, NULL);
        } else if (!gb_json_skip(r)) {
            return false;
        }
    }
    return event == GB_JSON_OBJECT_END && gb_json_next(r) == GB_JSON_END;
}

struct gb_err gb_sqs_read_queue_url(struct gb_bytes answer, char **out)
{
    struct gb_json_reader r;
    struct gb_str url = {.size_max = 2048};
    gb_json_init(&r, answer);
    bool good = read_url(&r, &url) && url.size > 0;
    struct gb_err err = good ? gb_str_check(&url, "queue URL") : malformed();
    if (gb_failed(err)) {
        gb_str_deinit(&url);
        return err;
    }
    *out = gb_str_take(&url);
    return gb_ok();
}
