#include <stddef.h>
#include <stdint.h>

#include "base/assert.h"
#include "blueprint/bootstrap.h"

/* Any bytes as the bootstrap of a process: a whole one or an error in one line. */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const roles[] = {NULL, "control", "worker", "x"};
    struct gb_bootstrap *b = NULL;
    struct gb_err err = gb_bootstrap_read(gb_bytes(data, size), roles[size % 4], &b);
    GB_ASSERT((b == NULL) == gb_failed(err));
    if (b == NULL) {
        GB_ASSERT(err.code == GB_INVALID_CONFIG && err.message[0] != '\0');
    } else {
        GB_ASSERT(b->bridge_id != NULL && b->config_file_path != NULL && b->poll_interval_ns > 0);
    }
    gb_bootstrap_free(b);
    return 0;
}
