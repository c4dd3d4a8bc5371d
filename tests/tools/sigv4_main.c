#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/aws/sigv4.h"
#include "base/assert.h"
#include "base/json_read.h"

/* Signs requests for the oracle test (tests/e2e/test_sigv4_oracle.py): one JSON array of strings a
 * line — method, path, query, body in hex, time in ms, region, service, key id, secret, then header
 * name and value in turn — and one Authorization value a line back. */
enum { FIXED = 9, TEXTS_MAX = FIXED + 2 * GB_SIGV4_HEADERS_MAX, LINE_MAX_BYTES = 1 << 20 };

static size_t read_texts(struct gb_bytes line, struct gb_str *texts)
{
    struct gb_json_reader r;
    size_t count = 0;
    gb_json_init(&r, line);
    GB_ASSERT(gb_json_next(&r) == GB_JSON_ARRAY_BEGIN);
    while (gb_json_next(&r) == GB_JSON_STRING) {
        GB_ASSERT(count < TEXTS_MAX);
        texts[count] = (struct gb_str){0};
        gb_str_append_c(&texts[count], "");
        GB_ASSERT(gb_json_string(&r, &texts[count], NULL));
        count++;
    }
    return count;
}

static struct gb_bytes unhex(struct gb_str *text)
{
    for (size_t i = 0; i < text->size / 2; i++) {
        char digits[3] = {text->data[2 * i], text->data[2 * i + 1], '\0'};
        text->data[i] = (char)strtoul(digits, NULL, 16);
    }
    return gb_bytes(text->data, text->size / 2);
}

static void sign_line(struct gb_bytes line, struct gb_sigv4_key *key)
{
    struct gb_str texts[TEXTS_MAX];
    struct gb_sigv4_header headers[GB_SIGV4_HEADERS_MAX];
    size_t count = read_texts(line, texts);
    GB_ASSERT(count >= FIXED && (count - FIXED) % 2 == 0);
    size_t header_count = (count - FIXED) / 2;
    for (size_t i = 0; i < header_count; i++) {
        headers[i] = (struct gb_sigv4_header){gb_str_bytes(&texts[FIXED + 2 * i]),
                                              gb_str_bytes(&texts[FIXED + 2 * i + 1])};
    }
    struct gb_sigv4_request q = {.method = texts[0].data,
                                 .path = gb_str_bytes(&texts[1]),
                                 .query = gb_str_bytes(&texts[2]),
                                 .headers = headers,
                                 .header_count = header_count,
                                 .body = unhex(&texts[3]),
                                 .time_ms = strtoll(texts[4].data, NULL, 10),
                                 .region = texts[5].data,
                                 .service = texts[6].data};
    struct gb_sigv4_credentials c = {texts[7].data, texts[8].data, NULL};
    struct gb_str out = {0};
    struct gb_err err = gb_sigv4_sign(&q, &c, key, &out);
    (void)puts(gb_failed(err) ? err.message : out.data);
    gb_str_deinit(&out);
    for (size_t i = 0; i < count; i++) gb_str_deinit(&texts[i]);
}

int main(void)
{
    struct gb_sigv4_key key = {0};
    char *line = malloc(LINE_MAX_BYTES);
    GB_ASSERT(line != NULL);
    while (fgets(line, LINE_MAX_BYTES, stdin) != NULL)
        sign_line(gb_bytes(line, strlen(line)), &key);
    free(line);
    return 0;
}
