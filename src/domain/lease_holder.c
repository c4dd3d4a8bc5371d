#include "domain/lease_holder.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"

void gb_lease_holder_deinit(struct gb_lease_holder *h)
{
    free(h->owner);
    free(h->endpoints);
    *h = (struct gb_lease_holder){0};
}

static struct gb_bytes copy(char **at, struct gb_bytes text)
{
    struct gb_bytes view = gb_bytes(*at, text.size);
    if (text.size > 0) memcpy(*at, text.data, text.size);
    *at += text.size;
    return view;
}

/* The list and its texts in one piece. */
static struct gb_lease_endpoint *copy_endpoints(const struct gb_lease_endpoint *endpoints,
                                                size_t count)
{
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++)
        bytes += endpoints[i].capability.size + endpoints[i].url.size;
    struct gb_lease_endpoint *list = malloc(count * sizeof *list + bytes);
    if (list == NULL) return NULL;
    char *at = (char *)&list[count];
    for (size_t i = 0; i < count; i++) {
        list[i].capability = copy(&at, endpoints[i].capability);
        list[i].url = copy(&at, endpoints[i].url);
    }
    return list;
}

struct gb_err gb_lease_holder_set(struct gb_lease_holder *h, const struct gb_lease_row *row,
                                  const struct gb_lease_endpoint *endpoints, size_t count)
{
    gb_lease_holder_deinit(h);
    struct gb_lease_holder made = {
        .owner = gb_bytes_dup(row->owner),
        .version = row->version,
        .acquired_ms = row->acquired_ms,
        .renewed_ms = row->renewed_ms,
        .expires_ms = row->expires_ms,
        .endpoints = count == 0 ? NULL : copy_endpoints(endpoints, count),
        .endpoint_count = count,
    };
    if (made.owner == NULL || (count > 0 && made.endpoints == NULL)) {
        gb_lease_holder_deinit(&made);
        return gb_err_no_memory("a lease's holder");
    }
    *h = made;
    return gb_ok();
}
