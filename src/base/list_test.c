#include "base/list.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

struct item {
    char name;
    struct gb_list_node node;
};

static struct item *item_of(struct gb_list_node *node)
{
    return GB_CONTAINER_OF(node, struct item, node);
}

/* Compares forwards and backwards, so that a broken prev link shows. */
static void check(const struct gb_list *l, const char *want)
{
    size_t count = 0;
    for (struct gb_list_node *n = gb_list_first(l); n != NULL; n = gb_list_next(l, n)) {
        assert_int_equal(item_of(n)->name, want[count]);
        count++;
    }
    assert_int_equal(want[count], 0);
    for (struct gb_list_node *n = l->head.prev; n != &l->head; n = n->prev) {
        assert_int_equal(item_of(n)->name, want[--count]);
    }
    assert_int_equal(count, 0);
    assert_int_equal(gb_list_empty(l), want[0] == '\0');
}

static void push_pop_remove(void **state)
{
    (void)state;
    struct item a = {.name = 'a'}, b = {.name = 'b'}, c = {.name = 'c'}, d = {.name = 'd'};
    struct gb_list l;
    gb_list_init(&l);
    check(&l, "");
    assert_null(gb_list_pop(&l));
    gb_list_push(&l, &a.node);
    gb_list_push(&l, &b.node);
    gb_list_push_front(&l, &c.node);
    check(&l, "cab");
    gb_list_insert_before(&b.node, &d.node);
    check(&l, "cadb");
    gb_list_remove(&a.node);
    check(&l, "cdb");
    assert_false(gb_list_linked(&a.node));
    gb_list_remove(&a.node);
    check(&l, "cdb");
    assert_ptr_equal(item_of(gb_list_pop(&l)), &c);
    assert_false(gb_list_linked(&c.node));
    gb_list_push(&l, &c.node);
    check(&l, "dbc");
}

static const struct splice_row {
    const char *name;
    const char *to, *from, *want;
} splice_rows[] = {
    {"both", "ab", "cd", "abcd"},   {"one and one", "a", "c", "ac"}, {"to empty", "", "cd", "cd"},
    {"from empty", "ab", "", "ab"}, {"nothing", "", "", ""},
};

static void splice(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof splice_rows / sizeof splice_rows[0]; i++) {
        const struct splice_row *row = &splice_rows[i];
        struct item items[4] = {{.name = 0}};
        struct item extra = {.name = 'z'};
        struct gb_list to, from;
        size_t used = 0;
        gb_list_init(&to);
        gb_list_init(&from);
        for (const char *p = row->to; *p != '\0'; p++) {
            items[used].name = *p;
            gb_list_push(&to, &items[used++].node);
        }
        for (const char *p = row->from; *p != '\0'; p++) {
            items[used].name = *p;
            gb_list_push(&from, &items[used++].node);
        }
        gb_list_splice(&to, &from);
        print_message("%s\n", row->name);
        check(&to, row->want);
        check(&from, "");
        gb_list_push(&from, &extra.node);
        check(&from, "z");
        check(&to, row->want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(push_pop_remove),
        cmocka_unit_test(splice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
