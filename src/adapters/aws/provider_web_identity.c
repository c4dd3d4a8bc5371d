#include <stdlib.h>

#include "adapters/aws/aws_sts.h"

static struct gb_bytes trimmed(struct gb_bytes text)
{
    while (text.size > 0 && (text.data[text.size - 1] == '\n' || text.data[text.size - 1] == '\r' ||
                             text.data[text.size - 1] == ' '))
        text.size--;
    return text;
}

static struct gb_err prepare(struct gb_aws_fetch *f, const struct gb_aws_role *role,
                             const char *token_file)
{
    struct gb_str token = {0};
    struct gb_err err = f->cfg->env.read_file(f->cfg->env.ctx, token_file, &token);
    if (gb_failed(err))
        err = gb_err(GB_TEMPORARY_AUTH_FAILURE, "web identity token: %s", err.message);
    if (!gb_failed(err)) err = gb_aws_sts_web_identity(f, role, trimmed(gb_str_bytes(&token)));
    if (token.data != NULL) gb_wipe(token.data, token.capacity);
    gb_str_deinit(&token);
    return err;
}

/* AWS_WEB_IDENTITY_TOKEN_FILE with AWS_ROLE_ARN, or the same of a profile (spec 04 A4.4, A4.5); the
 * token file is read at each refresh. */
enum gb_aws_step gb_aws_provider_web_identity(struct gb_aws_fetch *f)
{
    if (f->stage > 0) return gb_aws_fetch_fail(f, gb_aws_sts_take(f));
    struct gb_aws_role role = f->web_role;
    struct gb_bytes file = f->web_token_file;
    if (file.size == 0) {
        file = gb_bytes_c(gb_aws_fetch_env(f, "AWS_WEB_IDENTITY_TOKEN_FILE"));
        role.arn = gb_bytes_c(gb_aws_fetch_env(f, "AWS_ROLE_ARN"));
        role.session_name = gb_bytes_c(gb_aws_fetch_env(f, "AWS_ROLE_SESSION_NAME"));
    }
    if (file.size == 0 || role.arn.size == 0) return GB_AWS_SKIP;
    char *path = gb_bytes_dup(file);
    if (path == NULL) return gb_aws_fetch_fail(f, gb_err_no_memory("web identity token path"));
    struct gb_err err = prepare(f, &role, path);
    free(path);
    return gb_failed(err) ? gb_aws_fetch_fail(f, err) : GB_AWS_REQUEST;
}
