#include "sink_http.h"

enum { HEAD_MAX = 16 * 1024 };

static struct gb_bytes trimmed(const uint8_t *begin, const uint8_t *end)
{
    while (begin < end && (*begin == ' ' || *begin == '\t')) begin++;
    while (end > begin && (end[-1] == ' ' || end[-1] == '\t')) end--;
    return gb_bytes(begin, (size_t)(end - begin));
}

static bool read_length(struct gb_bytes text, size_t *out)
{
    size_t value = 0;
    if (text.size == 0 || text.size > 9) return false;
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] < '0' || text.data[i] > '9') return false;
        value = value * 10 + (size_t)(text.data[i] - '0');
    }
    *out = value;
    return value <= GB_BENCH_HTTP_BODY_MAX;
}

/* One header line without its line break. */
static bool take_header(const uint8_t *line, const uint8_t *end, size_t *length,
                        struct gb_bench_http_request *out)
{
    const uint8_t *colon = memchr(line, ':', (size_t)(end - line));
    if (colon == NULL) return false;
    struct gb_bytes name = gb_bytes(line, (size_t)(colon - line));
    struct gb_bytes value = trimmed(colon + 1, end);
    if (gb_bytes_equal_nocase(name, gb_bytes_c("content-length")))
        return read_length(value, length);
    if (gb_bytes_equal_nocase(name, gb_bytes_c("x-amz-target"))) out->target = value;
    if (gb_bytes_equal_nocase(name, gb_bytes_c("expect"))) out->expects_continue = true;
    return !gb_bytes_equal_nocase(name, gb_bytes_c("transfer-encoding"));
}

enum gb_bench_http_result gb_bench_http_next(struct gb_bytes input,
                                             struct gb_bench_http_request *out)
{
    *out = (struct gb_bench_http_request){0};
    if (input.size == 0) return GB_BENCH_HTTP_NEED_MORE;
    const uint8_t *blank = memmem(input.data, input.size, "\r\n\r\n", 4);
    if (blank == NULL) return input.size > HEAD_MAX ? GB_BENCH_HTTP_BAD : GB_BENCH_HTTP_NEED_MORE;
    static const char post[] = "POST / HTTP/1.1\r\n";
    if (input.size < sizeof post - 1 || memcmp(input.data, post, sizeof post - 1) != 0)
        return GB_BENCH_HTTP_BAD;
    size_t length = 0;
    for (const uint8_t *line = input.data + sizeof post - 1; line < blank;) {
        const uint8_t *end = memmem(line, (size_t)(blank + 2 - line), "\r\n", 2);
        if (end == NULL || !take_header(line, end, &length, out)) return GB_BENCH_HTTP_BAD;
        line = end + 2;
    }
    size_t head = (size_t)(blank + 4 - input.data);
    if (input.size - head < length) return GB_BENCH_HTTP_NEED_MORE;
    out->body = gb_bytes(blank + 4, length);
    out->size = head + length;
    return GB_BENCH_HTTP_OK;
}

void gb_bench_http_answer(struct gb_str *out, unsigned status, struct gb_bytes body)
{
    gb_str_appendf(out,
                   "HTTP/1.1 %u %s\r\n"
                   "x-amzn-RequestId: 00000000-0000-0000-0000-000000000000\r\n"
                   "Content-Type: application/x-amz-json-1.0\r\nContent-Length: %zu\r\n\r\n",
                   status, status == 200 ? "OK" : "Bad Request", body.size);
    gb_str_append(out, body);
}
