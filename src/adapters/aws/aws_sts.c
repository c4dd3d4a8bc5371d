#include "adapters/aws/aws_sts.h"

#include <ctype.h>
#include <string.h>

#include "adapters/aws/aws_document.h"
#include "base/duration.h"

enum { SESSION_NAME_MAX = 64 };
static const char form_type[] = "application/x-www-form-urlencoded; charset=utf-8";

static void append_form(struct gb_str *body, const char *key, struct gb_bytes value)
{
    static const char digits[] = "0123456789ABCDEF";
    gb_str_append_char(body, '&');
    gb_str_append_c(body, key);
    gb_str_append_char(body, '=');
    for (size_t i = 0; i < value.size; i++) {
        uint8_t c = value.data[i];
        if (isalnum(c) || c == '-' || c == '_' || c == '.' || c == '~') {
            gb_str_append_char(body, (char)c);
        } else {
            gb_str_append_char(body, '%');
            gb_str_append_char(body, digits[c >> 4]);
            gb_str_append_char(body, digits[c & 15]);
        }
    }
}

/* Given, or gobridge-<instance_id>; characters STS refuses become '-' (spec 04 A4.4). */
static void append_session_name(struct gb_str *body, const struct gb_aws_fetch *f,
                                struct gb_bytes given)
{
    char made[SESSION_NAME_MAX + 1];
    struct gb_str whole = {0};
    gb_str_append_c(&whole, "gobridge-");
    gb_str_append_c(&whole, f->cfg->instance_id == NULL ? "" : f->cfg->instance_id);
    struct gb_bytes source = given.size > 0 ? given : gb_str_bytes(&whole);
    size_t size = source.size < SESSION_NAME_MAX ? source.size : SESSION_NAME_MAX;
    for (size_t i = 0; i < size; i++) {
        uint8_t c = source.data[i];
        bool legal = c < 0x80 && (isalnum(c) || strchr("_+=,.@-", c) != NULL) && c != '\0';
        made[i] = legal ? (char)c : '-';
    }
    if (whole.failed) body->failed = true;
    gb_str_deinit(&whole);
    append_form(body, "RoleSessionName", gb_bytes(made, size));
}

static struct gb_err start(struct gb_aws_fetch *f, const char *action,
                           const struct gb_aws_role *role, struct gb_str *region)
{
    struct gb_aws_url url = {0};
    struct gb_str endpoint = {0};
    struct gb_err err = gb_aws_region(&f->cfg->env, f->cfg->region, f->cfg->profile, region);
    if (!gb_failed(err)) err = gb_aws_endpoint(&f->cfg->env, NULL, "sts", region->data, &endpoint);
    if (!gb_failed(err)) err = gb_aws_url_parse(endpoint.data, &url);
    gb_str_deinit(&endpoint);
    if (gb_failed(err)) return gb_err_in(err, "STS");
    gb_str_clear(&f->url);
    gb_str_append_c(&f->url, url.url);
    gb_aws_url_deinit(&url);
    err = gb_str_check(&f->url, "STS URL");
    if (gb_failed(err)) return err;
    gb_aws_fetch_request(f, "POST", f->url.data);
    gb_aws_fetch_header(f, "Content-Type", form_type);
    struct gb_str *body = &f->http.body;
    gb_str_appendf(body, "Action=%s&Version=2011-06-15", action);
    append_form(body, "RoleArn", role->arn);
    append_session_name(body, f, role->session_name);
    if (role->external_id.size > 0) append_form(body, "ExternalId", role->external_id);
    return gb_str_check(body, "STS request");
}

static struct gb_err sign(struct gb_aws_fetch *f, const char *region)
{
    struct gb_aws_url url = {0};
    struct gb_sigv4_key key = {0};
    struct gb_sigv4_credentials credentials = gb_aws_set_view(&f->set);
    struct gb_err err = gb_aws_url_parse(f->url.data, &url);
    if (gb_failed(err)) return err;
    int64_t now_ms = gb_reactor_wall_ms(f->cfg->reactor);
    char date[GB_TIME_TEXT_MAX];
    gb_time_print_basic(now_ms, date);
    gb_str_clear(&f->date);
    gb_str_append_c(&f->date, date);
    gb_str_clear(&f->token);
    gb_str_append_c(&f->token, credentials.session_token == NULL ? "" : credentials.session_token);
    gb_str_clear(&f->authorization);
    struct gb_sigv4_header headers[] = {
        {gb_bytes_c("content-type"), gb_bytes_c(form_type)},
        {gb_bytes_c("host"), gb_bytes_c(url.host)},
        {gb_bytes_c("x-amz-date"), gb_bytes_c(date)},
        {gb_bytes_c("x-amz-security-token"), gb_str_bytes(&f->token)},
    };
    struct gb_sigv4_request q = {
        .method = "POST",
        .path = gb_bytes_c(url.path),
        .headers = headers,
        .header_count = f->token.size > 0 ? 4 : 3,
        .body = gb_str_bytes(&f->http.body),
        .time_ms = now_ms,
        .region = region,
        .service = "sts",
    };
    err = gb_sigv4_sign(&q, &credentials, &key, &f->authorization);
    gb_wipe(&key, sizeof key);
    gb_aws_url_deinit(&url);
    if (!gb_failed(err)) err = gb_str_check(&f->date, "STS request");
    if (!gb_failed(err)) err = gb_str_check(&f->token, "STS request");
    if (gb_failed(err)) return err;
    gb_aws_fetch_header(f, "X-Amz-Date", f->date.data);
    if (f->token.size > 0) gb_aws_fetch_header(f, "X-Amz-Security-Token", f->token.data);
    gb_aws_fetch_header(f, "Authorization", f->authorization.data);
    return gb_ok();
}

struct gb_err gb_aws_sts_assume_role(struct gb_aws_fetch *f, const struct gb_aws_role *role)
{
    struct gb_str region = {0};
    struct gb_err err = start(f, "AssumeRole", role, &region);
    if (!gb_failed(err)) err = sign(f, region.data);
    gb_str_deinit(&region);
    return err;
}

struct gb_err gb_aws_sts_web_identity(struct gb_aws_fetch *f, const struct gb_aws_role *role,
                                      struct gb_bytes token)
{
    struct gb_str region = {0};
    struct gb_err err = start(f, "AssumeRoleWithWebIdentity", role, &region);
    gb_str_deinit(&region);
    if (gb_failed(err)) return err;
    append_form(&f->http.body, "WebIdentityToken", token);
    return gb_str_check(&f->http.body, "STS request");
}

struct gb_err gb_aws_sts_take(struct gb_aws_fetch *f)
{
    struct gb_aws_document d = {0};
    if (gb_failed(f->http.op.result)) return gb_err_in(f->http.op.result, "STS");
    /* An error answer is XML, too, and says more than its status. */
    struct gb_err err = gb_aws_sts_parse(gb_str_bytes(&f->http.answer), &d);
    struct gb_err by_status = gb_aws_fetch_answer(f, "STS");
    if (!gb_failed(err)) err = by_status;
    if (!gb_failed(err)) {
        err = gb_aws_set_copy(&f->set, gb_str_bytes(&d.access_key_id),
                              gb_str_bytes(&d.secret_access_key), gb_str_bytes(&d.token),
                              d.expires_ms);
    }
    gb_aws_document_deinit(&d);
    return err;
}
