#include "io/ws_codec.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define COUNT(rows) (sizeof(rows) / sizeof(rows)[0])

/* --- upgrade --- */

static void key_and_accept_are_those_of_the_rfc(void **state)
{
    (void)state;
    char key[GB_WS_KEY_SIZE];
    char accept[GB_WS_ACCEPT_SIZE];
    gb_ws_key((const uint8_t *)"the sample nonce", key); /* RFC 6455 §1.3 */
    assert_string_equal(key, "dGhlIHNhbXBsZSBub25jZQ==");
    gb_ws_accept(key, accept);
    assert_string_equal(accept, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
}

static void request_names_the_port_unless_it_is_the_default(void **state)
{
    (void)state;
    static const struct {
        struct gb_ws_target target;
        const char *host_line;
    } rows[] = {
        {{"broker", 80, false, "/mqtt"}, "Host: broker\r\n"},
        {{"broker", 443, true, "/mqtt"}, "Host: broker\r\n"},
        {{"broker", 443, false, "/mqtt"}, "Host: broker:443\r\n"},
        {{"broker", 9001, true, "/mqtt"}, "Host: broker:9001\r\n"},
        {{"::1", 9001, false, "/mqtt"}, "Host: [::1]:9001\r\n"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct gb_str text = {0};
        gb_ws_request(&text, &rows[i].target, "dGhlIHNhbXBsZSBub25jZQ==");
        assert_non_null(strstr(text.data, rows[i].host_line));
        assert_int_equal(strncmp(text.data, "GET /mqtt HTTP/1.1\r\n", 20), 0);
        assert_non_null(strstr(text.data, "Sec-WebSocket-Protocol: mqtt\r\n"));
        assert_int_equal(gb_ws_head_size(gb_str_bytes(&text)), text.size);
        gb_str_deinit(&text);
    }
}

#define ACCEPT "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
#define UPGRADE "Upgrade: websocket\r\n"
#define CONNECTION "Connection: Upgrade\r\n"
#define ACCEPT_LINE "Sec-WebSocket-Accept: " ACCEPT "\r\n"
#define START "HTTP/1.1 101 Switching Protocols\r\n"

static void answers(void **state)
{
    (void)state;
    static const struct {
        const char *name, *head, *message; /* NULL = accepted */
    } rows[] = {
        {"as expected", START UPGRADE CONNECTION ACCEPT_LINE "\r\n", NULL},
        {"with the sub-protocol",
         START UPGRADE CONNECTION ACCEPT_LINE "Sec-WebSocket-Protocol: mqtt\r\n\r\n", NULL},
        {"other case and lists",
         START "UPGRADE:  WebSocket \r\nconnection: keep-alive, Upgrade\r\n" ACCEPT_LINE "\r\n",
         NULL},
        {"no header has a value", START "Upgrade\r\n\r\n", "lacks \"Upgrade: websocket\""},
        {"no Upgrade", START CONNECTION ACCEPT_LINE "\r\n", "lacks \"Upgrade: websocket\""},
        {"no Connection", START UPGRADE ACCEPT_LINE "\r\n", "lacks \"Connection: Upgrade\""},
        {"no Accept", START UPGRADE CONNECTION "\r\n", "Sec-WebSocket-Accept"},
        {"other Accept",
         START UPGRADE CONNECTION "Sec-WebSocket-Accept: s3pplmbitxaq9kygzzhzrbk+xoo=\r\n\r\n",
         "Sec-WebSocket-Accept"},
        {"extension", START UPGRADE CONNECTION ACCEPT_LINE "Sec-WebSocket-Extensions: x\r\n\r\n",
         "extension"},
        {"other sub-protocol",
         START UPGRADE CONNECTION ACCEPT_LINE "Sec-WebSocket-Protocol: chat\r\n\r\n",
         "sub-protocol"},
        {"refused", "HTTP/1.1 403 Forbidden\r\n\r\n", "HTTP status 403"},
        {"status that only starts like 101", "HTTP/1.1 1010 X\r\n\r\n", "HTTP status 101"},
        {"status that is no number",
         "HTTP/1.1 a\x01"
         "b c\r\n\r\n",
         "HTTP status ???"},
        {"HTTP/1.0", "HTTP/1.0 101 X\r\n\r\n", "no HTTP/1.1"},
        {"something else", "hello\r\n\r\n", "no HTTP/1.1"},
        {"nothing", "\r\n\r\n", "no HTTP/1.1"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        print_message("row: %s\n", rows[i].name);
        struct gb_err err = gb_ws_check_answer(gb_bytes_c(rows[i].head), ACCEPT);
        assert_int_equal(err.code, rows[i].message == NULL ? GB_OK : GB_CONNECTION_LOST);
        if (rows[i].message != NULL) assert_non_null(strstr(err.message, rows[i].message));
    }
}

static void head_ends_with_an_empty_line(void **state)
{
    (void)state;
    assert_int_equal(gb_ws_head_size(gb_bytes_c("")), 0);
    assert_int_equal(gb_ws_head_size(gb_bytes(NULL, 0)), 0);
    assert_int_equal(gb_ws_head_size(gb_bytes_c("a\r\n\r")), 0);
    assert_int_equal(gb_ws_head_size(gb_bytes_c("a\r\n\r\nframes")), 5);
}

/* --- frames --- */

enum { TRACE_MAX = 400 };

/* What the decoder makes of `input` in pieces of `step` bytes: d(text) per run of data, p, o, c for
 * control frames, ! for an error. Pieces of data that follow each other count as one run. */
static void trace_of(struct gb_bytes input, size_t step, char out[TRACE_MAX])
{
    struct gb_ws_decoder d = {0};
    struct gb_str trace = {.size_max = TRACE_MAX - 1};
    bool in_data = false;
    gb_str_append_c(&trace, "");
    for (size_t at = 0; at < input.size; at += step) {
        size_t size = input.size - at < step ? input.size - at : step;
        struct gb_bytes piece = gb_bytes(input.data + at, size);
        enum gb_ws_event event = GB_WS_NEED_MORE;
        do {
            struct gb_bytes payload;
            struct gb_err err = gb_ws_decode(&d, &piece, &event, &payload);
            if (gb_failed(err)) {
                assert_int_equal(err.code, GB_CONNECTION_LOST);
                gb_str_appendf(&trace, "!%s", err.message + strlen("WebSocket frame: "));
                (void)snprintf(out, TRACE_MAX, "%s", trace.data);
                gb_str_deinit(&trace);
                return;
            }
            if (event == GB_WS_NEED_MORE) continue;
            if (event != GB_WS_DATA || !in_data) {
                static const char names[] = {'?', 'd', 'p', 'o', 'c'};
                gb_str_append_char(&trace, names[event]);
                gb_str_append_char(&trace, ':');
            }
            in_data = event == GB_WS_DATA;
            gb_str_append(&trace, payload);
        } while (event != GB_WS_NEED_MORE);
        assert_int_equal(piece.size, 0);
    }
    (void)snprintf(out, TRACE_MAX, "%s", trace.data);
    gb_str_deinit(&trace);
}

#define FRAME(text) text, sizeof(text) - 1

static const struct {
    const char *name;
    const char *bytes;
    size_t size;
    const char *want;
} frames[] = {
    {"binary",
     FRAME("\x82\x03"
           "abc"),
     "d:abc"},
    {"empty binary", FRAME("\x82\x00"), ""},
    {"two",
     FRAME("\x82\x01"
           "a\x82\x01"
           "b"),
     "d:ab"},
    {"fragments",
     FRAME("\x02\x01"
           "a\x00\x01"
           "b\x80\x01"
           "c"),
     "d:abc"},
    {"empty fragments",
     FRAME("\x02\x00\x00\x00\x80\x01"
           "c\x82\x01"
           "d"),
     "d:cd"},
    {"ping between fragments",
     FRAME("\x02\x01"
           "a\x89\x02"
           "hi\x80\x01"
           "c"),
     "d:ap:hid:c"},
    {"ping, pong, close", FRAME("\x89\x00\x8a\x01x\x88\x02\x03\xe8"), "p:o:xc:\x03\xe8"},
    {"close without a code", FRAME("\x88\x00"), "c:"},
    {"close with half a code", FRAME("\x88\x01\x03"), "!a close frame with half a status code"},
    {"16-bit length",
     FRAME("\x82\x7e\x00\x7e"
           "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
           "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"),
     "d:"
     "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
     "a"
     "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"},
    {"cut head", FRAME("\x82"), ""},
    {"cut payload",
     FRAME("\x82\x03"
           "a"),
     "d:a"},
    {"cut control", FRAME("\x89\x02h"), ""},
    {"16-bit length for 125", FRAME("\x82\x7e\x00\x7d"), "!a length in more bytes than it needs"},
    {"64-bit length for 65535", FRAME("\x82\x7f\0\0\0\0\0\0\xff\xff"),
     "!a length in more bytes than it needs"},
    {"64-bit length", FRAME("\x82\x7f\0\0\0\0\0\1\0\0x"), "d:x"},
    {"largest length", FRAME("\x82\x7f\x7f\xff\xff\xff\xff\xff\xff\xffx"), "d:x"},
    {"length with the top bit", FRAME("\x82\x7f\x80\0\0\0\0\0\0\0"), "!a length of 2^63 or more"},
    {"masked", FRAME("\x82\x81\0\0\0\0x"), "!the server masks"},
    {"reserved bit", FRAME("\xc2\x00"), "!a reserved bit is set"},
    {"text", FRAME("\x81\x00"), "!a text frame; MQTT is binary"},
    {"opcode 3", FRAME("\x83\x00"), "!an unknown opcode"},
    {"opcode 11", FRAME("\x8b\x00"), "!an unknown opcode"},
    {"continuation alone", FRAME("\x80\x00"), "!a continuation without a start"},
    {"message in a message", FRAME("\x02\x00\x82\x00"), "!a message inside another"},
    {"ping in fragments", FRAME("\x09\x00"), "!a control frame in fragments"},
    {"long ping", FRAME("\x89\x7e\x00\x7e"), "!a control frame above 125 bytes"},
};

static void frames_in_any_fragments(void **state)
{
    (void)state;
    static const size_t steps[] = {1, 2, 3, 7, SIZE_MAX / 2};
    for (size_t i = 0; i < COUNT(frames); i++) {
        print_message("row: %s\n", frames[i].name);
        for (size_t s = 0; s < COUNT(steps); s++) {
            char trace[TRACE_MAX];
            trace_of(gb_bytes(frames[i].bytes, frames[i].size), steps[s], trace);
            assert_string_equal(trace, frames[i].want);
        }
    }
}

/* The RFC's example (§5.7): a masked "Hello", here as binary. */
static void encoded_frame_is_that_of_the_rfc(void **state)
{
    (void)state;
    static const uint8_t mask[] = {0x37, 0xfa, 0x21, 0x3d};
    static const uint8_t want[] = {0x82, 0x85, 0x37, 0xfa, 0x21, 0x3d,
                                   0x7f, 0x9f, 0x4d, 0x51, 0x58};
    struct gb_str out = {0};
    gb_ws_encode(&out, GB_WS_BINARY, mask, gb_bytes_c("Hello"));
    assert_int_equal(out.size, sizeof want);
    assert_memory_equal(out.data, want, sizeof want);
    gb_str_deinit(&out);
}

/* Unmasked by hand, what is encoded decodes to what it was. */
static void round_trip(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 125, 126, 65535, 65536, 70000};
    static const uint8_t mask[] = {1, 2, 3, 4};
    for (size_t i = 0; i < COUNT(sizes); i++) {
        char *payload = malloc(sizes[i] + 1);
        for (size_t k = 0; k < sizes[i]; k++) payload[k] = (char)(k * 31);
        struct gb_str out = {0};
        gb_ws_encode(&out, GB_WS_BINARY, mask, gb_bytes(payload, sizes[i]));
        size_t head = sizes[i] < 126 ? 2 : sizes[i] < 65536 ? 4 : 10;
        assert_int_equal(out.size, head + 4 + sizes[i]);
        out.data[1] = (char)(out.data[1] & 0x7f);
        memmove(out.data + head, out.data + head + 4, sizes[i]);
        for (size_t k = 0; k < sizes[i]; k++) {
            out.data[head + k] = (char)(out.data[head + k] ^ mask[k % 4]);
        }
        struct gb_ws_decoder d = {0};
        struct gb_bytes input = gb_bytes(out.data, head + sizes[i]);
        struct gb_bytes data = gb_bytes(NULL, 0);
        enum gb_ws_event event = GB_WS_NEED_MORE;
        assert_int_equal(gb_ws_decode(&d, &input, &event, &data).code, GB_OK);
        assert_int_equal(data.size, sizes[i]);
        if (sizes[i] > 0) assert_memory_equal(data.data, payload, sizes[i]);
        gb_str_deinit(&out);
        free(payload);
    }
}

static void frame_above_the_limit_fails_the_buffer(void **state)
{
    (void)state;
    static const uint8_t mask[4] = {0};
    struct gb_str out = {.size_max = 10};
    gb_ws_encode(&out, GB_WS_BINARY, mask, gb_bytes_c("0123456789"));
    assert_true(out.failed);
    gb_str_deinit(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(key_and_accept_are_those_of_the_rfc),
        cmocka_unit_test(request_names_the_port_unless_it_is_the_default),
        cmocka_unit_test(answers),
        cmocka_unit_test(head_ends_with_an_empty_line),
        cmocka_unit_test(frames_in_any_fragments),
        cmocka_unit_test(encoded_frame_is_that_of_the_rfc),
        cmocka_unit_test(round_trip),
        cmocka_unit_test(frame_above_the_limit_fails_the_buffer),
    };
    return cmocka_run_group_tests_name("ws_codec", tests, NULL, NULL);
}
