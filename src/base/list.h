#ifndef GB_BASE_LIST_H
#define GB_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include "base/assert.h"

/* Intrusive doubly linked list; a zeroed node is unlinked. gb_list_init makes the head.
 * Owns:   nothing; the elements belong to their owner.
 * Thread: one at a time.
 * Errors: none; linking a linked node is an assertion. */
struct gb_list_node {
    struct gb_list_node *next;
    struct gb_list_node *prev;
};
struct gb_list {
    struct gb_list_node head; /* self-linked when empty */
};

#define GB_CONTAINER_OF(pointer, type, member)                                                     \
    ((type *)(void *)((char *)(pointer)-offsetof(type, member)))

static inline void gb_list_init(struct gb_list *l)
{
    l->head.next = &l->head;
    l->head.prev = &l->head;
}
static inline bool gb_list_empty(const struct gb_list *l)
{
    return l->head.next == &l->head;
}
static inline bool gb_list_linked(const struct gb_list_node *n)
{
    return n->next != NULL;
}
static inline void gb_list_insert_before(struct gb_list_node *at, struct gb_list_node *n)
{
    GB_ASSERT(n->next == NULL);
    n->prev = at->prev;
    n->next = at;
    /* The analyser loses track of a list when an element is removed through its neighbours; it then
     * sees the first element where there is another, or none. */
    at->prev->next = n; /* NOLINT(clang-analyzer-core.NullDereference) */
    at->prev = n;
}
static inline void gb_list_push(struct gb_list *l, struct gb_list_node *n)
{
    gb_list_insert_before(&l->head, n);
}
static inline void gb_list_push_front(struct gb_list *l, struct gb_list_node *n)
{
    gb_list_insert_before(l->head.next, n);
}
static inline void gb_list_remove(struct gb_list_node *n)
{
    if (n->next == NULL) return;
    n->prev->next = n->next;
    n->next->prev = n->prev;
    n->next = NULL;
    n->prev = NULL;
}
static inline struct gb_list_node *gb_list_first(const struct gb_list *l)
{
    return gb_list_empty(l) ? NULL : l->head.next; /* NOLINT(clang-analyzer-unix.Malloc) */
}
static inline struct gb_list_node *gb_list_next(const struct gb_list *l,
                                                const struct gb_list_node *n)
{
    return n->next == &l->head ? NULL : n->next;
}
static inline struct gb_list_node *gb_list_pop(struct gb_list *l)
{
    struct gb_list_node *n = gb_list_first(l);
    if (n != NULL) gb_list_remove(n);
    return n;
}
/* Moves all of `from` to the end of `to`, in order. */
void gb_list_splice(struct gb_list *to, struct gb_list *from);

#endif
