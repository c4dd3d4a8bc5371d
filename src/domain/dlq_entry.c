#include "domain/dlq_entry.h"

#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "base/json_read.h"
#include "base/json_write.h"

enum { MEMBERS = 12 };

/* Every string member, for the loops below. */
static void members_of(struct gb_dlq_entry *e, char **out[MEMBERS])
{
    char **const all[MEMBERS] = {
        &e->route_id,       &e->binding_id, &e->session_id,   &e->source_id,
        &e->correlation_id, &e->address,    &e->reason,       &e->category,
        &e->error_code,     &e->last_error, &e->redrive_mode, &e->extra_info,
    };
    memcpy(out, all, sizeof all);
}

struct gb_err gb_dlq_entry_new(struct gb_envelope *envelope, struct gb_dlq_entry **out)
{
    struct gb_dlq_entry *e = calloc(1, sizeof *e);
    if (e == NULL) return gb_err_no_memory("DLQ entry");
    char **members[MEMBERS];
    members_of(e, members);
    for (size_t i = 0; i < MEMBERS; i++) {
        *members[i] = gb_strdup(members[i] == &e->extra_info ? "{}" : "");
        if (*members[i] != NULL) continue;
        gb_dlq_entry_free(e);
        return gb_err_no_memory("DLQ entry");
    }
    e->envelope = gb_envelope_ref(envelope);
    *out = e;
    return gb_ok();
}

void gb_dlq_entry_free(struct gb_dlq_entry *e)
{
    if (e == NULL) return;
    char **members[MEMBERS];
    members_of(e, members);
    for (size_t i = 0; i < MEMBERS; i++) free(*members[i]);
    gb_envelope_unref(e->envelope);
    free(e);
}

struct gb_err gb_dlq_entry_copy(const struct gb_dlq_entry *e, struct gb_dlq_entry **out)
{
    struct gb_dlq_entry *copy = NULL;
    struct gb_err err = gb_dlq_entry_new(e->envelope, &copy);
    if (gb_failed(err)) return err;
    struct gb_dlq_entry from = *e;
    char **source[MEMBERS], **target[MEMBERS];
    members_of(&from, source);
    members_of(copy, target);
    for (size_t i = 0; i < MEMBERS && !gb_failed(err); i++)
        err = gb_dlq_set(target[i], gb_bytes_c(*source[i]));
    if (gb_failed(err)) {
        gb_dlq_entry_free(copy);
        return err;
    }
    memcpy(copy->id, e->id, sizeof copy->id);
    copy->failed_at_ms = e->failed_at_ms;
    copy->attempts = e->attempts;
    *out = copy;
    return gb_ok();
}

struct gb_err gb_dlq_set(char **member, struct gb_bytes text)
{
    char *copy = gb_bytes_dup(text);
    if (copy == NULL) return gb_err_no_memory("DLQ entry");
    free(*member);
    *member = copy;
    return gb_ok();
}

static bool is_object(struct gb_bytes text)
{
    struct gb_json_reader r;
    gb_json_init(&r, text);
    return gb_json_next(&r) == GB_JSON_OBJECT_BEGIN && gb_json_skip(&r) &&
           gb_json_next(&r) == GB_JSON_END;
}

struct gb_err gb_dlq_entry_set_extra_info(struct gb_dlq_entry *e, struct gb_bytes stored)
{
    struct gb_str json = {0};
    struct gb_json_writer w;
    if (stored.size == 0) return gb_dlq_set(&e->extra_info, gb_bytes_c("{}"));
    if (is_object(stored)) return gb_dlq_set(&e->extra_info, stored);
    gb_json_w_init(&w, &json);
    gb_json_w_object(&w);
    gb_json_w_key(&w, "unreadable");
    gb_json_w_string(&w, stored);
    gb_json_w_object_end(&w);
    struct gb_err err = gb_str_check(&json, "DLQ entry");
    if (!gb_failed(err)) err = gb_dlq_set(&e->extra_info, gb_str_bytes(&json));
    gb_str_deinit(&json);
    return err;
}

struct gb_err gb_dlq_entry_set_error(struct gb_dlq_entry *e, const struct gb_err *cause)
{
    bool classified = cause->class_ != GB_CLASS_NONE && cause->message[0] != '\0';
    struct gb_err err =
        gb_dlq_set(&e->reason, gb_bytes_c(classified ? cause->message : "internal error"));
    if (!gb_failed(err)) err = gb_dlq_set(&e->last_error, gb_bytes_c(cause->message));
    if (!gb_failed(err)) err = gb_dlq_set(&e->category, gb_bytes_c(gb_class_name(cause->class_)));
    if (!gb_failed(err)) err = gb_dlq_set(&e->error_code, gb_bytes_c(gb_code_name(cause->code)));
    return err;
}

void gb_dlq_entry_derive_id(struct gb_dlq_entry *e)
{
    const struct gb_bytes parts[] = {
        e->envelope->id,
        gb_bytes_c(e->route_id),
        gb_bytes_c(e->binding_id),
        gb_bytes_c(e->source_id),
    };
    uint8_t digest[GB_SHA256_SIZE];
    gb_sha256_parts(parts, 4, 4, digest);
    gb_hex(gb_bytes(digest, sizeof digest), e->id);
}
