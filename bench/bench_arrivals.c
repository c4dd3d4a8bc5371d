#include "bench_arrivals.h"

#include <inttypes.h>
#include <stdlib.h>

#include "bench_payload.h"
#include "bench_process.h"

enum { SEEN_MAX = 1 << 28, SUB_BITS = 6 };

/* Values below 64 have a bucket each; above, the top seven bits choose it. */
static size_t bucket_of(uint64_t ns)
{
    if (ns < (1U << SUB_BITS)) return (size_t)ns;
    unsigned shift = 63U - SUB_BITS - (unsigned)__builtin_clzll(ns);
    size_t bucket = ((size_t)shift << SUB_BITS) + (size_t)(ns >> shift);
    return bucket < GB_BENCH_BUCKETS ? bucket : GB_BENCH_BUCKETS - 1;
}

static uint64_t bucket_value(size_t bucket)
{
    if (bucket < (2U << SUB_BITS)) return bucket;
    unsigned shift = (unsigned)(bucket >> SUB_BITS) - 1;
    return (uint64_t)((bucket & ((1U << SUB_BITS) - 1)) | (1U << SUB_BITS)) << shift;
}

static void grow_seen(struct gb_bench_arrivals *a, uint64_t sequence)
{
    uint64_t bits = a->seen_bits == 0 ? 1U << 20 : a->seen_bits;
    while (bits <= sequence) bits *= 2;
    uint64_t *seen = realloc(a->seen, bits / 8);
    if (seen == NULL) gb_bench_die("out of memory");
    memset(seen + a->seen_bits / 64, 0, (bits - a->seen_bits) / 8);
    a->seen = seen;
    a->seen_bits = bits;
}

void gb_bench_arrivals_add(struct gb_bench_arrivals *a, struct gb_bytes payload, uint64_t now_ns)
{
    uint64_t sequence = 0;
    uint64_t due_ns = 0;
    if (!gb_bench_payload_read(payload, &sequence, &due_ns) || sequence >= SEEN_MAX) {
        a->foreign++;
        return;
    }
    if (sequence >= a->seen_bits) grow_seen(a, sequence);
    uint64_t bit = UINT64_C(1) << (sequence % 64);
    a->received++;
    if ((a->seen[sequence / 64] & bit) != 0) return;
    a->seen[sequence / 64] |= bit;
    a->distinct++;
    a->last_ns = now_ns;
    uint64_t late_ns = now_ns > due_ns ? now_ns - due_ns : 0;
    if (late_ns > a->worst_ns) a->worst_ns = late_ns;
    a->buckets[bucket_of(late_ns)]++;
}

static double percentile_us(const struct gb_bench_arrivals *a, double part)
{
    uint64_t wanted = (uint64_t)((double)a->distinct * part);
    uint64_t passed = 0;
    for (size_t i = 0; i < GB_BENCH_BUCKETS; i++) {
        passed += a->buckets[i];
        if (passed > wanted) return (double)bucket_value(i) / 1000.0;
    }
    return (double)a->worst_ns / 1000.0;
}

void gb_bench_arrivals_say(const struct gb_bench_arrivals *a)
{
    gb_bench_say("{\"received\":%" PRIu64 ",\"distinct\":%" PRIu64 ",\"foreign\":%" PRIu64
                 ",\"last_ns\":%" PRIu64 ",\"p50_us\":%.1f,\"p99_us\":%.1f,\"worst_us\":%.1f}",
                 a->received, a->distinct, a->foreign, a->last_ns, percentile_us(a, 0.50),
                 percentile_us(a, 0.99), (double)a->worst_ns / 1000.0);
}

void gb_bench_arrivals_reset(struct gb_bench_arrivals *a)
{
    uint64_t *seen = a->seen;
    uint64_t seen_bits = a->seen_bits;
    memset(a, 0, sizeof *a);
    a->seen = seen;
    a->seen_bits = seen_bits;
}
