#include "adapters/aws/sigv4.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/duration.h"

enum { DATE_SIZE = 8, SCOPE_MAX = 96 };

/* --- canonical request --- */

static bool is_unreserved(uint8_t c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.' || c == '~';
}

static void append_encoded(struct gb_str *out, struct gb_bytes segment)
{
    static const char digits[] = "0123456789ABCDEF";
    for (size_t i = 0; i < segment.size; i++) {
        uint8_t c = segment.data[i];
        if (is_unreserved(c)) {
            gb_str_append_char(out, (char)c);
            continue;
        }
        gb_str_append_char(out, '%');
        gb_str_append_char(out, digits[c >> 4]);
        gb_str_append_char(out, digits[c & 15]);
    }
}

/* The path segment at `*pos`, without its slash; false at the end. */
static bool next_segment(struct gb_bytes path, size_t *pos, struct gb_bytes *out)
{
    if (*pos > path.size) return false;
    size_t start = *pos;
    size_t end = start;
    while (end < path.size && path.data[end] != '/') end++;
    *out = gb_bytes(path.data + start, end - start);
    *pos = end + 1;
    return true;
}

/* As botocore: "." and empty segments vanish, ".." takes the one before it; the path, encoded
 * already on the request line, is encoded once more. */
static void append_path(struct gb_str *out, struct gb_bytes path)
{
    if (path.size == 0) {
        gb_str_append_char(out, '/');
        return;
    }
    size_t base = out->size;
    size_t pos = 0;
    struct gb_bytes segment;
    while (next_segment(path, &pos, &segment)) {
        if (segment.size == 0 || gb_bytes_equal_c(segment, ".")) continue;
        if (gb_bytes_equal_c(segment, "..")) {
            while (out->size > base && out->data[out->size - 1] != '/') out->size--;
            if (out->size > base) out->size--;
            continue;
        }
        gb_str_append_char(out, '/');
        append_encoded(out, segment);
        if (out->failed) return;
    }
    if (out->size == base || path.data[path.size - 1] == '/') gb_str_append_char(out, '/');
}

static int compare_pairs(const void *a, const void *b)
{
    const struct gb_bytes *x = a;
    const struct gb_bytes *y = b;
    const uint8_t *x_equals = x->size == 0 ? NULL : memchr(x->data, '=', x->size);
    const uint8_t *y_equals = y->size == 0 ? NULL : memchr(y->data, '=', y->size);
    size_t x_key = x_equals == NULL ? x->size : (size_t)(x_equals - x->data);
    size_t y_key = y_equals == NULL ? y->size : (size_t)(y_equals - y->data);
    int by_key = gb_bytes_compare(gb_bytes(x->data, x_key), gb_bytes(y->data, y_key));
    if (by_key != 0) return by_key;
    size_t x_value = x_equals == NULL ? x->size : x_key + 1;
    size_t y_value = y_equals == NULL ? y->size : y_key + 1;
    return gb_bytes_compare(gb_bytes(x->data + x_value, x->size - x_value),
                            gb_bytes(y->data + y_value, y->size - y_value));
}

/* Pairs sorted by name, then value; "name" without '=' is signed as "name=". The query arrives
 * percent-encoded, as it stands on the request line, and stays as it is. */
static struct gb_err append_query(struct gb_str *out, struct gb_bytes query)
{
    if (query.size == 0) return gb_ok();
    size_t count = 1;
    for (size_t i = 0; i < query.size; i++) count += query.data[i] == '&';
    struct gb_bytes *pairs = calloc(count, sizeof *pairs);
    if (pairs == NULL) return gb_err_no_memory("canonical query");
    size_t start = 0;
    size_t n = 0;
    for (size_t i = 0; i <= query.size; i++) {
        if (i < query.size && query.data[i] != '&') continue;
        pairs[n++] = gb_bytes(query.data + start, i - start);
        start = i + 1;
    }
    qsort(pairs, count, sizeof *pairs, compare_pairs);
    for (size_t i = 0; i < count; i++) {
        if (i > 0) gb_str_append_char(out, '&');
        gb_str_append(out, pairs[i]);
        if (pairs[i].size == 0 || memchr(pairs[i].data, '=', pairs[i].size) == NULL)
            gb_str_append_char(out, '=');
    }
    free(pairs);
    return gb_ok();
}

