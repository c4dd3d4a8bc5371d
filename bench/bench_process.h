#ifndef GB_BENCH_PROCESS_H
#define GB_BENCH_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What every program of bench/ needs from its process: a clock, an end with a reason, and orders.
 * scripts/bench.py writes orders to stdin, one a line, and reads one JSON line for each from
 * stdout; the end of stdin ends the program, so none outlives the script.
 * Owns:   nothing but the caller's struct.
 * Thread: one.
 * Errors: a failure has no remedy here: it is told on stderr and the process exits with 1. */

uint64_t gb_bench_now_ns(void); /* CLOCK_MONOTONIC: one clock for all processes of a machine */
__attribute__((format(printf, 1, 2))) _Noreturn void gb_bench_die(const char *format, ...);
/* One JSON line for the script, flushed. */
__attribute__((format(printf, 1, 2))) void gb_bench_say(const char *format, ...);

enum { GB_BENCH_ORDER_MAX = 128 };
enum gb_bench_order_result { GB_BENCH_ORDER, GB_BENCH_NO_ORDER, GB_BENCH_ORDERS_END };
struct gb_bench_orders { /* zeroed to begin with */
    char bytes[GB_BENCH_ORDER_MAX];
    size_t size;
    bool ended;
};
/* Takes one line off stdin; never waits. */
enum gb_bench_order_result gb_bench_next_order(struct gb_bench_orders *o,
                                               char order[GB_BENCH_ORDER_MAX]);

/* Command line: `--name value` pairs. `fallback` when absent; a bad number or an unknown name ends
 * the process. Call gb_bench_check_options with all names last. */
uint64_t gb_bench_option_u64(int argc, char **argv, const char *name, uint64_t fallback);
const char *gb_bench_option(int argc, char **argv, const char *name, const char *fallback);
void gb_bench_check_options(int argc, char **argv, const char *const *names, size_t count);

#endif
