#include <string.h>

#include "adapters/aws/aws_document.h"
#include "base/digest.h"
#include "base/duration.h"

/* A strict extractor for the two shapes of STS answers; what it does not know makes the answer
 * malformed. */
enum { DEPTH_MAX = 16, VALUE_BYTES_MAX = 16 * 1024 };

struct reader {
    const uint8_t *pos, *end;
    struct gb_bytes stack[DEPTH_MAX];
    size_t depth;
    struct gb_aws_document doc;
    struct gb_str expiration, error_code;
};

static bool is_name_char(uint8_t c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.' || c == ':';
}

static bool is_space(uint8_t c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static struct gb_bytes name(struct reader *r)
{
    const uint8_t *start = r->pos;
    while (r->pos < r->end && is_name_char(*r->pos)) r->pos++;
    return gb_bytes(start, (size_t)(r->pos - start));
}

/* Where the text of the innermost element goes; NULL: nowhere. */
static struct gb_str *place(struct reader *r)
{
    if (r->depth < 2) return NULL;
    struct gb_bytes own = r->stack[r->depth - 1];
    struct gb_bytes parent = r->stack[r->depth - 2];
    if (gb_bytes_equal_c(parent, "Error") && gb_bytes_equal_c(own, "Code")) return &r->error_code;
    if (!gb_bytes_equal_c(parent, "Credentials")) return NULL;
    if (gb_bytes_equal_c(own, "AccessKeyId")) return &r->doc.access_key_id;
    if (gb_bytes_equal_c(own, "SecretAccessKey")) return &r->doc.secret_access_key;
    if (gb_bytes_equal_c(own, "SessionToken")) return &r->doc.token;
    if (gb_bytes_equal_c(own, "Expiration")) return &r->expiration;
    return NULL;
}

/* The five predefined entities; others, and numeric ones, never occur in what is read. */
static bool entity(struct reader *r, struct gb_str *out)
{
    static const struct {
        const char *text;
        char c;
    } entities[] = {
        {"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&apos;", '\''}};
    for (size_t i = 0; i < sizeof entities / sizeof entities[0]; i++) {
        size_t size = strlen(entities[i].text);
        if ((size_t)(r->end - r->pos) < size || memcmp(r->pos, entities[i].text, size) != 0)
            continue;
        r->pos += size;
        if (out != NULL) gb_str_append_char(out, entities[i].c);
        return true;
    }
    return false;
}

static bool text(struct reader *r)
{
    struct gb_str *out = place(r);
    while (r->pos < r->end && *r->pos != '<') {
        if (*r->pos == '&') {
            /* Messages may hold numeric entities; only what is kept must be understood. */
            if (!entity(r, out)) {
                if (out != NULL) return false;
                r->pos++;
            }
            continue;
        }
        if (r->depth == 0 && !is_space(*r->pos)) return false;
        if (out != NULL) gb_str_append_char(out, (char)*r->pos);
        r->pos++;
    }
    return true;
}

static bool end_tag(struct reader *r)
{
    r->pos += 2;
    struct gb_bytes closing = name(r);
    while (r->pos < r->end && is_space(*r->pos)) r->pos++;
    if (r->depth == 0 || r->pos == r->end || *r->pos != '>' ||
        !gb_bytes_equal(closing, r->stack[r->depth - 1]))
        return false;
    r->pos++;
    r->depth--;
    return true;
}

static bool start_tag(struct reader *r)
{
    r->pos++;
    struct gb_bytes opened = name(r);
    if (opened.size == 0 || r->depth == DEPTH_MAX) return false;
    bool quoted = false;
    bool empty = false;
    for (; r->pos < r->end && (quoted || *r->pos != '>'); r->pos++) { /* attributes: xmlns */
        if (*r->pos == '"') quoted = !quoted;
        if (!quoted && *r->pos == '<') return false;
        empty = *r->pos == '/';
    }
    if (r->pos == r->end) return false;
    r->pos++;
    if (!empty) r->stack[r->depth++] = opened;
    return true;
}

static bool declaration(struct reader *r)
{
    static const char begin[] = "<?xml";
    if ((size_t)(r->end - r->pos) < sizeof begin || memcmp(r->pos, begin, sizeof begin - 1) != 0)
        return true;
    const uint8_t *close = memmem(r->pos, (size_t)(r->end - r->pos), "?>", 2);
    if (close == NULL) return false;
    r->pos = close + 2;
    return true;
}

static bool read_all(struct reader *r)
{
    bool any = false;
    if (!declaration(r)) return false;
    while (r->pos < r->end) {
        if (*r->pos != '<') {
            if (!text(r)) return false;
            continue;
        }
        if (any && r->depth == 0) return false; /* a second root */
        any = true;
        bool closes = r->end - r->pos > 1 && r->pos[1] == '/';
        if (!(closes ? end_tag(r) : start_tag(r))) return false;
    }
    return any && r->depth == 0;
}

static struct gb_err check(struct reader *r, bool well_formed)
{
    if (!well_formed) return gb_err(GB_TEMPORARY_AUTH_FAILURE, "STS: the answer is malformed XML");
    if (r->doc.access_key_id.failed || r->doc.secret_access_key.failed || r->doc.token.failed ||
        r->expiration.failed || r->error_code.failed)
        return gb_err(GB_UNAVAILABLE, "STS: a value is too long, or out of memory");
    if (r->error_code.size > 0) {
        for (size_t i = 0; i < r->error_code.size; i++) {
            if (!is_name_char((uint8_t)r->error_code.data[i])) r->error_code.data[i] = '?';
        }
        return gb_err(GB_TEMPORARY_AUTH_FAILURE,
                      "STS refused with %.80s; check the role's trust policy", r->error_code.data);
    }
    if (r->doc.access_key_id.size == 0 || r->doc.secret_access_key.size == 0 ||
        r->doc.token.size == 0 || !gb_time_parse(gb_str_bytes(&r->expiration), &r->doc.expires_ms))
        return gb_err(GB_TEMPORARY_AUTH_FAILURE, "STS: the answer has no complete Credentials");
    return gb_ok();
}

struct gb_err gb_aws_sts_parse(struct gb_bytes xml, struct gb_aws_document *out)
{
    struct reader r = {.pos = xml.data,
                       .end = xml.size == 0 ? xml.data : xml.data + xml.size,
                       .doc = {.access_key_id.size_max = VALUE_BYTES_MAX,
                               .secret_access_key.size_max = VALUE_BYTES_MAX,
                               .token.size_max = VALUE_BYTES_MAX},
                       .expiration.size_max = VALUE_BYTES_MAX,
                       .error_code.size_max = VALUE_BYTES_MAX};
    struct gb_err err = check(&r, read_all(&r));
    if (!gb_failed(err)) {
        gb_aws_document_deinit(out);
        *out = r.doc;
    } else {
        gb_aws_document_deinit(&r.doc);
    }
    gb_str_deinit(&r.expiration);
    gb_str_deinit(&r.error_code);
    return err;
}
