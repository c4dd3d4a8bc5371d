#ifndef GB_BASE_REACTOR_H
#define GB_BASE_REACTOR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/list.h"

/* The turn of the loop, without a clock or I/O of its own: a driver (io/loop.c on libuv, or the
 * simulator) tells it the time and runs it. It keeps the timers and the deferred tasks of one
 * thread.
 * Owns:   its heap array; timers, tasks and ops belong to their embedding struct, which must
 *         outlive them (deinit a timer, let an op finish, before freeing).
 * Thread: the loop thread only.
 * Errors: gb_reactor_new, gb_timer_init: out of memory. gb_timer_start never fails (room is
 *         reserved by gb_timer_init).
 *
 * One turn = gb_reactor_run(now): sets the time, fires due timers in (deadline, start order), then
 * runs deferred tasks in FIFO order, those that were deferred meanwhile included, and a flush task
 * whenever no deferred one waits, until none is left or `GB_REACTOR_TURN_MAX` ran (the rest waits
 * for the next turn). Timers that were started while timers fired wait for the next turn, too. */

struct gb_reactor;
struct gb_timer;
struct gb_task;

typedef void gb_task_fn(struct gb_task *task);
typedef void gb_timer_fn(struct gb_timer *timer);

struct gb_task {
    struct gb_list_node node; /* private */
    gb_task_fn *run;
};
struct gb_timer {
    gb_timer_fn *fire; /* set by gb_timer_init */
    struct gb_reactor *reactor;
    uint64_t deadline_ns; /* private */
    uint64_t order;       /* private: start order breaks ties */
    uint32_t heap_index;  /* private: 0 = not running */
    bool initialised;     /* private */
};

enum { GB_REACTOR_TURN_MAX = 100000 };

struct gb_err gb_reactor_new(uint64_t random_seed, struct gb_reactor **out);
/* Asserts: no initialised timer, no queued task. Accepts NULL. */
void gb_reactor_free(struct gb_reactor *r);

/* Driver side. `mono_ns` never steps back. */
void gb_reactor_run(struct gb_reactor *r, uint64_t mono_ns, int64_t wall_ms);
/* Sets both clocks between turns, so that a driver's I/O callbacks see the time of now. */
void gb_reactor_set_now(struct gb_reactor *r, uint64_t mono_ns, int64_t wall_ms);
/* When the next run is due: 0 = now (tasks wait), UINT64_MAX = nothing to do. */
uint64_t gb_reactor_next_ns(const struct gb_reactor *r);
/* How long the machine was suspended since it started; never falls. */
void gb_reactor_set_suspended(struct gb_reactor *r, uint64_t suspended_ns);
/* Called when a task is deferred or the earliest timer changes outside gb_reactor_run, so that a
 * driver that sleeps can wake; may be NULL. */
void gb_reactor_on_wake(struct gb_reactor *r, void (*wake)(void *arg), void *arg);

/* User side. Both clocks are sampled once a turn. */
uint64_t gb_reactor_now_ns(const struct gb_reactor *r); /* monotonic */
/* Monotonic, and advances during suspend (spec 06 §6.3); timers don't follow it. */
uint64_t gb_reactor_boot_ns(const struct gb_reactor *r);
int64_t gb_reactor_wall_ms(const struct gb_reactor *r); /* may jump; row times only */
/* xoshiro256**, seeded: for jitter and ids, not for keys. */
uint64_t gb_reactor_random(struct gb_reactor *r);
/* Uniform in [0, bound); 0 when bound is 0. */
uint64_t gb_reactor_random_below(struct gb_reactor *r, uint64_t bound);

/* Runs `task->run` later in this turn or at the next one; deferring a queued task does nothing. */
void gb_reactor_defer(struct gb_reactor *r, struct gb_task *task);
/* Like defer, but runs when no deferred task is left: for "one write for what this turn made". */
void gb_reactor_flush(struct gb_reactor *r, struct gb_task *task);
void gb_task_cancel(struct gb_task *task); /* unqueues; fine when not queued */

struct gb_err gb_timer_init(struct gb_timer *t, struct gb_reactor *r, gb_timer_fn *fire);
void gb_timer_deinit(struct gb_timer *t); /* stops; accepts zeroed memory */
/* The deadline is absolute, one in the past is due at once; restarts a running timer. */
void gb_timer_start(struct gb_timer *t, uint64_t deadline_ns);
void gb_timer_stop(struct gb_timer *t);
bool gb_timer_running(const struct gb_timer *t);

#endif
