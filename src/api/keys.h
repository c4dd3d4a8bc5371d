#ifndef GB_API_KEYS_H
#define GB_API_KEYS_H

#include "base/digest.h"
#include "base/err.h"

/* Who may ask (spec 08 §4): the accepted API keys, and the throttle of peers that keep failing.
 * Owns:   digests of the keys, never the keys; the tracked peers.
 * Thread: loop thread only. Time is given.
 * Errors: gb_keys_new: GB_INVALID_CONFIG (a key of less than 16 bytes, a set that is no JSON object
 *         of names and keys), GB_UNAVAILABLE. The text never holds a key. */
struct gb_keys;

enum gb_keys_verdict { GB_KEYS_OK = 0, GB_KEYS_REFUSED, GB_KEYS_THROTTLED };

/* Each text is one key, or a JSON object name -> key; NULL or "": none. */
struct gb_err gb_keys_new(const char *const *texts, size_t count, struct gb_keys **out);
void gb_keys_free(struct gb_keys *k); /* NULL ok */
bool gb_keys_any(const struct gb_keys *k);
/* `key` is that of X-API-Key, `authorization` the whole header; NULL: absent. After five failures
 * of a peer within a minute further failures are GB_KEYS_THROTTLED; success forgets them. */
enum gb_keys_verdict gb_keys_check(struct gb_keys *k, const char *key, const char *authorization,
                                   const char *peer, uint64_t now_ns);

#endif
