#include "domain/outbox_record.h"

#include <stdlib.h>
#include <string.h>

struct gb_outbox_chunk {
    struct gb_outbox_chunk *next;
};

void gb_outbox_partition(struct gb_str *out, struct gb_bytes session_id, struct gb_bytes binding_id)
{
    bool session = session_id.size > 0;
    gb_str_append_c(out, session ? "SESSION#" : "BINDING#");
    gb_str_append(out, session ? session_id : binding_id);
}

struct gb_err gb_outbox_batch_new(size_t capacity, struct gb_outbox_batch **out)
{
    if (capacity > SIZE_MAX / sizeof(struct gb_outbox_record)) {
        return gb_err_no_memory("outbox batch");
    }
    struct gb_outbox_batch *b = calloc(1, sizeof *b);
    if (b == NULL) return gb_err_no_memory("outbox batch");
    b->records = calloc(capacity == 0 ? 1 : capacity, sizeof *b->records);
    if (b->records == NULL) {
        free(b);
        return gb_err_no_memory("outbox batch");
    }
    b->capacity = capacity;
    *out = b;
    return gb_ok();
}

static struct gb_bytes copy(char **at, struct gb_bytes from)
{
    if (from.size == 0) return gb_bytes(NULL, 0);
    char *p = *at;
    memcpy(p, from.data, from.size);
    *at += from.size;
    return gb_bytes(p, from.size);
}

struct gb_err gb_outbox_batch_add(struct gb_outbox_batch *b, const struct gb_outbox_record *record)
{
    if (b->count == b->capacity)
        return gb_err(GB_UNAVAILABLE, "outbox batch is full at %zu records", b->capacity);
    size_t size = record->id.size + record->route_id.size + record->binding_id.size +
                  record->session_id.size + record->address.size + record->dispatch_headers.size +
                  record->ordering_key.size;
    struct gb_outbox_chunk *c = malloc(sizeof *c + size);
    if (c == NULL) return gb_err_no_memory("outbox record");
    c->next = b->chunks;
    b->chunks = c;
    char *at = (char *)(c + 1);
    struct gb_outbox_record *r = &b->records[b->count++];
    *r = *record;
    r->id = copy(&at, record->id);
    r->route_id = copy(&at, record->route_id);
    r->binding_id = copy(&at, record->binding_id);
    r->session_id = copy(&at, record->session_id);
    r->address = copy(&at, record->address);
    r->dispatch_headers = copy(&at, record->dispatch_headers);
    r->ordering_key = copy(&at, record->ordering_key);
    return gb_ok();
}

void gb_outbox_batch_free(struct gb_outbox_batch *b)
{
    if (b == NULL) return;
    for (size_t i = 0; i < b->count; i++) gb_envelope_unref(b->records[i].envelope);
    while (b->chunks != NULL) {
        struct gb_outbox_chunk *next = b->chunks->next;
        free(b->chunks);
        b->chunks = next;
    }
    free(b->records);
    free(b);
}
