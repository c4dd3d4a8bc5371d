#ifndef GB_DOMAIN_FILTER_LIST_H
#define GB_DOMAIN_FILTER_LIST_H

#include <stddef.h>

/* The filters of one managed-subscription baseline (spec 05 §5).
 * Owns:   the strings and the array.
 * Thread: one at a time.
 * Errors: none. */
struct gb_filter_list {
    char **filters; /* sorted, unique */
    size_t count;
};
/* Frees the strings and the array, zeroes the list. */
void gb_filter_list_free(struct gb_filter_list *l);

#endif
