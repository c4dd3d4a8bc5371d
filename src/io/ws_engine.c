#include "io/ws_engine.h"

#include <openssl/sha.h>
#include <stdlib.h>

#include "base/digest.h"

enum opcode {
    OP_CONTINUATION = 0,
    OP_TEXT = 1,
    OP_BINARY = 2,
    OP_CLOSE = 8,
    OP_PING = 9,
    OP_PONG = 10
};
enum { FIN = 0x80, MASKED = 0x80, CONTROL_MAX = 125 };

struct gb_ws {
    char *request; /* until it was sent */
    char accept[40];
    bool open;
    struct gb_str rx;      /* bytes not yet handed over */
    uint64_t payload_left; /* of the data frame that is arriving */
    bool in_message;       /* a fragmented message is under way */
};

/* Sec-WebSocket-Accept for our key (RFC 6455 §4.2.2). */
static void compute_accept(const char *key, char out[40])
{
    struct gb_str input = {0}, text = {0};
    gb_str_append_c(&input, key);
    gb_str_append_c(&input, "258EAFA5-E914-47DA-95CA-C5AB0DC85B11");
    unsigned char digest[SHA_DIGEST_LENGTH];
    SHA1((const unsigned char *)input.data, input.size, digest);
    gb_base64_append(&text, gb_bytes(digest, sizeof digest));
    if (text.data != NULL && text.size < 40) memcpy(out, text.data, text.size + 1);
    gb_str_deinit(&input);
    gb_str_deinit(&text);
}

struct gb_err gb_ws_new(const char *host, uint16_t port, const char *path, struct gb_reactor *r,
                        struct gb_ws **out)
{
    struct gb_ws *ws = calloc(1, sizeof *ws);
    if (ws == NULL) return gb_err_no_memory("WebSocket");
    uint8_t nonce[16];
    gb_put_u64(nonce, gb_reactor_random(r));
    gb_put_u64(nonce + 8, gb_reactor_random(r));
    struct gb_str key = {0};
    gb_base64_append(&key, gb_bytes(nonce, sizeof nonce));
    const char *open = strchr(host, ':') != NULL ? "[" : "", *close = *open == '[' ? "]" : "";
    ws->rx.size_max = GB_WS_BUFFER_MAX;
    if (key.data != NULL) {
        ws->request =
            gb_asprintf("GET %s HTTP/1.1\r\nHost: %s%s%s:%u\r\nUpgrade: websocket\r\n"
                        "Connection: Upgrade\r\nSec-WebSocket-Key: %s\r\n"
                        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: mqtt\r\n\r\n",
                        path, open, host, close, port, key.data);
        compute_accept(key.data, ws->accept);
    }
    gb_str_deinit(&key);
    if (ws->request == NULL || ws->accept[0] == '\0') {
        gb_ws_free(ws);
        return gb_err_no_memory("WebSocket");
    }
    *out = ws;
    return gb_ok();
}

void gb_ws_free(struct gb_ws *ws)
{
    if (ws == NULL) return;
    free(ws->request);
    gb_str_deinit(&ws->rx);
    free(ws);
}

void gb_ws_request(struct gb_ws *ws, struct gb_str *out)
{
    gb_str_append_c(out, ws->request);
}

static void consume(struct gb_ws *ws, size_t n)
{
    if (n == 0) return;
    memmove(ws->rx.data, ws->rx.data + n, ws->rx.size - n);
    ws->rx.size -= n;
}

static struct gb_bytes trim(struct gb_bytes b)
{
    while (b.size > 0 && (b.data[0] == ' ' || b.data[0] == '\t'))
        b = gb_bytes(b.data + 1, b.size - 1);
    while (b.size > 0 && (b.data[b.size - 1] == ' ' || b.data[b.size - 1] == '\t')) b.size--;
    return b;
}

/* Value of a header in the head, or the empty view. */
static struct gb_bytes header(struct gb_bytes head, const char *name)
{
    size_t name_size = strlen(name);
    size_t at = 0;
    while (at < head.size) {
        const uint8_t *nl = memchr(head.data + at, '\n', head.size - at);
        size_t end = nl == NULL ? head.size : (size_t)(nl - head.data);
        struct gb_bytes line = gb_bytes(head.data + at, end - at);
        if (line.size > 0 && line.data[line.size - 1] == '\r') line.size--;
        if (line.size > name_size && line.data[name_size] == ':' &&
            gb_bytes_equal_nocase(gb_bytes(line.data, name_size), gb_bytes_c(name)))
            return trim(gb_bytes(line.data + name_size + 1, line.size - name_size - 1));
        at = end + 1;
    }
    return gb_bytes(NULL, 0);
}

static struct gb_err check_head(const struct gb_ws *ws, struct gb_bytes head)
{
    if (head.size < 12 || memcmp(head.data, "HTTP/1.1 ", 9) != 0)
        return gb_err(GB_CONNECTION_LOST, "the WebSocket answer is no HTTP/1.1");
    if (memcmp(head.data + 9, "101", 3) != 0)
        return gb_err(GB_CONNECTION_LOST, "the WebSocket upgrade was refused with status %.3s",
                      (const char *)head.data + 9);
    if (!gb_bytes_equal_c(header(head, "Sec-WebSocket-Accept"), ws->accept))
        return gb_err(GB_CONNECTION_LOST, "the WebSocket upgrade has a wrong Sec-WebSocket-Accept");
    struct gb_bytes protocol = header(head, "Sec-WebSocket-Protocol");
    if (protocol.size > 0 && !gb_bytes_equal_nocase(protocol, gb_bytes_c("mqtt")))
        return gb_err(GB_CONNECTION_LOST, "the server chose another sub-protocol than mqtt");
    return gb_ok();
}

