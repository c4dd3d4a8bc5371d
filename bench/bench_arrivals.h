#ifndef GB_BENCH_ARRIVALS_H
#define GB_BENCH_ARRIVALS_H

#include "base/bytes.h"

/* What arrived at the end of the line: how many, which of them again, and how late.
 * Latencies are kept in buckets of 1/64 of a power of two: percentiles are right within 1.6 %.
 * Owns:   `seen`.
 * Thread: one.
 * Errors: `foreign` counts payloads that are not the source's; out of memory ends the process. */

enum { GB_BENCH_BUCKETS = 64 * 40 };

struct gb_bench_arrivals { /* zeroed to begin with */
    uint64_t received, distinct, foreign;
    uint64_t last_ns, worst_ns;
    uint64_t buckets[GB_BENCH_BUCKETS];
    /* private: one bit for each sequence number */
    uint64_t *seen;
    uint64_t seen_bits;
};
void gb_bench_arrivals_add(struct gb_bench_arrivals *a, struct gb_bytes payload, uint64_t now_ns);
/* Prints
 * {"received":..,"distinct":..,"foreign":..,"last_ns":..,"p50_us":..,"p99_us":..,"worst_us":..}
 */
void gb_bench_arrivals_say(const struct gb_bench_arrivals *a);
/* Counts and latencies begin anew; which numbers were seen is kept. */
void gb_bench_arrivals_reset(struct gb_bench_arrivals *a);

#endif
