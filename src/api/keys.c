#include "api/keys.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/json_read.h"
#include "base/map.h"

enum {
    KEYS_MAX = 64,
    KEY_BYTES_MIN = 16,
    NAME_BYTES_MAX = 64,
    FAILURES_MAX = 5,
    PEERS_MAX = 10000
};
static const uint64_t window_ns = 60 * 1000000000ull;

struct peer {
    uint64_t window_ends_ns;
    unsigned failures;
    char name[64];
};
struct gb_keys {
    uint8_t digests[KEYS_MAX][GB_SHA256_SIZE];
    size_t count;
    struct gb_map peers; /* name -> struct peer */
};

static struct gb_err add_key(struct gb_keys *k, struct gb_bytes key)
{
    if (key.size < KEY_BYTES_MIN) {
        return gb_err(GB_INVALID_CONFIG,
                      "an API key has %zu bytes; at least %d are required, make it longer",
                      key.size, KEY_BYTES_MIN);
    }
    if (k->count == KEYS_MAX)
        return gb_err(GB_INVALID_CONFIG, "at most %d API keys are accepted; remove some", KEYS_MAX);
    gb_sha256(key, k->digests[k->count++]);
    return gb_ok();
}

static bool is_name(struct gb_bytes name)
{
    if (name.size == 0 || name.size > NAME_BYTES_MAX) return false;
    for (size_t i = 0; i < name.size; i++) {
        if (name.data[i] == '\0' ||
            strchr("abcdefghijklmnopqrstuvwxyz0123456789._-", name.data[i]) == NULL)
            return false;
    }
    return true;
}

/* The reader stands behind the opening brace. */
static struct gb_err read_set(struct gb_keys *k, struct gb_json_reader *r, struct gb_str *value)
{
    enum gb_json_event event = gb_json_next(r);
    while (event == GB_JSON_KEY) {
        if (!is_name(r->text)) {
            return gb_err(GB_INVALID_CONFIG, "the name of an API key has 1-64 of a-z 0-9 . _ -; "
                                             "rename it");
        }
        if (gb_json_next(r) != GB_JSON_STRING) break;
        gb_wipe(value->data, value->size);
        gb_str_clear(value);
        if (!gb_json_string(r, value, NULL)) return gb_err_no_memory("API keys");
        struct gb_err err = add_key(k, gb_str_bytes(value));
        if (gb_failed(err)) return err;
        event = gb_json_next(r);
    }
    if (event == GB_JSON_OBJECT_END && gb_json_next(r) == GB_JSON_END) return gb_ok();
    return gb_err(GB_INVALID_CONFIG,
                  "the API keys begin with { but are no JSON object of names and "
                  "keys; correct them");
}

static struct gb_err add_text(struct gb_keys *k, const char *text)
{
    if (text == NULL || text[0] == '\0') return gb_ok();
    if (text[0] != '{') return add_key(k, gb_bytes_c(text));
    struct gb_json_reader r;
    struct gb_str value = {0};
    gb_json_init(&r, gb_bytes_c(text));
    (void)gb_json_next(&r); /* the brace */
    struct gb_err err = read_set(k, &r, &value);
    gb_wipe(value.data, value.size);
    gb_str_deinit(&value);
    return err;
}

struct gb_err gb_keys_new(const char *const *texts, size_t count, struct gb_keys **out)
{
    struct gb_keys *k = calloc(1, sizeof *k);
    struct gb_err err = gb_ok();
    if (k == NULL) return gb_err_no_memory("API keys");
    for (size_t i = 0; !gb_failed(err) && i < count; i++) err = add_text(k, texts[i]);
    if (gb_failed(err)) {
        gb_keys_free(k);
    } else {
        *out = k;
    }
    return err;
}

static void forget(struct gb_keys *k, struct peer *p)
{
    (void)gb_map_remove(&k->peers, gb_bytes_c(p->name));
    free(p);
}

/* The map keeps the order in which windows were opened. */
static struct peer *oldest(const struct gb_keys *k)
{
    size_t cursor = 0;
    struct gb_bytes name;
    void *p = NULL;
    (void)gb_map_next(&k->peers, &cursor, &name, &p);
    return p;
}

void gb_keys_free(struct gb_keys *k)
{
    if (k == NULL) return;
    while (k->peers.count > 0) forget(k, oldest(k));
    gb_map_deinit(&k->peers);
    free(k);
}

bool gb_keys_any(const struct gb_keys *k)
{
    return k->count > 0;
}

/* Every digest is compared in full, whichever fits. */
static bool accepts(const struct gb_keys *k, struct gb_bytes key)
{
    uint8_t digest[GB_SHA256_SIZE];
    unsigned hits = 0;
    gb_sha256(key, digest);
    for (size_t i = 0; i < k->count; i++) {
        unsigned difference = 0;
        for (size_t b = 0; b < sizeof digest; b++)
            difference |= (unsigned)(digest[b] ^ k->digests[i][b]);
        hits += difference == 0;
    }
    return hits > 0;
}

static bool bearer_accepted(const struct gb_keys *k, const char *authorization)
{
    static const char scheme[] = "Bearer ";
    if (authorization == NULL || strncasecmp(authorization, scheme, sizeof scheme - 1) != 0)
        return false;
    return accepts(k, gb_bytes_c(authorization + sizeof scheme - 1));
}

/* NULL: out of memory; the peer is refused without being counted. */
static struct peer *track(struct gb_keys *k, const char *name, uint64_t now_ns)
{
    struct peer *p = gb_map_get(&k->peers, gb_bytes_c(name));
    if (p != NULL && p->window_ends_ns > now_ns) return p;
    if (p != NULL) forget(k, p);
    if (k->peers.count >= PEERS_MAX) forget(k, oldest(k));
    p = calloc(1, sizeof *p);
    if (p == NULL) return NULL;
    gb_bytes_show(gb_bytes_c(name), p->name, sizeof p->name);
    if (gb_failed(gb_map_put(&k->peers, gb_bytes_c(p->name), p))) {
        free(p);
        return NULL;
    }
    p->window_ends_ns = now_ns + window_ns;
    return p;
}

enum gb_keys_verdict gb_keys_check(struct gb_keys *k, const char *key, const char *authorization,
                                   const char *peer, uint64_t now_ns)
{
    bool ok = key != NULL && accepts(k, gb_bytes_c(key));
    ok |= bearer_accepted(k, authorization);
    if (ok) {
        struct peer *known = gb_map_get(&k->peers, gb_bytes_c(peer));
        if (known != NULL) forget(k, known);
        return GB_KEYS_OK;
    }
    struct peer *p = track(k, peer, now_ns);
    if (p == NULL) return GB_KEYS_REFUSED;
    if (p->failures >= FAILURES_MAX) return GB_KEYS_THROTTLED;
    p->failures++;
    return GB_KEYS_REFUSED;
}
