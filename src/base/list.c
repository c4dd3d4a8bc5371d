#include "base/list.h"

void gb_list_splice(struct gb_list *to, struct gb_list *from)
{
    GB_ASSERT(to != from);
    if (gb_list_empty(from)) return;
    struct gb_list_node *first = from->head.next;
    struct gb_list_node *last = from->head.prev;
    first->prev = to->head.prev;
    last->next = &to->head;
    to->head.prev->next = first;
    to->head.prev = last;
    gb_list_init(from);
}