struct gb_err gb_ws_feed(struct gb_ws *ws, struct gb_bytes bytes, struct gb_str *answer, bool *open)
{
    (void)answer;
    gb_str_append(&ws->rx, bytes);
    struct gb_err err = gb_str_check(&ws->rx, "WebSocket input");
    if (gb_failed(err)) return err;
    if (!ws->open) {
        const char *end = ws->rx.size < 4 ? NULL : memmem(ws->rx.data, ws->rx.size, "\r\n\r\n", 4);
        if (end == NULL)
            return ws->rx.size > GB_WS_HEADER_MAX
                       ? gb_err(GB_CONNECTION_LOST, "the WebSocket answer's head is above %d bytes",
                                GB_WS_HEADER_MAX)
                       : gb_ok();
        size_t size = (size_t)(end - ws->rx.data) + 4;
        err = check_head(ws, gb_bytes(ws->rx.data, size));
        if (gb_failed(err)) return err;
        consume(ws, size);
        ws->open = true;
    }
    *open = true;
    return gb_ok();
}

static void append_frame(uint8_t opcode, struct gb_bytes payload, struct gb_reactor *r,
                         struct gb_str *out)
{
    uint8_t head[14] = {(uint8_t)(FIN | opcode)};
    size_t size = 2;
    if (payload.size <= CONTROL_MAX) {
        head[1] = (uint8_t)(MASKED | payload.size);
    } else if (payload.size <= 65535) {
        head[1] = MASKED | 126;
        gb_put_u16(head + 2, (uint16_t)payload.size);
        size = 4;
    } else {
        head[1] = MASKED | 127;
        gb_put_u64(head + 2, payload.size);
        size = 10;
    }
    uint8_t mask[4];
    gb_put_u32(mask, (uint32_t)gb_reactor_random(r));
    memcpy(head + size, mask, 4);
    char *room = gb_str_reserve(out, size + 4 + payload.size);
    if (room == NULL) return;
    memcpy(room, head, size + 4);
    for (size_t i = 0; i < payload.size; i++)
        room[size + 4 + i] = (char)(payload.data[i] ^ mask[i & 3]);
    out->size += size + 4 + payload.size;
}

void gb_ws_frame(struct gb_ws *ws, struct gb_bytes payload, struct gb_reactor *r,
                 struct gb_str *out)
{
    (void)ws;
    append_frame(OP_BINARY, payload, r, out);
}

struct frame_head {
    uint8_t opcode;
    bool fin;
    size_t head_size;
    uint64_t payload_size;
};

/* 1 = complete, 0 = need more, -1 = broken. */
static int read_head(const struct gb_ws *ws, struct frame_head *h)
{
    const uint8_t *p = (const uint8_t *)ws->rx.data;
    if (ws->rx.size < 2) return 0;
    h->fin = (p[0] & FIN) != 0;
    h->opcode = p[0] & 15;
    if ((p[0] & 0x70) != 0 || (p[1] & MASKED) != 0)
        return -1; /* no extensions; servers don't mask */
    uint8_t short_size = p[1] & 127;
    h->head_size = short_size == 127 ? 10 : short_size == 126 ? 4 : 2;
    if (ws->rx.size < h->head_size) return 0;
    h->payload_size = short_size < 126 ? short_size : 0;
    for (size_t i = 2; i < h->head_size; i++) h->payload_size = h->payload_size << 8 | p[i];
    if (h->payload_size > INT64_MAX) return -1;
    bool control = h->opcode >= 8;
    if (control && (!h->fin || h->payload_size > CONTROL_MAX || h->opcode > OP_PONG)) return -1;
    if (!control && (h->opcode == OP_TEXT || h->opcode > OP_BINARY)) return -1;
    if (!control && (h->opcode == OP_CONTINUATION) != ws->in_message) return -1;
    return 1;
}

/* A control frame whose payload is complete. */
static struct gb_err handle_control(const struct frame_head *h, struct gb_bytes payload,
                                    struct gb_reactor *r, struct gb_str *answer)
{
    if (h->opcode == OP_PING) append_frame(OP_PONG, payload, r, answer);
    if (h->opcode != OP_CLOSE) return gb_ok();
    append_frame(OP_CLOSE, gb_bytes(payload.data, payload.size < 2 ? 0 : 2), r, answer);
    return (struct gb_err){.code = GB_CANCELLED};
}

struct gb_err gb_ws_deliver(struct gb_ws *ws, void (*payload)(void *arg, struct gb_bytes bytes),
                            void *arg, struct gb_reactor *r, struct gb_str *answer)
{
    while (ws->open && ws->rx.size > 0) {
        if (ws->payload_left > 0) {
            size_t n = ws->payload_left < ws->rx.size ? (size_t)ws->payload_left : ws->rx.size;
            payload(arg, gb_bytes(ws->rx.data, n));
            ws->payload_left -= n;
            consume(ws, n);
            continue;
        }
        struct frame_head h;
        int ready = read_head(ws, &h);
        if (ready < 0) return gb_err(GB_CONNECTION_LOST, "the peer sent a broken WebSocket frame");
        if (ready == 0) return gb_ok();
        if (h.opcode >= 8) {
            if (ws->rx.size < h.head_size + h.payload_size) return gb_ok();
            struct gb_err err = handle_control(
                &h, gb_bytes(ws->rx.data + h.head_size, (size_t)h.payload_size), r, answer);
            consume(ws, h.head_size + (size_t)h.payload_size);
            if (err.code != GB_OK) return err;
            continue;
        }
        ws->in_message = !h.fin;
        ws->payload_left = h.payload_size;
        consume(ws, h.head_size);
    }
    return gb_ok();
}
