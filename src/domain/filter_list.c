#include "domain/filter_list.h"

#include <stdlib.h>

void gb_filter_list_free(struct gb_filter_list *l)
{
    for (size_t i = 0; i < l->count; i++) free(l->filters[i]);
    free(l->filters);
    l->filters = NULL;
    l->count = 0;
}
