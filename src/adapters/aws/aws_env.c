#include "adapters/aws/aws_credentials.h"
#include "io/file.h"

enum { FILE_BYTES_MAX = 1024 * 1024 };

static const char *process_get(void *ctx, const char *name)
{
    (void)ctx;
    return gb_env(name);
}

static struct gb_err process_read_file(void *ctx, const char *path, struct gb_str *out)
{
    (void)ctx;
    return gb_file_read(path, FILE_BYTES_MAX, out);
}

struct gb_aws_env gb_aws_env_process(void)
{
    return (struct gb_aws_env){.get = process_get, .read_file = process_read_file};
}
