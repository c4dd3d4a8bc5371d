#include "adapters/aws/aws_provider.h"

/* AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN (spec 04 A4.3). */
enum gb_aws_step gb_aws_provider_env(struct gb_aws_fetch *f)
{
    const char *id = gb_aws_fetch_env(f, "AWS_ACCESS_KEY_ID");
    const char *secret = gb_aws_fetch_env(f, "AWS_SECRET_ACCESS_KEY");
    if (id == NULL || secret == NULL) return GB_AWS_SKIP;
    return gb_aws_fetch_fail(
        f, gb_aws_set_copy(&f->set, gb_bytes_c(id), gb_bytes_c(secret),
                           gb_bytes_c(gb_aws_fetch_env(f, "AWS_SESSION_TOKEN")), 0));
}
