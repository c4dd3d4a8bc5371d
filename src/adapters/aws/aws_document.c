#include "adapters/aws/aws_document.h"

#include "base/digest.h"
#include "base/duration.h"
#include "base/json_read.h"

enum { VALUE_BYTES_MAX = 16 * 1024 };

static void wipe(struct gb_str *s)
{
    if (s->data != NULL) gb_wipe(s->data, s->capacity);
    gb_str_deinit(s);
    *s = (struct gb_str){0};
}

void gb_aws_document_deinit(struct gb_aws_document *d)
{
    wipe(&d->access_key_id);
    wipe(&d->secret_access_key);
    wipe(&d->token);
    d->expires_ms = 0;
}

struct reading {
    struct gb_aws_document doc;
    struct gb_str code, expiration;
};

static struct gb_str *place_of(const struct gb_json_reader *r, struct reading *d)
{
    if (gb_json_text_is(r, "AccessKeyId")) return &d->doc.access_key_id;
    if (gb_json_text_is(r, "SecretAccessKey")) return &d->doc.secret_access_key;
    if (gb_json_text_is(r, "Token")) return &d->doc.token;
    if (gb_json_text_is(r, "Expiration")) return &d->expiration;
    if (gb_json_text_is(r, "Code")) return &d->code;
    return NULL;
}

static void read_members(struct gb_json_reader *r, struct reading *d)
{
    while (gb_json_next(r) == GB_JSON_KEY) {
        struct gb_str *place = place_of(r, d);
        enum gb_json_event value = gb_json_next(r);
        if (place == NULL || value != GB_JSON_STRING) {
            (void)gb_json_skip(r);
            continue;
        }
        gb_str_clear(place);
        (void)gb_json_string(r, place, NULL);
    }
}

static struct gb_err check(struct reading *d)
{
    if (d->doc.access_key_id.failed || d->doc.secret_access_key.failed || d->doc.token.failed ||
        d->code.failed || d->expiration.failed)
        return gb_err(GB_UNAVAILABLE, "credential document: a value is too long, or out of memory");
    if (d->code.size > 0 && !gb_bytes_equal_c(gb_str_bytes(&d->code), "Success"))
        return gb_err(GB_TEMPORARY_AUTH_FAILURE, "credential document: Code is not Success");
    if (d->doc.access_key_id.size == 0 || d->doc.secret_access_key.size == 0) {
        return gb_err(GB_TEMPORARY_AUTH_FAILURE,
                      "credential document: AccessKeyId or SecretAccessKey is missing");
    }
    if (d->expiration.size > 0 &&
        !gb_time_parse(gb_str_bytes(&d->expiration), &d->doc.expires_ms)) {
        return gb_err(GB_TEMPORARY_AUTH_FAILURE,
                      "credential document: Expiration is no RFC 3339 time");
    }
    return gb_ok();
}

struct gb_err gb_aws_document_parse(struct gb_bytes json, struct gb_aws_document *out)
{
    struct gb_json_reader r;
    struct reading d = {.doc = {.access_key_id.size_max = VALUE_BYTES_MAX,
                                .secret_access_key.size_max = VALUE_BYTES_MAX,
                                .token.size_max = VALUE_BYTES_MAX},
                        .code.size_max = VALUE_BYTES_MAX,
                        .expiration.size_max = VALUE_BYTES_MAX};
    struct gb_err err = gb_ok();
    gb_json_init(&r, json);
    if (gb_json_next(&r) == GB_JSON_OBJECT_BEGIN) read_members(&r, &d);
    if (gb_json_next(&r) != GB_JSON_END)
        err = gb_err(GB_TEMPORARY_AUTH_FAILURE, "credential document: not a JSON object");
    if (!gb_failed(err)) err = check(&d);
    if (!gb_failed(err)) {
        gb_aws_document_deinit(out);
        *out = d.doc;
    } else {
        gb_aws_document_deinit(&d.doc);
    }
    wipe(&d.code);
    wipe(&d.expiration);
    return err;
}
