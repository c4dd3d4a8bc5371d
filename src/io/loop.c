#include "io/loop.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>
#include <uv.h>

#include "base/assert.h"

/* One iteration of uv: timers, idle, prepare, poll, check, closing callbacks. The reactor runs in
 * `check`, that is once after all I/O callbacks of a poll. `prepare` is the last word before the
 * poll and sets how long it may sleep; so nobody has to wake the loop from its own thread. */
struct gb_loop {
    uv_loop_t uv;
    uv_prepare_t prepare;
    uv_check_t check;
    uv_idle_t idle;   /* active = do not sleep */
    uv_timer_t timer; /* bounds the sleep; its callback has nothing to do */
    struct gb_reactor *reactor;
    uint64_t suspended_ns;
    bool clock_stale; /* the loop may have slept since the reactor's clock was set */
};

enum { NS_PER_MS = 1000000, MS_PER_S = 1000, NS_PER_S = 1000000000 };
/* What two readings of the clocks, one after the other, may differ by is no suspend. */
static const uint64_t suspend_floor_ns = 10 * 1000000ull;

/* --- the turn --- */

static int64_t wall_clock_ms(void)
{
    struct timespec t;
    int rc = clock_gettime(CLOCK_REALTIME, &t);
    GB_ASSERT(rc == 0); /* fails for an unknown clock only */
    return (int64_t)t.tv_sec * MS_PER_S + t.tv_nsec / NS_PER_MS;
}

/* The monotonic clock stands still during a suspend, the boot clock does not. */
static uint64_t suspended_ns(void)
{
    struct timespec boot;
    int rc = clock_gettime(CLOCK_BOOTTIME, &boot);
    GB_ASSERT(rc == 0);
    uint64_t mono_ns = uv_hrtime(); /* second: a pause in between must not count as a suspend */
    uint64_t boot_ns = (uint64_t)boot.tv_sec * NS_PER_S + (uint64_t)boot.tv_nsec;
    return boot_ns > mono_ns ? boot_ns - mono_ns : 0;
}

static void set_clocks(struct gb_loop *l)
{
    uint64_t suspended = suspended_ns();
    if (suspended > l->suspended_ns + suspend_floor_ns) {
        l->suspended_ns = suspended;
        gb_reactor_set_suspended(l->reactor, suspended);
    }
    gb_reactor_set_now(l->reactor, uv_hrtime(), wall_clock_ms());
}

void gb_loop_refresh_clock(struct gb_loop *l)
{
    if (!l->clock_stale) return;
    l->clock_stale = false;
    set_clocks(l);
}

static void on_idle(uv_idle_t *idle)
{
    (void)idle; /* an active idle handle keeps the poll from sleeping; that is all */
}

static void on_timer(uv_timer_t *timer)
{
    (void)timer; /* the sleep is over; the reactor finds what is due */
}

static void on_prepare(uv_prepare_t *prepare)
{
    struct gb_loop *l = prepare->data;
    l->clock_stale = true;
    uint64_t next_ns = gb_reactor_next_ns(l->reactor);
    uint64_t now_ns = uv_hrtime();
    int rc = 0;
    if (next_ns <= now_ns) {
        rc = uv_idle_start(&l->idle, on_idle);
        GB_ASSERT(rc == 0); /* uv refuses a missing callback only */
        return;
    }
    (void)uv_idle_stop(&l->idle); /* always 0 */
    if (next_ns == UINT64_MAX) {
        (void)uv_timer_stop(&l->timer); /* always 0 */
        return;
    }
    /* Rounded up from this very moment: the poll ends at most 1 ms after the deadline, never before
     * it. uv adds the time to its own clock, takes it off again and sleeps just that long. */
    rc = uv_timer_start(&l->timer, on_timer, (next_ns - now_ns + NS_PER_MS - 1) / NS_PER_MS, 0);
    GB_ASSERT(rc == 0); /* uv refuses a closing handle only */
}

static void on_check(uv_check_t *check)
{
    struct gb_loop *l = check->data;
    l->clock_stale = false;
    gb_reactor_run(l->reactor, uv_hrtime(), wall_clock_ms());
}

/* --- construction --- */

/* These four can't fail: they only set fields of the handle. */
static void start_handles(struct gb_loop *l)
{
    (void)uv_prepare_init(&l->uv, &l->prepare);
    (void)uv_check_init(&l->uv, &l->check);
    (void)uv_idle_init(&l->uv, &l->idle);
    (void)uv_timer_init(&l->uv, &l->timer);
    l->prepare.data = l;
    l->check.data = l;
    (void)uv_prepare_start(&l->prepare, on_prepare);
    (void)uv_check_start(&l->check, on_check);
}

struct gb_err gb_loop_new(struct gb_loop **out)
{
    uint64_t seed = 0;
    if (getrandom(&seed, sizeof seed, 0) != (ssize_t)sizeof seed) {
        return gb_err(GB_UNAVAILABLE, "the kernel gave no random bytes (getrandom)");
    }
    struct gb_loop *l = calloc(1, sizeof *l);
    if (l == NULL) return gb_err_no_memory("the event loop");
    struct gb_err err = gb_reactor_new(seed, &l->reactor);
    if (gb_failed(err)) {
        free(l);
        return err;
    }
    int rc = uv_loop_init(&l->uv);
    if (rc != 0) {
        gb_reactor_free(l->reactor);
        free(l);
        return gb_err(GB_UNAVAILABLE, "event loop: %s; check the limits of memory and open files",
                      uv_strerror(rc));
    }
    (void)signal(SIGPIPE, SIG_IGN); /* fails for unknown signals only */
    start_handles(l);
    set_clocks(l);
    *out = l;
    return gb_ok();
}

void gb_loop_free(struct gb_loop *l)
{
    if (l == NULL) return;
    uv_close((uv_handle_t *)&l->prepare, NULL);
    uv_close((uv_handle_t *)&l->check, NULL);
    uv_close((uv_handle_t *)&l->idle, NULL);
    uv_close((uv_handle_t *)&l->timer, NULL);
    (void)uv_run(&l->uv, UV_RUN_NOWAIT);
    int rc = uv_loop_close(&l->uv);
    GB_ASSERT(rc == 0); /* UV_EBUSY: somebody's handle was not closed */
    gb_reactor_free(l->reactor);
    free(l);
}

void gb_loop_run(struct gb_loop *l)
{
    set_clocks(l);
    (void)uv_run(&l->uv, UV_RUN_DEFAULT); /* says whether handles are left, and `check` always is */
}

void gb_loop_stop(struct gb_loop *l)
{
    uv_stop(&l->uv);
}

static void unref_handle(uv_handle_t *handle, void *arg)
{
    (void)arg;
    uv_unref(handle);
}

static void ref_handle(uv_handle_t *handle, void *arg)
{
    (void)arg;
    uv_ref(handle);
}

void gb_loop_drain_closing(struct gb_loop *l)
{
    /* Without references of active handles, uv_loop_alive tells of closing handles and requests. A
     * handle that is still open is left for the assertion of gb_loop_free. */
    uv_walk(&l->uv, unref_handle, NULL);
    while (uv_loop_alive(&l->uv) || gb_reactor_next_ns(l->reactor) == 0) {
        (void)uv_run(&l->uv, UV_RUN_ONCE);
        uv_walk(&l->uv, unref_handle, NULL);
    }
    uv_walk(&l->uv, ref_handle, NULL);
}

struct gb_reactor *gb_loop_reactor(struct gb_loop *l)
{
    return l->reactor;
}

struct uv_loop_s *gb_loop_uv(struct gb_loop *l)
{
    return &l->uv;
}
