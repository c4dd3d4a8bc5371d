#include <string.h>

#include "adapters/aws/aws_provider.h"

/* Container credentials (spec 04 A4.6). */

static bool is_loopback(const char *hostname)
{
    return strcmp(hostname, "localhost") == 0 || strncmp(hostname, "127.", 4) == 0 ||
           strcmp(hostname, "[::1]") == 0;
}

/* The token goes out with the request, so plain http is for hosts that never leave the machine. A
 * name that begins with "127." but is no address resolves elsewhere: digits and dots only. */
static struct gb_err check_full_uri(const char *uri)
{
    static const char *const hosts[] = {"169.254.170.2", "169.254.170.23", "[fd00:ec2::23]"};
    struct gb_aws_url url = {0};
    struct gb_err err = gb_aws_url_parse(uri, &url);
    if (gb_failed(err)) return gb_err_in(err, "AWS_CONTAINER_CREDENTIALS_FULL_URI");
    bool ok =
        url.tls ||
        (is_loopback(url.hostname) &&
         (url.hostname[0] != '1' || strspn(url.hostname, "0123456789.") == strlen(url.hostname)));
    for (size_t i = 0; i < sizeof hosts / sizeof hosts[0]; i++)
        ok = ok || strcmp(url.hostname, hosts[i]) == 0;
    if (!ok) {
        err = gb_err(GB_INVALID_CONFIG,
                     "AWS_CONTAINER_CREDENTIALS_FULL_URI: host \"%.100s\" needs https; http is for "
                     "loopback, 169.254.170.2, 169.254.170.23 and [fd00:ec2::23]",
                     url.hostname);
    }
    gb_aws_url_deinit(&url);
    return err;
}

static struct gb_err read_token(struct gb_aws_fetch *f)
{
    const char *file = gb_aws_fetch_env(f, "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
    const char *text = gb_aws_fetch_env(f, "AWS_CONTAINER_AUTHORIZATION_TOKEN");
    gb_str_clear(&f->token);
    if (file != NULL) {
        struct gb_err err = f->cfg->env.read_file(f->cfg->env.ctx, file, &f->token);
        if (gb_failed(err)) {
            return gb_err(GB_TEMPORARY_AUTH_FAILURE, "container authorization token: %s",
                          err.message);
        }
    } else if (text != NULL) {
        gb_str_append_c(&f->token, text);
    }
    struct gb_err err = gb_str_check(&f->token, "container authorization token");
    if (gb_failed(err)) return err;
    while (f->token.size > 0 &&
           (f->token.data[f->token.size - 1] == '\n' || f->token.data[f->token.size - 1] == '\r'))
        f->token.data[--f->token.size] = '\0';
    for (size_t i = 0; i < f->token.size; i++) {
        if ((unsigned char)f->token.data[i] < ' ') {
            return gb_err(GB_INVALID_CONFIG,
                          "container authorization token: control characters are not allowed");
        }
    }
    return gb_ok();
}

static struct gb_err prepare(struct gb_aws_fetch *f, const char *relative, const char *full)
{
    gb_str_clear(&f->url);
    if (relative != NULL) {
        if (relative[0] != '/') {
            return gb_err(GB_INVALID_CONFIG,
                          "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI must begin with '/'");
        }
        gb_str_append_c(&f->url, "http://169.254.170.2");
        gb_str_append_c(&f->url, relative);
    } else {
        struct gb_err err = check_full_uri(full);
        if (gb_failed(err)) return err;
        gb_str_append_c(&f->url, full);
    }
    struct gb_err err = gb_str_check(&f->url, "container credentials URL");
    if (!gb_failed(err)) err = read_token(f);
    if (gb_failed(err)) return err;
    gb_aws_fetch_request(f, "GET", f->url.data);
    if (f->token.size > 0) gb_aws_fetch_header(f, "Authorization", f->token.data);
    return gb_ok();
}

enum gb_aws_step gb_aws_provider_container(struct gb_aws_fetch *f)
{
    if (f->stage > 0)
        return gb_aws_fetch_fail(f, gb_aws_fetch_document(f, "container credentials"));
    const char *relative = gb_aws_fetch_env(f, "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
    const char *full = gb_aws_fetch_env(f, "AWS_CONTAINER_CREDENTIALS_FULL_URI");
    if (relative == NULL && full == NULL) return GB_AWS_SKIP;
    struct gb_err err = prepare(f, relative, full);
    return gb_failed(err) ? gb_aws_fetch_fail(f, err) : GB_AWS_REQUEST;
}
