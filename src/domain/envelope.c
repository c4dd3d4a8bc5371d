#include "domain/envelope.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

enum { HEADERS_FIRST = 12, CHUNK_MIN = 512 };

struct gb_envelope_chunk {
    struct gb_envelope_chunk *next;
};

struct gb_err gb_envelope_new(size_t size_hint, struct gb_envelope **out)
{
    size_t headers = HEADERS_FIRST * sizeof(struct gb_header);
    struct gb_envelope *e = malloc(sizeof *e + headers + size_hint);
    if (e == NULL) return gb_err_no_memory("envelope");
    memset(e, 0, sizeof *e);
    e->refs = 1;
    e->headers = (struct gb_header *)(void *)(e + 1);
    e->header_capacity = HEADERS_FIRST;
    e->free_at = (char *)(e + 1) + headers;
    e->free_size = size_hint;
    *out = e;
    return gb_ok();
}

struct gb_envelope *gb_envelope_ref(struct gb_envelope *e)
{
    e->refs++;
    return e;
}

void gb_envelope_unref(struct gb_envelope *e)
{
    if (e == NULL) return;
    GB_ASSERT(e->refs > 0);
    if (--e->refs > 0) return;
    while (e->chunks != NULL) {
        struct gb_envelope_chunk *next = e->chunks->next;
        free(e->chunks);
        e->chunks = next;
    }
    free(e);
}

/* Memory that lives as long as the envelope; NULL when there is none. */
static char *take(struct gb_envelope *e, size_t size)
{
    if (size > e->free_size) {
        size_t chunk = size < CHUNK_MIN ? CHUNK_MIN : size;
        if (size > SIZE_MAX - sizeof(struct gb_envelope_chunk) - 16) return NULL;
        struct gb_envelope_chunk *c = malloc(sizeof *c + chunk);
        if (c == NULL) return NULL;
        c->next = e->chunks;
        e->chunks = c;
        e->free_at = (char *)(c + 1);
        e->free_size = chunk;
    }
    char *p = e->free_at;
    e->free_at += size;
    e->free_size -= size;
    return p;
}

static bool copy_bytes(struct gb_envelope *e, struct gb_bytes from, struct gb_bytes *to)
{
    if (from.size == 0) {
        *to = gb_bytes(NULL, 0);
        return true;
    }
    char *p = take(e, from.size);
    if (p == NULL) return false;
    memcpy(p, from.data, from.size);
    *to = gb_bytes(p, from.size);
    return true;
}

struct gb_err gb_envelope_set_id(struct gb_envelope *e, struct gb_bytes id)
{
    GB_ASSERT(e->refs == 1);
    return copy_bytes(e, id, &e->id) ? gb_ok() : gb_err_no_memory("envelope id");
}

struct gb_err gb_envelope_set_subject(struct gb_envelope *e, struct gb_bytes subject)
{
    GB_ASSERT(e->refs == 1);
    return copy_bytes(e, subject, &e->subject) ? gb_ok() : gb_err_no_memory("envelope subject");
}

struct gb_err gb_envelope_set_payload(struct gb_envelope *e, struct gb_bytes payload)
{
    GB_ASSERT(e->refs == 1);
    return copy_bytes(e, payload, &e->payload) ? gb_ok() : gb_err_no_memory("envelope payload");
}

uint8_t *gb_envelope_reserve_payload(struct gb_envelope *e, size_t size)
{
    GB_ASSERT(e->refs == 1);
    char *p = take(e, size == 0 ? 1 : size);
    if (p == NULL) return NULL;
    e->payload = gb_bytes(p, size);
    return (uint8_t *)p;
}

static struct gb_header *find(const struct gb_envelope *e, struct gb_bytes name)
{
    for (size_t i = 0; i < e->header_count; i++) {
        struct gb_header *h = &e->headers[i];
        if (h->name.size == name.size && memcmp(h->name.data, name.data, name.size) == 0) return h;
    }
    return NULL;
}

/* Array memory moves inside the envelope's own; the old one is left behind (at most as much again). */
static bool grow_headers(struct gb_envelope *e)
{
    size_t capacity = e->header_capacity * 2;
    size_t align = (size_t)((uintptr_t)e->free_at % sizeof(void *));
    size_t pad = align == 0 ? 0 : sizeof(void *) - align;
    size_t bytes = capacity * sizeof *e->headers;
    char *p = take(e, pad + bytes + sizeof(void *));
    if (p == NULL) return false;
    uintptr_t at = ((uintptr_t)p + sizeof(void *) - 1) & ~(uintptr_t)(sizeof(void *) - 1);
    struct gb_header *grown = (struct gb_header *)at;
    memcpy(grown, e->headers, e->header_count * sizeof *grown);
    e->headers = grown;
    e->header_capacity = capacity;
    return true;
}