static uint8_t lower(uint8_t c)
{
    return c >= 'A' && c <= 'Z' ? (uint8_t)(c + 32) : c;
}

static int compare_names(struct gb_bytes a, struct gb_bytes b)
{
    size_t shorter = a.size < b.size ? a.size : b.size;
    for (size_t i = 0; i < shorter; i++) {
        int difference = lower(a.data[i]) - lower(b.data[i]);
        if (difference != 0) return difference;
    }
    return a.size < b.size ? -1 : a.size > b.size;
}

static void append_lower(struct gb_str *out, struct gb_bytes name)
{
    for (size_t i = 0; i < name.size; i++) gb_str_append_char(out, (char)lower(name.data[i]));
}

static bool is_space(uint8_t c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Outer spaces go, inner runs of them become one. */
static void append_folded(struct gb_str *out, struct gb_bytes value)
{
    bool begun = false;
    bool space = false;
    for (size_t i = 0; i < value.size; i++) {
        if (is_space(value.data[i])) {
            space = begun;
            continue;
        }
        if (space) gb_str_append_char(out, ' ');
        gb_str_append_char(out, (char)value.data[i]);
        begun = true;
        space = false;
    }
}

/* Order of the headers by lower-case name; those of one name keep theirs. */
static void sort_headers(const struct gb_sigv4_request *q, uint8_t order[GB_SIGV4_HEADERS_MAX])
{
    for (size_t i = 0; i < q->header_count; i++) {
        size_t at = i;
        while (at > 0 && compare_names(q->headers[order[at - 1]].name, q->headers[i].name) > 0) {
            order[at] = order[at - 1];
            at--;
        }
        order[at] = (uint8_t)i;
    }
}

static bool same_name_as_previous(const struct gb_sigv4_request *q, const uint8_t *order, size_t i)
{
    return i > 0 && compare_names(q->headers[order[i - 1]].name, q->headers[order[i]].name) == 0;
}

static void append_headers(struct gb_str *out, const struct gb_sigv4_request *q,
                           const uint8_t *order)
{
    for (size_t i = 0; i < q->header_count; i++) {
        const struct gb_sigv4_header *h = &q->headers[order[i]];
        if (same_name_as_previous(q, order, i)) {
            gb_str_append_char(out, ',');
        } else {
            if (i > 0) gb_str_append_char(out, '\n');
            append_lower(out, h->name);
            gb_str_append_char(out, ':');
        }
        append_folded(out, h->value);
    }
    gb_str_append_char(out, '\n');
}

static void append_signed_names(struct gb_str *out, const struct gb_sigv4_request *q,
                                const uint8_t *order)
{
    for (size_t i = 0; i < q->header_count; i++) {
        if (same_name_as_previous(q, order, i)) continue;
        if (i > 0) gb_str_append_char(out, ';');
        append_lower(out, q->headers[order[i]].name);
    }
}

static struct gb_err canonical_digest(const struct gb_sigv4_request *q, const uint8_t *order,
                                      char digest[GB_SHA256_HEX])
{
    struct gb_str text = {0};
    char body[GB_SHA256_HEX];
    (void)gb_str_reserve(&text, 1024); /* the usual request fits: one allocation */
    gb_str_append_c(&text, q->method);
    gb_str_append_char(&text, '\n');
    append_path(&text, q->path);
    gb_str_append_char(&text, '\n');
    struct gb_err err = append_query(&text, q->query);
    gb_str_append_char(&text, '\n');
    append_headers(&text, q, order);
    gb_str_append_char(&text, '\n');
    append_signed_names(&text, q, order);
    gb_str_append_char(&text, '\n');
    gb_sha256_hex(q->body, body);
    gb_str_append_c(&text, body);
    if (!gb_failed(err)) err = gb_str_check(&text, "canonical request");
    if (!gb_failed(err)) gb_sha256_hex(gb_str_bytes(&text), digest);
    if (text.data != NULL) gb_wipe(text.data, text.capacity); /* may hold a session token */
    gb_str_deinit(&text);
    return err;
}

/* --- key and signature --- */

static void derive_key(const struct gb_sigv4_request *q, const char *secret, const char *date,
                       uint8_t out[GB_SHA256_SIZE], struct gb_str *scratch)
{
    uint8_t key[GB_SHA256_SIZE];
    gb_str_append_c(scratch, "AWS4");
    gb_str_append_c(scratch, secret);
    gb_hmac_sha256(gb_str_bytes(scratch), gb_bytes(date, DATE_SIZE), key);
    gb_hmac_sha256(gb_bytes(key, sizeof key), gb_bytes_c(q->region), key);
    gb_hmac_sha256(gb_bytes(key, sizeof key), gb_bytes_c(q->service), key);
    gb_hmac_sha256(gb_bytes(key, sizeof key), gb_bytes_c("aws4_request"), out);
    gb_wipe(key, sizeof key);
}

static struct gb_err signing_key(const struct gb_sigv4_request *q,
                                 const struct gb_sigv4_credentials *c, const char *scope,
                                 struct gb_sigv4_key *key)
{
    uint8_t secret[GB_SHA256_SIZE];
    gb_sha256(gb_bytes_c(c->secret_access_key), secret);
    if (key->valid && strcmp(key->scope, scope) == 0 &&
        memcmp(key->secret_sha256, secret, sizeof secret) == 0)
        return gb_ok();
    struct gb_str scratch = {0};
    (void)gb_str_reserve(&scratch, strlen(c->secret_access_key) + 4);
    struct gb_err err = gb_str_check(&scratch, "signing key");
    if (!gb_failed(err)) {
        derive_key(q, c->secret_access_key, scope, key->key, &scratch);
        memcpy(key->secret_sha256, secret, sizeof secret);
        memcpy(key->scope, scope, strlen(scope) + 1);
        key->valid = true;
        gb_wipe(scratch.data, scratch.capacity);
    }
    gb_str_deinit(&scratch);
    return err;
}

struct gb_err gb_sigv4_sign(const struct gb_sigv4_request *q, const struct gb_sigv4_credentials *c,
                            struct gb_sigv4_key *key, struct gb_str *authorization)
{
    char time[GB_TIME_TEXT_MAX];
    char scope[SCOPE_MAX];
    char digest[GB_SHA256_HEX];
    char to_sign[GB_TIME_TEXT_MAX + SCOPE_MAX + GB_SHA256_HEX + 24];
    uint8_t order[GB_SIGV4_HEADERS_MAX];
    uint8_t signature[GB_SHA256_SIZE];
    if (q->header_count > GB_SIGV4_HEADERS_MAX) {
        return gb_err(GB_NOT_SUPPORTED, "%zu headers to sign, at most %d are possible",
                      q->header_count, GB_SIGV4_HEADERS_MAX);
    }
    gb_time_print_basic(q->time_ms, time);
    int size = snprintf(scope, sizeof scope, "%.*s/%s/%s/aws4_request", DATE_SIZE, time, q->region,
                        q->service);
    if (size < 0 || (size_t)size >= sizeof scope)
        return gb_err(GB_INVALID_CONFIG, "region and service name are too long to sign for");
    sort_headers(q, order);
    struct gb_err err = canonical_digest(q, order, digest);
    if (gb_failed(err)) return err;
    err = signing_key(q, c, scope, key);
    if (gb_failed(err)) return err;
    size = snprintf(to_sign, sizeof to_sign, "AWS4-HMAC-SHA256\n%s\n%s\n%s", time, scope, digest);
    GB_ASSERT(size > 0 && (size_t)size < sizeof to_sign);
    gb_hmac_sha256(gb_bytes(key->key, sizeof key->key), gb_bytes(to_sign, (size_t)size), signature);
    gb_hex(gb_bytes(signature, sizeof signature), digest);
    gb_str_append_c(authorization, "AWS4-HMAC-SHA256 Credential=");
    gb_str_append_c(authorization, c->access_key_id);
    gb_str_append_char(authorization, '/');
    gb_str_append_c(authorization, scope);
    gb_str_append_c(authorization, ", SignedHeaders=");
    append_signed_names(authorization, q, order);
    gb_str_append_c(authorization, ", Signature=");
    gb_str_append_c(authorization, digest);
    return gb_str_check(authorization, "Authorization header");
}
