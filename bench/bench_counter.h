#ifndef GB_BENCH_COUNTER_H
#define GB_BENCH_COUNTER_H

#include <stdatomic.h>
#include <stdint.h>

/* How many messages have arrived, told by the sink to the source through a mapped file. An outbox
 * takes messages in faster than it hands them on; the source holds back by this count, so that what
 * is measured is a steady state and not the filling of a store.
 * Owns:   the mapping lives until the process ends.
 * Thread: one writer, one reader.
 * Errors: end the process. */
_Atomic uint64_t *gb_bench_counter_open(const char *path);

#endif
