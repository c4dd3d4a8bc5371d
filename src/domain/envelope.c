#include "domain/envelope.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

enum {
    HEADERS_FIRST = 12, /* what a bridged message has: three of its own, a few of the sender's */
    CHUNK_MIN = 512,
    SPARE = 256, /* a copy is made to be changed */
};

struct gb_envelope_chunk {
    struct gb_envelope_chunk *next;
};

/* One block: the struct, its header array, then `size` bytes of texts and payload. */
static struct gb_envelope *new_block(size_t headers, size_t size)
{
    size_t fixed = sizeof(struct gb_envelope) + headers * sizeof(struct gb_header);
    if (size > SIZE_MAX - fixed) return NULL;
    struct gb_envelope *e = malloc(fixed + size);
    if (e == NULL) return NULL;
    *e = (struct gb_envelope){
        .headers = (struct gb_header *)(void *)(e + 1),
        .header_capacity = headers,
        .refs = 1,
        .free_at = (char *)e + fixed,
        .free_size = size,
    };
    return e;
}

struct gb_err gb_envelope_new(size_t size_hint, struct gb_envelope **out)
{
    struct gb_envelope *e = new_block(HEADERS_FIRST, size_hint);
    if (e == NULL) return gb_err_no_memory("envelope");
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
    if (size <= e->free_size) {
        char *p = e->free_at;
        e->free_at += size;
        e->free_size -= size;
        return p;
    }
    size_t room = size < CHUNK_MIN ? CHUNK_MIN : size;
    if (room > SIZE_MAX - sizeof(struct gb_envelope_chunk)) return NULL;
    struct gb_envelope_chunk *c = malloc(sizeof *c + room);
    if (c == NULL) return NULL;
    c->next = e->chunks;
    e->chunks = c;
    char *p = (char *)(c + 1);
    if (room - size > e->free_size) { /* go on where more is left */
        e->free_at = p + size;
        e->free_size = room - size;
    }
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
    char *p = take(e, size);
    if (p == NULL) return NULL;
    e->payload = gb_bytes(p, size);
    return (uint8_t *)p;
}

char *gb_envelope_alloc(struct gb_envelope *e, size_t size)
{
    GB_ASSERT(e->refs == 1);
    return take(e, size);
}

/* The size decides most comparisons without a call. */
static struct gb_header *find(const struct gb_envelope *e, struct gb_bytes name)
{
    for (size_t i = 0; i < e->header_count; i++) {
        struct gb_header *h = &e->headers[i];
        if (h->name.size == name.size && gb_bytes_equal(h->name, name)) return h;
    }
    return NULL;
}

/* The old array is left behind in the envelope's memory: at most as much again in all. */
static bool grow_headers(struct gb_envelope *e)
{
    size_t capacity = e->header_capacity * 2;
    size_t align = _Alignof(struct gb_header);
    char *p = take(e, capacity * sizeof *e->headers + align);
    if (p == NULL) return false;
    size_t off = (uintptr_t)p % align;
    struct gb_header *grown = (struct gb_header *)(void *)(off == 0 ? p : p + (align - off));
    memcpy(grown, e->headers, e->header_count * sizeof *grown);
    e->headers = grown;
    e->header_capacity = capacity;
    return true;
}

static bool has_text(enum gb_value_kind kind)
{
    return kind == GB_VALUE_TEXT || kind == GB_VALUE_DECIMAL || kind == GB_VALUE_BYTES;
}

/* Makes sure that one more header fits. */
static struct gb_err room_for_header(struct gb_envelope *e)
{
    if (e->header_count == GB_ENVELOPE_HEADERS_MAX) {
        return gb_err(GB_PAYLOAD_TOO_LARGE, "a message may have at most %d headers",
                      GB_ENVELOPE_HEADERS_MAX);
    }
    if (e->header_count == e->header_capacity && !grow_headers(e)) {
        return gb_err_no_memory("envelope headers");
    }
    return gb_ok();
}

struct gb_err gb_envelope_put(struct gb_envelope *e, struct gb_bytes name, struct gb_value value)
{
    GB_ASSERT(e->refs == 1);
    struct gb_header *h = find(e, name);
    struct gb_err err = h == NULL ? room_for_header(e) : gb_ok();
    if (gb_failed(err)) return err;
    struct gb_bytes text = has_text(value.kind) ? value.text : gb_bytes(NULL, 0);
    if (!copy_bytes(e, text, &value.text)) return gb_err_no_memory("envelope header");
    if (h == NULL) {
        if (!copy_bytes(e, name, &name)) return gb_err_no_memory("envelope header");
        h = &e->headers[e->header_count++];
        h->name = name;
    }
    h->value = value;
    return gb_ok();
}

struct gb_err gb_envelope_put_view(struct gb_envelope *e, struct gb_bytes name,
                                   struct gb_value value)
{
    GB_ASSERT(e->refs == 1);
    struct gb_header *h = find(e, name);
    struct gb_err err = h == NULL ? room_for_header(e) : gb_ok();
    if (gb_failed(err)) return err;
    if (h == NULL) {
        h = &e->headers[e->header_count++];
        h->name = name;
    }
    h->value = value;
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

const struct gb_value *gb_envelope_find(const struct gb_envelope *e, struct gb_bytes name)
{
    const struct gb_header *h = find(e, name);
    return h == NULL ? NULL : &h->value;
}

const struct gb_value *gb_envelope_get(const struct gb_envelope *e, const char *name)
{
    return gb_envelope_find(e, gb_bytes_c(name));
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

static size_t text_size(const struct gb_envelope *e)
{
    size_t size = e->id.size + e->subject.size + e->payload.size;
    for (size_t i = 0; i < e->header_count; i++) {
        size += e->headers[i].name.size + e->headers[i].value.text.size;
    }
    return size;
}

size_t gb_envelope_size(const struct gb_envelope *e)
{
    return sizeof *e + e->header_count * sizeof *e->headers + text_size(e);
}

/* Room was made for all of it: it can't fail. */
static struct gb_bytes copy_into(char **at, struct gb_bytes from)
{
    if (from.size == 0) return gb_bytes(NULL, 0);
    char *p = *at;
    memcpy(p, from.data, from.size);
    *at += from.size;
    return gb_bytes(p, from.size);
}

struct gb_err gb_envelope_copy(const struct gb_envelope *e, struct gb_envelope **out)
{
    size_t headers = e->header_count < HEADERS_FIRST ? HEADERS_FIRST : e->header_count;
    size_t size = text_size(e);
    struct gb_envelope *copy = new_block(headers, size + SPARE);
    if (copy == NULL) return gb_err_no_memory("envelope");
    char *at = copy->free_at;
    copy->id = copy_into(&at, e->id);
    copy->subject = copy_into(&at, e->subject);
    copy->payload = copy_into(&at, e->payload);
    for (size_t i = 0; i < e->header_count; i++) {
        struct gb_header *h = &copy->headers[i];
        *h = e->headers[i];
        h->name = copy_into(&at, e->headers[i].name);
        h->value.text = copy_into(&at, e->headers[i].value.text);
    }
    GB_ASSERT(at == copy->free_at + size);
    copy->free_at = at;
    copy->free_size = SPARE;
    copy->header_count = e->header_count;
    copy->created_at_ms = e->created_at_ms;
    copy->expires_at_ms = e->expires_at_ms;
    *out = copy;
    return gb_ok();
}
