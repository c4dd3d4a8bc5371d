#ifndef GB_BASE_DIGEST_H
#define GB_BASE_DIGEST_H

#include "base/bytes.h"
#include "base/str.h"

/* Digests (on OpenSSL), hex, base64.
 * Owns:   nothing.
 * Thread: any.
 * Errors: decoders answer false for malformed input or when the buffer fails (its `failed` tells);
 *         digests cannot fail (a missing algorithm is an assertion). */

enum { GB_SHA256_SIZE = 32, GB_SHA256_HEX = 65, GB_MD5_SIZE = 16, GB_MD5_HEX = 33 };

void gb_sha256(struct gb_bytes input, uint8_t out[GB_SHA256_SIZE]);
void gb_hmac_sha256(struct gb_bytes key, struct gb_bytes input, uint8_t out[GB_SHA256_SIZE]);
void gb_md5(struct gb_bytes input, uint8_t out[GB_MD5_SIZE]);

void gb_hex(struct gb_bytes input, char *out); /* lower case; out has 2 * size + 1 bytes */
void gb_sha256_hex(struct gb_bytes input, char out[GB_SHA256_HEX]);
void gb_md5_hex(struct gb_bytes input, char out[GB_MD5_HEX]);

/* SHA-256 of a text that is never in one place; its state is overwritten at the end. */
struct gb_sha256_stream {
    uint64_t state[16]; /* private */
};
void gb_sha256_begin(struct gb_sha256_stream *s);
void gb_sha256_add(struct gb_sha256_stream *s, struct gb_bytes piece);
void gb_sha256_end(struct gb_sha256_stream *s, uint8_t out[GB_SHA256_SIZE]);

/* Incremental SHA-256 over parts, each preceded by its big-endian length of `length_bytes` (4 or
 * 8); used for derived ids (spec 03 §3.4, 03 §13, 05 §3). */
void gb_sha256_parts(const struct gb_bytes *parts, size_t count, unsigned length_bytes,
                     uint8_t out[GB_SHA256_SIZE]);
/* The same, then `tail` without a length (spec 03 §13). */
void gb_sha256_parts_tail(const struct gb_bytes *parts, size_t count, unsigned length_bytes,
                          struct gb_bytes tail, uint8_t out[GB_SHA256_SIZE]);

uint32_t gb_crc32(struct gb_bytes input); /* IEEE, as zlib */

void gb_base64_append(struct gb_str *out, struct gb_bytes input);    /* padded, standard */
void gb_base64url_append(struct gb_str *out, struct gb_bytes input); /* unpadded, url */
/* Strict: canonical padding for standard, none for url; no white space, no stray bits. False leaves
 * the text in `out` as it was. */
bool gb_base64_decode(struct gb_str *out, struct gb_bytes text);
bool gb_base64url_decode(struct gb_str *out, struct gb_bytes text);

/* Overwrites memory that held a secret; never optimised away. */
void gb_wipe(void *data, size_t size);

#endif
