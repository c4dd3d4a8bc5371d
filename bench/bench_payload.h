#ifndef GB_BENCH_PAYLOAD_H
#define GB_BENCH_PAYLOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

/* The 200-byte payload of every run: JSON as a sensor would send it, with a sequence number and the
 * time at which the message was due, at fixed places.
 * Owns:   nothing.
 * Thread: any. Pure.
 * Errors: gb_bench_payload_read is false for any other text. */

enum { GB_BENCH_PAYLOAD_SIZE = 200 };

void gb_bench_payload_init(uint8_t payload[GB_BENCH_PAYLOAD_SIZE]);
void gb_bench_payload_stamp(uint8_t payload[GB_BENCH_PAYLOAD_SIZE], uint64_t sequence,
                            uint64_t due_ns);
bool gb_bench_payload_read(struct gb_bytes payload, uint64_t *sequence, uint64_t *due_ns);

#endif
