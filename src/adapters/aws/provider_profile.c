#include "adapters/aws/aws_sts.h"

/* Shared files (spec 04 A4.2, A4.5). A profile leads to a plan: where the first set comes from, and
 * the roles to assume with it, each signed with the set before. */

static struct gb_err credential_source(struct gb_aws_fetch *f, struct gb_bytes source)
{
    if (gb_bytes_equal_c(source, "Environment")) {
        f->base = gb_aws_provider_env;
    } else if (gb_bytes_equal_c(source, "Ec2InstanceMetadata")) {
        f->base = gb_aws_provider_imds;
    } else if (gb_bytes_equal_c(source, "EcsContainer")) {
        f->base = gb_aws_provider_container;
    } else {
        return gb_err(GB_INVALID_CONFIG,
                      "credential_source \"%.*s\": Environment, EcsContainer or "
                      "Ec2InstanceMetadata is possible",
                      (int)(source.size < 40 ? source.size : 40), (const char *)source.data);
    }
    return gb_ok();
}

static struct gb_err static_keys(struct gb_aws_fetch *f, const struct gb_aws_profile *p)
{
    if (p->access_key_id.size == 0 || p->secret_access_key.size == 0) {
        return gb_err(GB_INVALID_CONFIG,
                      "aws_access_key_id and aws_secret_access_key are needed together");
    }
    f->has_base_set = true;
    return gb_aws_set_copy(&f->set, p->access_key_id, p->secret_access_key, p->session_token, 0);
}

/* One profile of the chain. `*next` is the source profile that is to be read then, or empty. */
static struct gb_err plan_profile(struct gb_aws_fetch *f, struct gb_bytes name,
                                  const struct gb_aws_profile *p, struct gb_bytes *next)
{
    struct gb_aws_role role = {p->role_arn, p->external_id, p->role_session_name};
    *next = gb_bytes(NULL, 0);
    if (p->role_arn.size > 0 && p->web_identity_token_file.size > 0) {
        f->base = gb_aws_provider_web_identity;
        f->web_role = role;
        f->web_token_file = p->web_identity_token_file;
        return gb_ok();
    }
    if (p->role_arn.size > 0) {
        if (f->hop_count == GB_AWS_ROLE_HOPS_MAX) {
            return gb_err(GB_INVALID_CONFIG, "source_profile chain is longer than %d or a circle",
                          GB_AWS_ROLE_HOPS_MAX);
        }
        f->hops[f->hop_count++] = role;
        if (gb_bytes_equal(p->source_profile, name)) return static_keys(f, p);
        if (p->source_profile.size > 0) {
            *next = p->source_profile;
            return gb_ok();
        }
        if (p->credential_source.size > 0) return credential_source(f, p->credential_source);
        return gb_err(GB_INVALID_CONFIG, "role_arn needs source_profile, credential_source or "
                                         "web_identity_token_file");
    }
    if (p->access_key_id.size > 0 || p->secret_access_key.size > 0) return static_keys(f, p);
    if (p->credential_process.size > 0) {
        return gb_err(GB_INVALID_CONFIG, "credential_process is not supported; use static keys or "
                                         "a role");
    }
    if (p->sso_session.size > 0 || p->sso_start_url.size > 0)
        return gb_err(GB_INVALID_CONFIG, "SSO is not supported; use static keys or a role");
    return gb_err(GB_NOT_FOUND, "no credentials in it");
}

static struct gb_err make_plan(struct gb_aws_fetch *f, struct gb_bytes name)
{
    struct gb_err err = gb_aws_files_load(&f->cfg->env, &f->files);
    while (!gb_failed(err) && name.size > 0) {
        struct gb_aws_profile p;
        struct gb_bytes next = {0};
        err = gb_aws_files_profile(&f->files, name, &p);
        if (gb_failed(err)) break;
        err = p.found ? plan_profile(f, name, &p, &next)
                      : gb_err(GB_NOT_FOUND, "it does not exist in the shared files");
        if (gb_failed(err)) {
            err = gb_err_in(err, "AWS profile \"%.*s\"", (int)(name.size < 64 ? name.size : 64),
                            (const char *)name.data);
        }
        name = next;
    }
    return err;
}

static enum gb_aws_step assume_next(struct gb_aws_fetch *f)
{
    if (f->hop_count == 0) return gb_aws_fetch_fail(f, gb_ok());
    f->hop_count--;
    struct gb_err err = gb_aws_sts_assume_role(f, &f->hops[f->hop_count]);
    return gb_failed(err) ? gb_aws_fetch_fail(f, err) : GB_AWS_REQUEST;
}

/* The base provider runs with its own stages, as if it stood alone. */
static enum gb_aws_step step_base(struct gb_aws_fetch *f)
{
    enum gb_aws_step step = f->base(f);
    if (step == GB_AWS_REQUEST) return step;
    if (step == GB_AWS_SKIP) {
        return gb_aws_fetch_fail(
            f, gb_err(GB_TEMPORARY_AUTH_FAILURE,
                      "AWS profile: its credential_source has no credentials at present"));
    }
    if (gb_failed(f->err)) return step;
    f->has_base_set = true;
    return assume_next(f);
}

static enum gb_aws_step first_step(struct gb_aws_fetch *f)
{
    const char *option = f->cfg->profile;
    const char *variable = gb_aws_fetch_env(f, "AWS_PROFILE");
    const char *name = option != NULL ? option : variable != NULL ? variable : "default";
    struct gb_err err = make_plan(f, gb_bytes_c(name));
    /* A profile that nobody asked for, or that only sets a region, leaves it to the next
     * provider. */
    if (err.code == GB_NOT_FOUND && option == NULL && f->hop_count == 0) return GB_AWS_SKIP;
    if (err.code == GB_NOT_FOUND) err.code = GB_INVALID_CONFIG;
    if (gb_failed(err)) return gb_aws_fetch_fail(f, err);
    return f->has_base_set ? assume_next(f) : step_base(f);
}

enum gb_aws_step gb_aws_provider_profile(struct gb_aws_fetch *f)
{
    if (f->stage == 0) return first_step(f);
    if (!f->has_base_set) return step_base(f);
    struct gb_err err = gb_aws_sts_take(f);
    return gb_failed(err) ? gb_aws_fetch_fail(f, err) : assume_next(f);
}
