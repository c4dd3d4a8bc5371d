#include "base/reactor.h"

#include <stdlib.h>

#include "base/assert.h"

/* A timer is in `heap` (heap_index counts from 1) or, while its turn fires, in `due` (heap_index
 * has DUE_BIT). Timers started while a turn fires go to the heap and so wait for the next turn: a
 * timer that starts itself again with a deadline in the past starves nobody. */
enum { CAPACITY_MIN = 16 };
#define DUE_BIT (UINT32_C(1) << 31)

struct gb_reactor {
    struct gb_timer **heap; /* heap[0] is unused */
    struct gb_timer **due;
    uint32_t heap_count;
    uint32_t timer_count; /* initialised timers; both arrays have room for all of them */
    uint32_t capacity;
    uint64_t start_order;
    struct gb_list tasks;
    struct gb_list flushes;
    uint64_t now_ns;
    uint64_t suspended_ns;
    int64_t wall_ms;
    uint64_t random[4];
    void (*wake)(void *arg);
    void *wake_arg;
    bool running;
};

/* --- construction --- */

/* splitmix64, which xoshiro's authors name for seeding: no state of all zeros, whatever the seed.
 */
static uint64_t next_seed(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

struct gb_err gb_reactor_new(uint64_t random_seed, struct gb_reactor **out)
{
    struct gb_reactor *r = calloc(1, sizeof *r);
    if (r == NULL) return gb_err_no_memory("the reactor");
    gb_list_init(&r->tasks);
    gb_list_init(&r->flushes);
    for (size_t i = 0; i < 4; i++) r->random[i] = next_seed(&random_seed);
    *out = r;
    return gb_ok();
}

void gb_reactor_free(struct gb_reactor *r)
{
    if (r == NULL) return;
    GB_ASSERT(!r->running);
    GB_ASSERT(r->timer_count == 0);
    GB_ASSERT(gb_list_empty(&r->tasks));
    GB_ASSERT(gb_list_empty(&r->flushes));
    free(r->heap);
    free(r->due);
    free(r);
}

/* --- timer heap --- */

static bool fires_before(const struct gb_timer *a, const struct gb_timer *b)
{
    if (a->deadline_ns != b->deadline_ns) return a->deadline_ns < b->deadline_ns;
    return a->order < b->order;
}

static void heap_place(struct gb_reactor *r, uint32_t index, struct gb_timer *t)
{
    r->heap[index] = t;
    t->heap_index = index;
}

static void sift_up(struct gb_reactor *r, uint32_t index, struct gb_timer *t)
{
    while (index > 1 && fires_before(t, r->heap[index / 2])) {
        heap_place(r, index, r->heap[index / 2]);
        index /= 2;
    }
    heap_place(r, index, t);
}

static void sift_down(struct gb_reactor *r, uint32_t index, struct gb_timer *t)
{
    while (index * 2 <= r->heap_count) {
        uint32_t child = index * 2;
        if (child < r->heap_count && fires_before(r->heap[child + 1], r->heap[child])) child++;
        if (!fires_before(r->heap[child], t)) break;
        heap_place(r, index, r->heap[child]);
        index = child;
    }
    heap_place(r, index, t);
}

static void heap_insert(struct gb_reactor *r, struct gb_timer *t)
{
    GB_ASSERT(r->heap_count < r->timer_count);
    sift_up(r, ++r->heap_count, t);
}

static void heap_remove(struct gb_reactor *r, struct gb_timer *t)
{
    uint32_t index = t->heap_index;
    GB_ASSERT(index >= 1 && index <= r->heap_count && r->heap[index] == t);
    t->heap_index = 0;
    struct gb_timer *last = r->heap[r->heap_count--];
    if (last == t) return;
    if (index > 1 && fires_before(last, r->heap[index / 2])) {
        sift_up(r, index, last);
    } else {
        sift_down(r, index, last);
    }
}

/* Takes the timer out of whichever array it is in. */
static void detach(struct gb_timer *t)
{
    if (t->heap_index == 0) return;
    if ((t->heap_index & DUE_BIT) != 0) {
        t->reactor->due[t->heap_index & ~DUE_BIT] = NULL;
        t->heap_index = 0;
    } else {
        heap_remove(t->reactor, t);
    }
}

/* --- the turn --- */

static void fire_timers(struct gb_reactor *r)
{
    uint32_t count = 0;
    while (r->heap_count > 0 && r->heap[1]->deadline_ns <= r->now_ns) {
        struct gb_timer *t = r->heap[1];
        heap_remove(r, t);
        t->heap_index = DUE_BIT | count;
        r->due[count++] = t;
    }
    for (uint32_t i = 0; i < count; i++) {
        struct gb_timer *t = r->due[i];
        if (t == NULL) continue; /* stopped or started again by a timer before it */
        t->heap_index = 0;
        t->fire(t); /* last use: it may free the timer */
    }
}

/* A flush task runs only while no ordinary task waits, so it sees all that the turn has produced.
 */
static void run_tasks(struct gb_reactor *r)
{
    for (uint32_t ran = 0; ran < GB_REACTOR_TURN_MAX; ran++) {
        struct gb_list_node *node = gb_list_pop(&r->tasks);
        if (node == NULL) node = gb_list_pop(&r->flushes);
        if (node == NULL) return;
        struct gb_task *task = GB_CONTAINER_OF(node, struct gb_task, node);
        task->run(task);
    }
}

void gb_reactor_set_now(struct gb_reactor *r, uint64_t mono_ns, int64_t wall_ms)
{
    GB_ASSERT(!r->running);
    GB_ASSERT(mono_ns >= r->now_ns);
    r->now_ns = mono_ns;
    r->wall_ms = wall_ms;
}

void gb_reactor_set_suspended(struct gb_reactor *r, uint64_t suspended_ns)
{
    if (suspended_ns > r->suspended_ns) r->suspended_ns = suspended_ns;
}

void gb_reactor_run(struct gb_reactor *r, uint64_t mono_ns, int64_t wall_ms)
{
    gb_reactor_set_now(r, mono_ns, wall_ms);
    r->running = true;
    fire_timers(r);
    run_tasks(r);
    r->running = false;
}

uint64_t gb_reactor_next_ns(const struct gb_reactor *r)
{
    if (!gb_list_empty(&r->tasks) || !gb_list_empty(&r->flushes)) return 0;
    return r->heap_count == 0 ? UINT64_MAX : r->heap[1]->deadline_ns;
}

void gb_reactor_on_wake(struct gb_reactor *r, void (*wake)(void *arg), void *arg)
{
    r->wake = wake;
    r->wake_arg = arg;
}

static void wake_if_changed(struct gb_reactor *r, uint64_t next_before_ns)
{
    if (r->running || r->wake == NULL) return;
    if (gb_reactor_next_ns(r) != next_before_ns) r->wake(r->wake_arg);
}

/* --- clocks and random numbers --- */

uint64_t gb_reactor_now_ns(const struct gb_reactor *r)
{
    return r->now_ns;
}

uint64_t gb_reactor_boot_ns(const struct gb_reactor *r)
{
    return r->now_ns + r->suspended_ns;
}

int64_t gb_reactor_wall_ms(const struct gb_reactor *r)
{
    return r->wall_ms;
}

static uint64_t rotate_left(uint64_t x, unsigned bits)
{
    return x << bits | x >> (64 - bits);
}

uint64_t gb_reactor_random(struct gb_reactor *r)
{
    uint64_t *s = r->random; /* xoshiro256** 1.0 (Blackman, Vigna) */
    uint64_t result = rotate_left(s[1] * 5, 7) * 9;
    uint64_t t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate_left(s[3], 45);
    return result;
}

uint64_t gb_reactor_random_below(struct gb_reactor *r, uint64_t bound)
{
    if (bound == 0) return 0;
    /* The lowest 2^64 mod bound values would be drawn once too often; they are drawn again. */
    uint64_t excess = (0 - bound) % bound;
    uint64_t value = gb_reactor_random(r);
    while (value < excess) value = gb_reactor_random(r);
    return value % bound;
}

/* --- tasks --- */

static void enqueue(struct gb_reactor *r, struct gb_list *queue, struct gb_task *task)
{
    GB_ASSERT(task->run != NULL);
    if (gb_list_linked(&task->node)) return;
    uint64_t before_ns = gb_reactor_next_ns(r);
    gb_list_push(queue, &task->node);
    wake_if_changed(r, before_ns);
}

void gb_reactor_defer(struct gb_reactor *r, struct gb_task *task)
{
    enqueue(r, &r->tasks, task);
}

void gb_reactor_flush(struct gb_reactor *r, struct gb_task *task)
{
    enqueue(r, &r->flushes, task);
}

void gb_task_cancel(struct gb_task *task)
{
    gb_list_remove(&task->node);
}

/* --- timers --- */

static bool reserve_timer(struct gb_reactor *r)
{
    if (r->timer_count < r->capacity) return true;
    if (r->capacity >= DUE_BIT / 2) return false;
    uint32_t capacity = r->capacity == 0 ? CAPACITY_MIN : r->capacity * 2;
    struct gb_timer **heap = realloc(r->heap, ((size_t)capacity + 1) * sizeof(struct gb_timer *));
    if (heap == NULL) return false;
    r->heap = heap;
    struct gb_timer **due = realloc(r->due, capacity * sizeof(struct gb_timer *));
    if (due == NULL) return false;
    r->due = due;
    r->capacity = capacity;
    return true;
}

struct gb_err gb_timer_init(struct gb_timer *t, struct gb_reactor *r, gb_timer_fn *fire)
{
    GB_ASSERT(fire != NULL);
    *t = (struct gb_timer){0}; /* so that gb_timer_deinit is right after a failure, too */
    if (!reserve_timer(r)) return gb_err_no_memory("a timer");
    r->timer_count++;
    *t = (struct gb_timer){.fire = fire, .reactor = r, .initialised = true};
    return gb_ok();
}

void gb_timer_deinit(struct gb_timer *t)
{
    if (!t->initialised) return;
    gb_timer_stop(t);
    t->reactor->timer_count--;
    *t = (struct gb_timer){0};
}

void gb_timer_start(struct gb_timer *t, uint64_t deadline_ns)
{
    GB_ASSERT(t->initialised);
    uint64_t before_ns = gb_reactor_next_ns(t->reactor);
    detach(t);
    t->deadline_ns = deadline_ns;
    t->order = ++t->reactor->start_order;
    heap_insert(t->reactor, t);
    wake_if_changed(t->reactor, before_ns);
}

void gb_timer_stop(struct gb_timer *t)
{
    if (t->heap_index == 0) return;
    uint64_t before_ns = gb_reactor_next_ns(t->reactor);
    detach(t);
    wake_if_changed(t->reactor, before_ns);
}

bool gb_timer_running(const struct gb_timer *t)
{
    return t->heap_index != 0;
}
