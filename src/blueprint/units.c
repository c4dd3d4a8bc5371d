#include "blueprint/units.h"

#include <stdlib.h>

#include "base/map.h"
#include "blueprint/normal.h"

/* Vertices of the graph are found by kind and id, so that a session that is only named is one too.
 */
enum kind { SESSION = 's', RECEIVER = 'r', SENDER = 'o', BINDING = 'b', ROUTE = 'x' };

struct vertex {
    const char *id;
    size_t index;  /* in its section */
    size_t parent; /* union-find; a root is its own */
    size_t unit;   /* of a root, once units are numbered */
    enum kind kind;
};

struct graph {
    const struct gb_blueprint *b;
    struct gb_map by_name; /* <kind><id> -> number of the vertex + 1 */
    struct vertex *vertices;
    size_t count, capacity;
    struct gb_str scratch;
    struct gb_map processors; /* name -> digest */
    uint8_t (*processor_digests)[GB_SHA256_SIZE];
    struct gb_str *contents; /* of each unit: the digests of its members */
    struct gb_err err;       /* the first one */
};

const char *const gb_units_bridge_wide[] = {"bridge", "config_watch", "stores",
                                            "http",   "telemetry",    NULL};

static void fail(struct graph *g, struct gb_err err)
{
    if (!gb_failed(g->err)) g->err = err;
}

static bool grow(struct graph *g)
{
    size_t capacity = g->capacity == 0 ? 64 : 2 * g->capacity;
    struct vertex *grown = realloc(g->vertices, capacity * sizeof *grown);
    if (grown == NULL) {
        fail(g, gb_err_no_memory("the units"));
        return false;
    }
    g->vertices = grown;
    g->capacity = capacity;
    return true;
}

/* The number of the vertex, which is made when there is none; 0 after a failure. */
static size_t vertex_of(struct graph *g, enum kind kind, const char *id)
{
    gb_str_clear(&g->scratch);
    gb_str_append_char(&g->scratch, (char)kind);
    gb_str_append_c(&g->scratch, id);
    if (g->scratch.failed) {
        fail(g, gb_err_no_memory("the units"));
        return 0;
    }
    uintptr_t known = (uintptr_t)gb_map_get(&g->by_name, gb_str_bytes(&g->scratch));
    if (known != 0) return known - 1;
    if (g->count == g->capacity && !grow(g)) return 0;
    size_t number = g->count;
    /* gb-exception: the map holds numbers, nothing is pointed to */
    void *value = (void *)(uintptr_t)(number + 1); // NOLINT(performance-no-int-to-ptr)
    struct gb_err err = gb_map_put(&g->by_name, gb_str_bytes(&g->scratch), value);
    if (gb_failed(err)) {
        fail(g, err);
        return 0;
    }
    g->vertices[number] = (struct vertex){.id = id,
                                          .index = GB_UNIT_UNDECLARED,
                                          .parent = number,
                                          .unit = GB_UNIT_UNDECLARED,
                                          .kind = kind};
    g->count++;
    return number;
}

static size_t root_of(struct graph *g, size_t v)
{
    while (g->vertices[v].parent != v) { /* halving the path keeps it short */
        g->vertices[v].parent = g->vertices[g->vertices[v].parent].parent;
        v = g->vertices[v].parent;
    }
    return v;
}

static void join(struct graph *g, size_t from, enum kind kind, const char *id)
{
    if (id == NULL || gb_failed(g->err)) return;
    size_t to = vertex_of(g, kind, id);
    if (gb_failed(g->err)) return;
    size_t a = root_of(g, from);
    size_t b = root_of(g, to);
    if (a < b) {
        g->vertices[b].parent = a;
    } else {
        g->vertices[a].parent = b;
    }
}

static size_t declare(struct graph *g, enum kind kind, const char *id, size_t index)
{
    if (gb_failed(g->err)) return 0;
    size_t v = vertex_of(g, kind, id);
    if (!gb_failed(g->err)) g->vertices[v].index = index;
    return v;
}

