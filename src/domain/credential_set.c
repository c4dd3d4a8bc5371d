#include "domain/credential_set.h"

#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "base/json_read.h"
#include "base/str.h"

enum { TEXT_BYTES_MAX = 1 << 20 };

/* --- URI --- */

const char *gb_credential_scheme_name(enum gb_credential_scheme scheme)
{
    return scheme == GB_CREDENTIAL_FILE ? "file" : "pms";
}

static bool plain_segments(struct gb_bytes path)
{
    const char *at = (const char *)path.data;
    size_t start = 0;
    for (size_t i = 0; i <= path.size; i++) {
        if (i < path.size && at[i] != '/') continue;
        size_t size = i - start;
        if (size == 0 || (size == 1 && at[start] == '.') ||
            (size == 2 && at[start] == '.' && at[start + 1] == '.'))
            return false;
        start = i + 1;
    }
    return true;
}

struct gb_err gb_credential_uri_parse(const char *uri, enum gb_credential_scheme *scheme,
                                      struct gb_bytes *path)
{
    static const struct {
        const char *prefix;
        enum gb_credential_scheme scheme;
    } rows[] = {{"file://", GB_CREDENTIAL_FILE}, {"pms://", GB_CREDENTIAL_PMS}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        size_t size = strlen(rows[i].prefix);
        if (strncmp(uri, rows[i].prefix, size) != 0) continue;
        struct gb_bytes rest = gb_bytes_c(uri + size);
        if (!plain_segments(rest)) {
            return gb_err(GB_INVALID_CONFIG,
                          "credentials_uri (%s...): its path has an empty segment, \".\" or \"..\"",
                          rows[i].prefix);
        }
        *scheme = rows[i].scheme;
        *path = rest;
        return gb_ok();
    }
    return gb_err(GB_INVALID_CONFIG,
                  "credentials_uri has an unknown scheme; use file:// or pms://");
}

/* --- content --- */

static struct gb_err malformed(const char *what)
{
    return gb_err(GB_INVALID_PAYLOAD, "credentials: %s", what);
}

static void wipe_free(char *text)
{
    if (text == NULL) return;
    gb_wipe(text, strlen(text));
    free(text);
}

void gb_credential_set_deinit(struct gb_credential_set *c)
{
    wipe_free(c->username);
    wipe_free(c->password);
    wipe_free(c->cert_pem);
    wipe_free(c->key_pem);
    wipe_free(c->ca_pem);
    memset(c, 0, sizeof *c);
}

/* The current string as a text of its own in place of `*to`. */
static struct gb_err take(const struct gb_json_reader *r, char **to)
{
    struct gb_str text = {.size_max = TEXT_BYTES_MAX};
    /* Room for all of it at once: a buffer that grows leaves pieces of the secret behind. */
    if (r->text.size > TEXT_BYTES_MAX || gb_str_reserve(&text, r->text.size) == NULL) {
        gb_str_deinit(&text);
        return r->text.size > TEXT_BYTES_MAX ? malformed("a text is longer than 1 MiB")
                                             : gb_err_no_memory("credentials");
    }
    bool whole = gb_json_string(r, &text, NULL);
    if (whole && text.size == 0) {
        gb_str_deinit(&text);
        return gb_ok(); /* empty is absent */
    }
    if (!whole || memchr(text.data, '\0', text.size) != NULL) {
        gb_wipe(text.data, text.size);
        gb_str_deinit(&text);
        return whole ? malformed("a text holds a NUL character") : gb_err_no_memory("credentials");
    }
    wipe_free(*to);
    *to = gb_str_take(&text);
    return *to == NULL ? gb_err_no_memory("credentials") : gb_ok();
}

static struct gb_err add_pem(const struct gb_json_reader *r, char **to)
{
    char *more = NULL;
    struct gb_err err = take(r, &more);
    if (gb_failed(err) || more == NULL || *to == NULL) {
        if (more != NULL) *to = more;
        return err;
    }
    size_t size = strlen(*to) + strlen(more);
    char *both = size > TEXT_BYTES_MAX ? NULL : gb_asprintf("%s\n%s", *to, more);
    wipe_free(more);
    if (both == NULL) {
        return size > TEXT_BYTES_MAX ? malformed("the CA list is longer than 1 MiB")
                                     : gb_err_no_memory("credentials");
    }
    wipe_free(*to);
    *to = both;
    return gb_ok();
}

/* What a key's value may be. */
enum kind { TEXT, PEMS, FLAG, BLOCK };
struct key {
    const char *name;
    enum kind kind;
    size_t at; /* in struct gb_credential_set; of a block: none */
    const struct key *block;
};
#define AT(field) offsetof(struct gb_credential_set, field)

