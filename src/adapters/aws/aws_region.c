#include <ctype.h>
#include <string.h>

#include "adapters/aws/aws_profile.h"

static bool take(const char *value, struct gb_str *out)
{
    if (value == NULL || value[0] == '\0') return false;
    gb_str_append_c(out, value);
    return true;
}

static struct gb_err region_of_profile(const struct gb_aws_env *env, const char *profile,
                                       struct gb_str *out)
{
    struct gb_aws_files files = {0};
    struct gb_aws_profile found = {0};
    if (profile == NULL) profile = env->get(env->ctx, "AWS_PROFILE");
    if (profile == NULL) profile = "default";
    struct gb_err err = gb_aws_files_load(env, &files);
    if (!gb_failed(err)) err = gb_aws_files_profile(&files, gb_bytes_c(profile), &found);
    if (!gb_failed(err)) gb_str_append(out, found.region);
    gb_aws_files_deinit(&files);
    return err;
}

/* A region becomes part of host names and of the signature's scope. */
static bool region_ok(struct gb_bytes region)
{
    if (region.size == 0 || region.size > 64) return false;
    for (size_t i = 0; i < region.size; i++) {
        if (!isalnum(region.data[i]) && region.data[i] != '-') return false;
    }
    return true;
}

struct gb_err gb_aws_region(const struct gb_aws_env *env, const char *option, const char *profile,
                            struct gb_str *out)
{
    struct gb_str found = {0};
    struct gb_err err = gb_ok();
    if (!take(option, &found) && !take(env->get(env->ctx, "AWS_REGION"), &found) &&
        !take(env->get(env->ctx, "AWS_DEFAULT_REGION"), &found))
        err = region_of_profile(env, profile, &found);
    if (!gb_failed(err)) err = gb_str_check(&found, "region");
    if (!gb_failed(err) && found.size == 0) {
        err = gb_err(GB_INVALID_CONFIG,
                     "no AWS region: set option region, AWS_REGION, AWS_DEFAULT_REGION or the "
                     "profile's region");
    }
    if (!gb_failed(err) && !region_ok(gb_str_bytes(&found))) {
        err = gb_err(GB_INVALID_CONFIG,
                     "AWS region \"%.70s\": at most 64 letters, digits and '-' are allowed",
                     found.data);
    }
    if (!gb_failed(err)) {
        gb_str_append(out, gb_str_bytes(&found));
        err = gb_str_check(out, "region");
    }
    gb_str_deinit(&found);
    return err;
}

struct gb_err gb_aws_endpoint(const struct gb_aws_env *env, const char *option, const char *service,
                              const char *region, struct gb_str *out)
{
    struct gb_str name = {0};
    gb_str_append_c(&name, "AWS_ENDPOINT_URL_");
    for (const char *p = service; *p != '\0'; p++)
        gb_str_append_char(&name, (char)toupper((unsigned char)*p));
    struct gb_err err = gb_str_check(&name, "endpoint variable");
    if (gb_failed(err)) return err;
    if (!take(option, out) && !take(env->get(env->ctx, name.data), out) &&
        !take(env->get(env->ctx, "AWS_ENDPOINT_URL"), out)) {
        bool china = strncmp(region, "cn-", 3) == 0;
        gb_str_appendf(out, "https://%s.%s.amazonaws.com%s", service, region, china ? ".cn" : "");
    }
    gb_str_deinit(&name);
    return gb_str_check(out, "endpoint");
}
