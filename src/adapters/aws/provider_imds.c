#include <string.h>
#include <strings.h>

#include "adapters/aws/aws_provider.h"
#include "base/duration.h"

/* Instance metadata, version 2 only (spec 04 A4.7): nothing is read without a token. */
enum { TOKEN_STAGE = 0, ROLE_STAGE, DOCUMENT_STAGE, TAKE_STAGE };
static const char roles_path[] = "/latest/meta-data/iam/security-credentials/";

static struct gb_err set_url(struct gb_aws_fetch *f, const char *path, struct gb_bytes more)
{
    const char *base = gb_aws_fetch_env(f, "AWS_EC2_METADATA_SERVICE_ENDPOINT");
    struct gb_str url = {0};
    gb_str_append_c(&url, base == NULL ? "http://169.254.169.254" : base);
    if (url.size > 0 && !url.failed && url.data[url.size - 1] == '/') url.size--;
    gb_str_append_c(&url, path);
    gb_str_append(&url, more);
    struct gb_err err = gb_str_check(&url, "metadata URL");
    gb_str_deinit(&f->url);
    f->url = url;
    return err;
}

static void request(struct gb_aws_fetch *f, const char *method)
{
    gb_aws_fetch_request(f, method, f->url.data);
    f->http.connect_timeout_ns = GB_SEC;
}

/* The answer as one line of printable text, or empty. */
static struct gb_bytes line_of(const struct gb_aws_fetch *f)
{
    struct gb_bytes text = gb_str_bytes(&f->http.answer);
    const uint8_t *end = text.size == 0 ? NULL : memchr(text.data, '\n', text.size);
    if (end != NULL) text.size = (size_t)(end - text.data);
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] <= ' ' || text.data[i] > '~') return gb_bytes(NULL, 0);
    }
    return text;
}

static enum gb_aws_step ask_token(struct gb_aws_fetch *f)
{
    const char *disabled = gb_aws_fetch_env(f, "AWS_EC2_METADATA_DISABLED");
    if (disabled != NULL && strcasecmp(disabled, "true") == 0) return GB_AWS_SKIP;
    struct gb_err err = set_url(f, "/latest/api/token", gb_bytes(NULL, 0));
    if (gb_failed(err)) return gb_aws_fetch_fail(f, err);
    request(f, "PUT");
    gb_aws_fetch_header(f, "X-aws-ec2-metadata-token-ttl-seconds", "21600");
    return GB_AWS_REQUEST;
}

static enum gb_aws_step get(struct gb_aws_fetch *f, struct gb_bytes role)
{
    struct gb_err err = set_url(f, roles_path, role);
    if (gb_failed(err)) return gb_aws_fetch_fail(f, err);
    request(f, "GET");
    gb_aws_fetch_header(f, "X-aws-ec2-metadata-token", f->token.data);
    return GB_AWS_REQUEST;
}

/* Without the service, or without a role, this is no instance that gives credentials. */
static bool is_absent(const struct gb_aws_fetch *f)
{
    return gb_failed(f->http.op.result) || f->http.status == 404 || f->http.status == 403;
}

enum gb_aws_step gb_aws_provider_imds(struct gb_aws_fetch *f)
{
    static const char what[] = "instance metadata";
    if (f->stage == TOKEN_STAGE) return ask_token(f);
    if (f->stage == TAKE_STAGE) return gb_aws_fetch_fail(f, gb_aws_fetch_document(f, what));
    if (is_absent(f)) return GB_AWS_SKIP;
    struct gb_err err = gb_aws_fetch_answer(f, what);
    if (gb_failed(err)) return gb_aws_fetch_fail(f, err);
    struct gb_bytes line = line_of(f);
    if (line.size == 0) {
        return gb_aws_fetch_fail(f, gb_err(GB_TEMPORARY_AUTH_FAILURE,
                                           "instance metadata: malformed token or role name"));
    }
    if (f->stage == DOCUMENT_STAGE) return get(f, line);
    gb_str_clear(&f->token);
    gb_str_append(&f->token, line);
    err = gb_str_check(&f->token, "metadata token");
    return gb_failed(err) ? gb_aws_fetch_fail(f, err) : get(f, gb_bytes(NULL, 0));
}
