#include "bench_payload.h"

enum { SEQUENCE_DIGITS = 12, TIME_DIGITS = 20 };

static const char head[] = "{\"sequence\":\"";
static const char middle[] = "\",\"due_ns\":\"";
static const char tail[] = "\",\"device\":\"sensor-17\",\"readings\":[";
enum {
    SEQUENCE_AT = sizeof head - 1,
    TIME_AT = SEQUENCE_AT + SEQUENCE_DIGITS + sizeof middle - 1,
    TAIL_AT = TIME_AT + TIME_DIGITS,
    READINGS_AT = TAIL_AT + sizeof tail - 1,
};

static void put_digits(uint8_t *at, size_t count, uint64_t value)
{
    for (size_t i = count; i-- > 0; value /= 10) at[i] = (uint8_t)('0' + value % 10);
}

static bool read_digits(const uint8_t *at, size_t count, uint64_t *out)
{
    uint64_t value = 0;
    for (size_t i = 0; i < count; i++) {
        if (at[i] < '0' || at[i] > '9') return false;
        value = value * 10 + (uint64_t)(at[i] - '0');
    }
    *out = value;
    return true;
}

void gb_bench_payload_init(uint8_t payload[GB_BENCH_PAYLOAD_SIZE])
{
    static const char readings[] = "21.5,";
    memcpy(payload, head, sizeof head - 1);
    memcpy(payload + SEQUENCE_AT + SEQUENCE_DIGITS, middle, sizeof middle - 1);
    memcpy(payload + TAIL_AT, tail, sizeof tail - 1);
    size_t at = READINGS_AT;
    for (; at + sizeof readings + 2 < GB_BENCH_PAYLOAD_SIZE; at += sizeof readings - 1)
        memcpy(payload + at, readings, sizeof readings - 1);
    while (at < GB_BENCH_PAYLOAD_SIZE - 2) payload[at++] = '1';
    payload[at] = ']';
    payload[at + 1] = '}';
    gb_bench_payload_stamp(payload, 0, 0);
}

void gb_bench_payload_stamp(uint8_t payload[GB_BENCH_PAYLOAD_SIZE], uint64_t sequence,
                            uint64_t due_ns)
{
    put_digits(payload + SEQUENCE_AT, SEQUENCE_DIGITS, sequence);
    put_digits(payload + TIME_AT, TIME_DIGITS, due_ns);
}

bool gb_bench_payload_read(struct gb_bytes payload, uint64_t *sequence, uint64_t *due_ns)
{
    return payload.size == GB_BENCH_PAYLOAD_SIZE &&
           memcmp(payload.data, head, sizeof head - 1) == 0 &&
           read_digits(payload.data + SEQUENCE_AT, SEQUENCE_DIGITS, sequence) &&
           read_digits(payload.data + TIME_AT, TIME_DIGITS, due_ns);
}