static bool has_text(enum gb_value_kind kind)
{
    return kind == GB_VALUE_TEXT || kind == GB_VALUE_DECIMAL || kind == GB_VALUE_BYTES;
}

struct gb_err gb_envelope_put(struct gb_envelope *e, struct gb_bytes name, struct gb_value value)
{
    GB_ASSERT(e->refs == 1);
    struct gb_value copy = value;
    copy.text = gb_bytes(NULL, 0);
    if (has_text(value.kind) && !copy_bytes(e, value.text, &copy.text))
        return gb_err_no_memory("envelope header");
    struct gb_header *h = find(e, name);
    if (h != NULL) {
        h->value = copy;
        return gb_ok();
    }
    if (e->header_count == GB_ENVELOPE_HEADERS_MAX)
        return gb_err(GB_PAYLOAD_TOO_LARGE, "a message may have at most %d headers",
                      GB_ENVELOPE_HEADERS_MAX);
    struct gb_bytes name_copy;
    if (!copy_bytes(e, name, &name_copy)) return gb_err_no_memory("envelope header");
    if (e->header_count == e->header_capacity && !grow_headers(e))
        return gb_err_no_memory("envelope headers");
    e->headers[e->header_count++] = (struct gb_header){.name = name_copy, .value = copy};
    return gb_ok();
}

struct gb_err gb_envelope_put_text(struct gb_envelope *e, const char *name, struct gb_bytes text)
{
    return gb_envelope_put(e, gb_bytes_c(name),
                           (struct gb_value){.kind = GB_VALUE_TEXT, .text = text});
}

struct gb_err gb_envelope_put_number(struct gb_envelope *e, const char *name,
                                     enum gb_value_kind kind, int64_t number)
{
    GB_ASSERT(!has_text(kind));
    return gb_envelope_put(e, gb_bytes_c(name), (struct gb_value){.kind = kind, .number = number});
}

void gb_envelope_remove_at(struct gb_envelope *e, size_t index)
{
    GB_ASSERT(e->refs == 1 && index < e->header_count);
    memmove(&e->headers[index], &e->headers[index + 1],
            (e->header_count - index - 1) * sizeof *e->headers);
    e->header_count--;
}

void gb_envelope_remove(struct gb_envelope *e, struct gb_bytes name)
{
    struct gb_header *h = find(e, name);
    if (h != NULL) gb_envelope_remove_at(e, (size_t)(h - e->headers));
}

const struct gb_value *gb_envelope_get(const struct gb_envelope *e, const char *name)
{
    const struct gb_header *h = find(e, gb_bytes_c(name));
    return h == NULL ? NULL : &h->value;
}

struct gb_bytes gb_envelope_text(const struct gb_envelope *e, const char *name)
{
    const struct gb_value *v = gb_envelope_get(e, name);
    return v == NULL || v->kind != GB_VALUE_TEXT ? gb_bytes(NULL, 0) : v->text;
}

bool gb_envelope_expired(const struct gb_envelope *e, int64_t now_ms)
{
    return e->expires_at_ms != 0 && now_ms >= e->expires_at_ms;
}

size_t gb_envelope_size(const struct gb_envelope *e)
{
    size_t size = sizeof *e + e->id.size + e->subject.size + e->payload.size;
    for (size_t i = 0; i < e->header_count; i++)
        size += sizeof e->headers[i] + e->headers[i].name.size + e->headers[i].value.text.size;
    return size;
}

struct gb_err gb_envelope_copy(const struct gb_envelope *e, struct gb_envelope **out)
{
    struct gb_envelope *copy = NULL;
    struct gb_err err = gb_envelope_new(gb_envelope_size(e), &copy);
    if (gb_failed(err)) return err;
    err = gb_envelope_set_id(copy, e->id);
    if (!gb_failed(err)) err = gb_envelope_set_subject(copy, e->subject);
    if (!gb_failed(err)) err = gb_envelope_set_payload(copy, e->payload);
    for (size_t i = 0; i < e->header_count && !gb_failed(err); i++)
        err = gb_envelope_put(copy, e->headers[i].name, e->headers[i].value);
    copy->created_at_ms = e->created_at_ms;
    copy->expires_at_ms = e->expires_at_ms;
    if (gb_failed(err)) {
        gb_envelope_unref(copy);
        return err;
    }
    *out = copy;
    return gb_ok();
}