static struct gb_err read_object(struct gb_json_reader *r, const struct key *keys, size_t count,
                                 struct gb_credential_set *out, uint32_t *seen);

static struct gb_err wrong(const struct gb_json_reader *r, const struct key *k, const char *want)
{
    if (r->event == GB_JSON_ERROR) return malformed("no well-formed JSON");
    return gb_err(GB_INVALID_PAYLOAD, "credentials: \"%s\" is not %s", k->name, want);
}

static struct gb_err read_pems(struct gb_json_reader *r, const struct key *k, char **to)
{
    enum gb_json_event e = gb_json_next(r);
    if (e == GB_JSON_NULL) return gb_ok();
    if (e == GB_JSON_STRING) return add_pem(r, to);
    if (e != GB_JSON_ARRAY_BEGIN) return wrong(r, k, "a text or a list of texts");
    struct gb_err err = gb_ok();
    while (!gb_failed(err) && (e = gb_json_next(r)) == GB_JSON_STRING) err = add_pem(r, to);
    if (gb_failed(err)) return err;
    return e == GB_JSON_ARRAY_END ? gb_ok() : wrong(r, k, "a list of texts");
}

static struct gb_err read_value(struct gb_json_reader *r, const struct key *k,
                                struct gb_credential_set *out)
{
    enum { BLOCK_KEYS_MAX = 4 };
    char **text = (char **)(void *)((char *)out + k->at);
    if (k->kind == PEMS) return read_pems(r, k, text);
    enum gb_json_event e = gb_json_next(r);
    if (e == GB_JSON_NULL) return gb_ok();
    if (k->kind == TEXT) return e == GB_JSON_STRING ? take(r, text) : wrong(r, k, "a text");
    if (k->kind == FLAG) {
        if (e != GB_JSON_TRUE && e != GB_JSON_FALSE) return wrong(r, k, "true or false");
        out->insecure_skip_verify = e == GB_JSON_TRUE;
        return gb_ok();
    }
    size_t count = 0;
    while (count < BLOCK_KEYS_MAX && k->block[count].name != NULL) count++;
    uint32_t seen = 0;
    return e == GB_JSON_OBJECT_BEGIN ? read_object(r, k->block, count, out, &seen)
                                     : wrong(r, k, "an object");
}

/* Behind the `{`, up to its `}`; keys that nobody reads are passed over. A bit of `seen` for each
 * key that is there: one that stands twice is refused. */
static struct gb_err read_object(struct gb_json_reader *r, const struct key *keys, size_t count,
                                 struct gb_credential_set *out, uint32_t *seen)
{
    for (;;) {
        enum gb_json_event e = gb_json_next(r);
        if (e == GB_JSON_OBJECT_END) return gb_ok();
        if (e != GB_JSON_KEY) return malformed("no well-formed JSON");
        const struct key *k = NULL;
        for (size_t i = 0; i < count && k == NULL; i++) {
            if (!gb_json_text_is(r, keys[i].name)) continue;
            if ((*seen & 1u << i) != 0)
                return gb_err(GB_INVALID_PAYLOAD, "credentials: \"%s\" stands twice", keys[i].name);
            *seen |= 1u << i;
            k = &keys[i];
        }
        struct gb_err err = gb_ok();
        if (k != NULL) {
            err = read_value(r, k, out);
        } else if (!gb_json_skip(r)) {
            err = malformed("no well-formed JSON");
        }
        if (gb_failed(err)) return err;
    }
}

static struct gb_err read_document(struct gb_bytes json, const struct key *keys, size_t count,
                                   struct gb_credential_set *out)
{
    struct gb_json_reader r;
    uint32_t seen = 0;
    gb_json_init(&r, json);
    if (gb_json_next(&r) != GB_JSON_OBJECT_BEGIN) return malformed("no JSON object");
    struct gb_err err = read_object(&r, keys, count, out, &seen);
    if (!gb_failed(err) && gb_json_next(&r) != GB_JSON_END) err = malformed("text behind the JSON");
    return err;
}

/* Of half a set nobody could say what was meant. */
static struct gb_err check_set(const struct gb_credential_set *c)
{
    if (c->password != NULL && c->username == NULL)
        return malformed("a password without a username");
    if ((c->cert_pem == NULL) != (c->key_pem == NULL))
        return malformed("a certificate and its key come together; one of them is missing");
    if (c->username == NULL && c->cert_pem == NULL && c->ca_pem == NULL)
        return malformed("neither a username nor a certificate");
    return gb_ok();
}

static struct gb_err finish(struct gb_err err, struct gb_credential_set *set,
                            struct gb_credential_set *out)
{
    if (!gb_failed(err)) err = check_set(set);
    if (gb_failed(err)) {
        gb_credential_set_deinit(set);
    } else {
        *out = *set;
    }
    return err;
}