static void connect_route(struct graph *g, const struct gb_bp_route *r, size_t index)
{
    size_t v = declare(g, ROUTE, r->id, index);
    join(g, v, RECEIVER, r->receiver_id);
    join(g, v, SESSION, r->session.session_id);
    join(g, v, SENDER, r->session.sender_id);
    for (size_t i = 0; i < r->binding_ids.count; i++) {
        join(g, v, BINDING, r->binding_ids.items[i]);
    }
}

static void connect_all(struct graph *g)
{
    const struct gb_blueprint *b = g->b;
    for (size_t i = 0; i < b->session_count; i++) {
        (void)declare(g, SESSION, b->sessions[i].id, i);
    }
    for (size_t i = 0; i < b->receiver_count; i++) {
        size_t v = declare(g, RECEIVER, b->receivers[i].id, i);
        join(g, v, SESSION, b->receivers[i].session_id);
    }
    for (size_t i = 0; i < b->sender_count; i++) {
        size_t v = declare(g, SENDER, b->senders[i].id, i);
        join(g, v, SESSION, b->senders[i].session_id);
    }
    for (size_t i = 0; i < b->binding_count; i++) {
        size_t v = declare(g, BINDING, b->bindings[i].id, i);
        join(g, v, SENDER, b->bindings[i].sender_id);
        join(g, v, SESSION, b->bindings[i].session_id);
    }
    for (size_t i = 0; i < b->route_count; i++) connect_route(g, &b->routes[i], i);
}

static int compare_vertices(const void *left, const void *right)
{
    const struct vertex *const *a = left;
    const struct vertex *const *b = right;
    if ((*a)->kind != (*b)->kind) return (*a)->kind < (*b)->kind ? -1 : 1;
    return strcmp((*a)->id, (*b)->id);
}

static void digest_of_entry(struct graph *g, const char *section, size_t index,
                            uint8_t out[GB_SHA256_SIZE])
{
    struct gb_err err = gb_normal_entry_digest(g->b, section, index, out);
    if (gb_failed(err)) fail(g, err);
}

static void digest_processors(struct graph *g)
{
    const struct gb_blueprint *b = g->b;
    g->processor_digests = calloc(b->processor_count + 1, sizeof *g->processor_digests);
    if (g->processor_digests == NULL) {
        fail(g, gb_err_no_memory("the units"));
        return;
    }
    for (size_t i = 0; i < b->processor_count && !gb_failed(g->err); i++) {
        digest_of_entry(g, "processors", i, g->processor_digests[i]);
        struct gb_err err =
            gb_map_put(&g->processors, gb_bytes_c(b->processors[i].name), g->processor_digests[i]);
        if (gb_failed(err)) fail(g, err);
    }
}

static const char *section_of(enum kind kind)
{
    switch (kind) {
    case SESSION:
        return "sessions";
    case RECEIVER:
        return "receivers";
    case SENDER:
        return "senders";
    case BINDING:
        return "bindings";
    case ROUTE:
        break;
    }
    return "routes";
}

static bool serves_http(const struct gb_blueprint *b, const struct vertex *v)
{
    if (v->kind == RECEIVER) return b->receivers[v->index].transport.value == GB_BP_HTTP;
    return v->kind == SENDER && b->senders[v->index].transport.value == GB_BP_HTTP;
}

/* A processor's definition is content of every route that lists it. */
static void add_content(struct graph *g, struct gb_unit *unit, struct gb_str *content,
                        const struct vertex *v)
{
    uint8_t digest[GB_SHA256_SIZE] = {0};
    digest_of_entry(g, section_of(v->kind), v->index, digest);
    gb_str_append(content, gb_bytes(digest, sizeof digest));
    if (serves_http(g->b, v)) unit->http = true;
    if (v->kind != ROUTE) return;
    const struct gb_bp_strings *names = &g->b->routes[v->index].processors;
    for (size_t i = 0; i < names->count; i++) {
        const uint8_t *listed = gb_map_get(&g->processors, gb_bytes_c(names->items[i]));
        if (listed != NULL) gb_str_append(content, gb_bytes(listed, GB_SHA256_SIZE));
    }
}

