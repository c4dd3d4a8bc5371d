#include "blueprint/document.h"

#include <stdlib.h>
#include <string.h>

const struct gb_node *gb_node_get(const struct gb_node *map, const char *key)
{
    if (map == NULL || map->kind != GB_NODE_MAP) return NULL;
    for (const struct gb_node *n = map->first; n != NULL; n = n->next) {
        if (strcmp(n->key, key) == 0) return n;
    }
    return NULL;
}

static const struct gb_node *get_sized(const struct gb_node *map, const char *key, size_t size)
{
    if (map->kind != GB_NODE_MAP) return NULL;
    for (const struct gb_node *n = map->first; n != NULL; n = n->next) {
        if (strlen(n->key) == size && memcmp(n->key, key, size) == 0) return n;
    }
    return NULL;
}

static const struct gb_node *get_item(const struct gb_node *list, size_t index)
{
    if (list->kind != GB_NODE_LIST) return NULL;
    const struct gb_node *n = list->first;
    while (n != NULL && index-- > 0) n = n->next;
    return n;
}

const struct gb_node *gb_node_locate(const struct gb_node *from, const char *path)
{
    const struct gb_node *at = from;
    while (at != NULL && *path != '\0') {
        const struct gb_node *next;
        if (*path == '[') {
            char *end;
            next = get_item(at, (size_t)strtoul(path + 1, &end, 10));
            path = *end == ']' ? end + 1 : end;
        } else {
            if (*path == '.') path++;
            size_t size = strcspn(path, ".[");
            next = get_sized(at, path, size);
            path += size;
        }
        if (next == NULL) break;
        at = next;
    }
    return at;
}

void gb_node_position(const struct gb_node *node, struct gb_finding_at *at)
{
    at->layer = 0;
    at->line = 0;
    at->column = 0;
    if (node == NULL) return;
    bool block = node->kind == GB_NODE_MAP || node->kind == GB_NODE_LIST;
    bool by_key = node->key != NULL && (block || node->kind == GB_NODE_NULL);
    at->layer = node->layer;
    at->line = by_key ? node->key_line : node->line;
    at->column = by_key ? node->key_column : node->column;
}

const char *gb_node_kind_name(const struct gb_node *node)
{
    switch (node->kind) {
    case GB_NODE_NULL:
        return "nothing";
    case GB_NODE_PLAIN:
        if (gb_node_looks_like_number(node->text)) return "a number";
        if (strcmp(node->text, "true") == 0 || strcmp(node->text, "false") == 0) return "a boolean";
        return "a text";
    case GB_NODE_STRING:
        return "a text";
    case GB_NODE_NUMBER:
        return "a number";
    case GB_NODE_BOOL:
        return "a boolean";
    case GB_NODE_LIST:
        return "a list";
    case GB_NODE_MAP:
        return "a map";
    }
    return "something else";
}

static const char *skip_digits(const char *p)
{
    while (*p >= '0' && *p <= '9') p++;
    return p;
}

bool gb_node_looks_like_number(const char *text)
{
    const char *p = text;
    if (*p == '-' || *p == '+') p++;
    const char *whole = p;
    p = skip_digits(p);
    size_t digits = (size_t)(p - whole);
    if (*p == '.') {
        const char *fraction = ++p;
        p = skip_digits(p);
        digits += (size_t)(p - fraction);
    }
    if (digits == 0) return false;
    if (*p == 'e' || *p == 'E') {
        p++;
        if (*p == '-' || *p == '+') p++;
        const char *exponent = p;
        p = skip_digits(p);
        if (p == exponent) return false;
    }
    return *p == '\0';
}
