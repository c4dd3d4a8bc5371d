#include "io/http.h"

void gb_http_deinit(struct gb_http_request *q)
{
    gb_str_deinit(&q->body);
    gb_str_deinit(&q->answer);
    gb_str_deinit(&q->answer_headers);
}

struct gb_bytes gb_http_answer_header(const struct gb_http_request *q, const char *name)
{
    struct gb_bytes rest = gb_str_bytes(&q->answer_headers);
    size_t name_size = strlen(name);
    while (rest.size > 0) {
        const uint8_t *end = memchr(rest.data, '\n', rest.size);
        size_t line_size = end == NULL ? rest.size : (size_t)(end - rest.data);
        if (line_size >= name_size + 2 && memcmp(rest.data, name, name_size) == 0 &&
            memcmp(rest.data + name_size, ": ", 2) == 0) {
            return gb_bytes(rest.data + name_size + 2, line_size - name_size - 2);
        }
        size_t step = end == NULL ? line_size : line_size + 1;
        rest = gb_bytes(rest.data + step, rest.size - step);
    }
    return gb_bytes(NULL, 0);
}
