#include "adapters/aws/aws_provider.h"

/* The key pair of a credentials_uri (spec 04 A4.1). */
enum gb_aws_step gb_aws_provider_static(struct gb_aws_fetch *f)
{
    return gb_aws_fetch_fail(f, gb_aws_set_copy(&f->set, gb_bytes_c(f->cfg->access_key_id),
                                                gb_bytes_c(f->cfg->secret_access_key),
                                                gb_bytes(NULL, 0), 0));
}