struct gb_err gb_credential_set_read_file(struct gb_bytes json, struct gb_credential_set *out)
{
    static const struct key password[] = {
        {"Username", TEXT, AT(username), NULL}, {"Password", TEXT, AT(password), NULL}, {0}};
    static const struct key tls[] = {{"CertPEM", TEXT, AT(cert_pem), NULL},
                                     {"KeyPEM", TEXT, AT(key_pem), NULL},
                                     {"CAPEMs", PEMS, AT(ca_pem), NULL},
                                     {"InsecureSkipVerify", FLAG, 0, NULL}};
    static const struct key parts[] = {
        {"Password", BLOCK, 0, password}, {"TLS", BLOCK, 0, tls}, {0}};
    static const struct key whole[] = {{"credentials", BLOCK, 0, parts}};
    struct gb_credential_set set = {0};
    return finish(read_document(json, whole, 1, &set), &set, out);
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static struct gb_err read_plain(struct gb_bytes value, struct gb_credential_set *out)
{
    const uint8_t *colon = value.size == 0 ? NULL : memchr(value.data, ':', value.size);
    if (colon == NULL) return malformed("neither JSON nor username:password");
    if (memchr(value.data, '\0', value.size) != NULL)
        return malformed("a text holds a NUL character");
    size_t size = (size_t)(colon - value.data);
    if (size == 0) return malformed("an empty username before the colon");
    out->username = gb_bytes_dup(gb_bytes(value.data, size));
    out->password = gb_bytes_dup(gb_bytes(colon + 1, value.size - size - 1));
    if (out->username == NULL || out->password == NULL) return gb_err_no_memory("credentials");
    return gb_ok();
}

/* `type` says which part counts where both are there. */
static struct gb_err keep_type(struct gb_credential_set *set, const char *type)
{
    if (type == NULL || set->username == NULL || set->cert_pem == NULL) return gb_ok();
    if (strcmp(type, "password") == 0) {
        wipe_free(set->cert_pem);
        wipe_free(set->key_pem);
        set->cert_pem = set->key_pem = NULL;
    } else if (strcmp(type, "tls") == 0 || strcmp(type, "certificate") == 0) {
        wipe_free(set->username);
        wipe_free(set->password);
        set->username = set->password = NULL;
    } else {
        return malformed("\"type\" is none of password, tls, certificate");
    }
    return gb_ok();
}

/* `type` is read by a second pass: it selects, and may stand behind what it selects. */
static struct gb_err read_type(struct gb_bytes json, char **out)
{
    struct gb_json_reader r;
    gb_json_init(&r, json);
    if (gb_json_next(&r) != GB_JSON_OBJECT_BEGIN) return gb_ok();
    while (gb_json_next(&r) == GB_JSON_KEY) {
        bool is_type = gb_json_text_is(&r, "type");
        if (!is_type && !gb_json_skip(&r)) break;
        if (!is_type) continue;
        enum gb_json_event e = gb_json_next(&r);
        if (e == GB_JSON_NULL) return gb_ok();
        return e == GB_JSON_STRING ? take(&r, out) : malformed("\"type\" is not a text");
    }
    return gb_ok();
}

struct gb_err gb_credential_set_read_parameter(struct gb_bytes value, struct gb_credential_set *out)
{
    static const struct key keys[] = {
        {"username", TEXT, AT(username), NULL},  {"user", TEXT, AT(username), NULL},
        {"password", TEXT, AT(password), NULL},  {"certPem", TEXT, AT(cert_pem), NULL},
        {"cert", TEXT, AT(cert_pem), NULL},      {"certificate", TEXT, AT(cert_pem), NULL},
        {"keyPem", TEXT, AT(key_pem), NULL},     {"key", TEXT, AT(key_pem), NULL},
        {"privateKey", TEXT, AT(key_pem), NULL}, {"caPems", PEMS, AT(ca_pem), NULL},
        {"ca", PEMS, AT(ca_pem), NULL}};
    struct gb_credential_set set = {0};
    while (value.size > 0 && is_blank((char)value.data[0]))
        value = gb_bytes(value.data + 1, value.size - 1);
    if (value.size == 0 || value.data[0] != '{') return finish(read_plain(value, &set), &set, out);
    char *type = NULL;
    struct gb_err err = read_document(value, keys, sizeof keys / sizeof keys[0], &set);
    if (!gb_failed(err)) err = read_type(value, &type);
    if (!gb_failed(err)) err = keep_type(&set, type);
    wipe_free(type);
    return finish(err, &set, out);
}