static void digest_bridge(struct graph *g, uint8_t out[GB_SHA256_SIZE])
{
    struct gb_sha256_stream all;
    gb_sha256_begin(&all);
    for (const char *const *key = gb_units_bridge_wide; *key != NULL; key++) {
        uint8_t digest[GB_SHA256_SIZE] = {0};
        struct gb_err err = gb_normal_section_digest(g->b, *key, digest);
        if (gb_failed(err)) fail(g, err);
        gb_sha256_add(&all, gb_bytes(digest, sizeof digest));
    }
    gb_sha256_end(&all, out);
}

/* Vertices by kind and id: the members of a unit come in the same order whatever the document's. */
static const struct vertex **sorted_vertices(struct graph *g)
{
    const struct vertex **sorted = calloc(g->count + 1, sizeof *sorted);
    if (sorted == NULL) {
        fail(g, gb_err_no_memory("the units"));
        return NULL;
    }
    for (size_t i = 0; i < g->count; i++) sorted[i] = &g->vertices[i];
    qsort(sorted, g->count, sizeof *sorted, compare_vertices);
    return sorted;
}

static bool allocate(struct graph *g, struct gb_units *units)
{
    units->units = calloc(g->count + 1, sizeof *units->units);
    units->routes = calloc(g->count + 1, sizeof *units->routes);
    units->sessions = calloc(g->count + 1, sizeof *units->sessions);
    g->contents = calloc(g->count + 1, sizeof *g->contents);
    bool ok = units->units != NULL && units->routes != NULL && units->sessions != NULL &&
              g->contents != NULL;
    if (!ok) fail(g, gb_err_no_memory("the units"));
    return ok;
}

static void collect(struct graph *g, struct gb_units *units, const struct vertex *const *sorted)
{
    uint8_t bridge[GB_SHA256_SIZE] = {0};
    digest_bridge(g, bridge);
    for (size_t i = 0; i < g->count && !gb_failed(g->err); i++) {
        const struct vertex *v = sorted[i];
        struct vertex *root = &g->vertices[root_of(g, (size_t)(v - g->vertices))];
        if (root->unit == GB_UNIT_UNDECLARED) {
            root->unit = units->count++;
            gb_str_append(&g->contents[root->unit], gb_bytes(bridge, sizeof bridge));
        }
        struct gb_unit_member member = {v->id, v->index, root->unit};
        if (v->kind == ROUTE) units->routes[units->route_count++] = member;
        if (v->kind == SESSION) units->sessions[units->session_count++] = member;
        if (v->index == GB_UNIT_UNDECLARED) continue; /* whoever names it holds its id */
        add_content(g, &units->units[root->unit], &g->contents[root->unit], v);
    }
    for (size_t i = 0; i < units->count; i++) {
        if (g->contents[i].failed) fail(g, gb_err_no_memory("the units"));
        gb_sha256(gb_str_bytes(&g->contents[i]), units->units[i].identity);
    }
}

static void graph_deinit(struct graph *g)
{
    gb_str_deinit(&g->scratch);
    for (size_t i = 0; g->contents != NULL && i < g->count; i++) gb_str_deinit(&g->contents[i]);
    free(g->contents);
    free(g->processor_digests);
    free(g->vertices);
    gb_map_deinit(&g->by_name);
    gb_map_deinit(&g->processors);
}

struct gb_err gb_units_init(struct gb_units *units, const struct gb_blueprint *b)
{
    struct graph g = {.b = b};
    struct gb_units made = {0};
    const struct vertex **sorted = NULL;
    connect_all(&g);
    digest_processors(&g);
    if (!gb_failed(g.err)) sorted = sorted_vertices(&g);
    if (sorted != NULL && allocate(&g, &made)) collect(&g, &made, sorted);
    free(sorted);
    graph_deinit(&g);
    if (gb_failed(g.err)) {
        gb_units_deinit(&made);
    } else {
        *units = made;
    }
    return g.err;
}

void gb_units_deinit(struct gb_units *units)
{
    free(units->units);
    free(units->routes);
    free(units->sessions);
    *units = (struct gb_units){0};
}
