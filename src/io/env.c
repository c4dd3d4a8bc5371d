#include <stdlib.h>

#include "io/file.h"

const char *gb_env(const char *name)
{
    const char *value = getenv(name);
    return value != NULL && value[0] != '\0' ? value : NULL;
}
