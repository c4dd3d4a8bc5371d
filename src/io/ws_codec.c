#include "io/ws_codec.h"

#include <openssl/evp.h>

#include "base/assert.h"

enum { FIN = 0x80, RESERVED = 0x70, OPCODE = 0x0F, MASKED = 0x80, LENGTH = 0x7F };
enum { LENGTH_16 = 126, LENGTH_64 = 127, MASK_SIZE = 4, HEAD_MAX = 10 };

/* --- upgrade (RFC 6455 §4) --- */

void gb_ws_key(const uint8_t nonce[16], char out[GB_WS_KEY_SIZE])
{
    int size = EVP_EncodeBlock((unsigned char *)out, nonce, 16);
    GB_ASSERT(size == GB_WS_KEY_SIZE - 1);
}

void gb_ws_accept(const char *key, char out[GB_WS_ACCEPT_SIZE])
{
    static const char guid[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
    uint8_t input[GB_WS_KEY_SIZE - 1 + sizeof guid];
    uint8_t digest[EVP_MAX_MD_SIZE];
    unsigned digest_size = 0;
    GB_ASSERT(strlen(key) == GB_WS_KEY_SIZE - 1);
    memcpy(input, key, GB_WS_KEY_SIZE - 1);
    memcpy(input + GB_WS_KEY_SIZE - 1, guid, sizeof guid);
    int rc = EVP_Digest(input, sizeof input - 1, digest, &digest_size, EVP_sha1(), NULL);
    GB_ASSERT(rc == 1 && digest_size == 20);
    int size = EVP_EncodeBlock((unsigned char *)out, digest, (int)digest_size);
    GB_ASSERT(size == GB_WS_ACCEPT_SIZE - 1);
}

bool gb_ws_path_valid(const char *path)
{
    if (path[0] != '/') return false;
    for (const unsigned char *p = (const unsigned char *)path; *p != '\0'; p++) {
        if (*p <= ' ' || *p == 0x7F || *p == '#') return false;
    }
    return true;
}

void gb_ws_request(struct gb_str *out, const struct gb_ws_target *target, const char *key)
{
    bool v6 = strchr(target->host, ':') != NULL;
    gb_str_appendf(out, "GET %s HTTP/1.1\r\nHost: %s%s%s", target->path, v6 ? "[" : "",
                   target->host, v6 ? "]" : "");
    if (target->port != (target->tls ? 443 : 80)) gb_str_appendf(out, ":%u", target->port);
    gb_str_appendf(out,
                   "\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: %s\r\n"
                   "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: mqtt\r\n\r\n",
                   key);
}

size_t gb_ws_head_size(struct gb_bytes input)
{
    const uint8_t *end = input.size < 4 ? NULL : memmem(input.data, input.size, "\r\n\r\n", 4);
    return end == NULL ? 0 : (size_t)(end - input.data) + 4;
}

static bool is_space(uint8_t c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static struct gb_bytes trim(struct gb_bytes b)
{
    while (b.size > 0 && is_space(b.data[0])) b = gb_bytes(b.data + 1, b.size - 1);
    while (b.size > 0 && is_space(b.data[b.size - 1])) b.size--;
    return b;
}

/* Cuts off the part of `*rest` before `separator`; false at the end. */
static bool next_part(struct gb_bytes *rest, char separator, struct gb_bytes *part)
{
    if (rest->data == NULL) return false;
    const uint8_t *end = rest->size == 0 ? NULL : memchr(rest->data, separator, rest->size);
    size_t size = end == NULL ? rest->size : (size_t)(end - rest->data);
    *part = gb_bytes(rest->data, size);
    *rest = end == NULL ? gb_bytes(NULL, 0) : gb_bytes(end + 1, rest->size - size - 1);
    return true;
}

/* The value of the first header of that name, or the empty view with NULL data when absent. */
static struct gb_bytes header_of(struct gb_bytes head, const char *name)
{
    struct gb_bytes line;
    while (next_part(&head, '\n', &line)) {
        struct gb_bytes label;
        struct gb_bytes value = line;
        if (!next_part(&value, ':', &label) || value.data == NULL) continue;
        if (gb_bytes_equal_nocase(label, gb_bytes_c(name))) return trim(value);
    }
    return gb_bytes(NULL, 0);
}

static bool list_has(struct gb_bytes list, const char *token)
{
    struct gb_bytes part;
    while (next_part(&list, ',', &part)) {
        if (gb_bytes_equal_nocase(trim(part), gb_bytes_c(token))) return true;
    }
    return false;
}

static struct gb_err refused(const char *why)
{
    return gb_err(GB_CONNECTION_LOST, "WebSocket upgrade: %s", why);
}

struct gb_err gb_ws_check_answer(struct gb_bytes head, const char *accept)
{
    static const char start[] = "HTTP/1.1 ";
    const size_t start_size = sizeof start - 1;
    if (head.size < start_size + 4 || memcmp(head.data, start, start_size) != 0) {
        return refused("the answer is no HTTP/1.1");
    }
    const char *status = (const char *)head.data + start_size;
    if (memcmp(status, "101 ", 4) != 0) {
        /* The status as the peer wrote it, unless that is no number. */
        bool digits =
            strspn((const char[]){status[0], status[1], status[2], '\0'}, "0123456789") == 3;
        return gb_err(GB_CONNECTION_LOST, "WebSocket upgrade: refused with HTTP status %.3s",
                      digits ? status : "???");
    }
    if (!list_has(header_of(head, "Upgrade"), "websocket")) {
        return refused("the answer lacks \"Upgrade: websocket\"");
    }
    if (!list_has(header_of(head, "Connection"), "upgrade")) {
        return refused("the answer lacks \"Connection: Upgrade\"");
    }
    if (!gb_bytes_equal_c(header_of(head, "Sec-WebSocket-Accept"), accept)) {
        return refused("Sec-WebSocket-Accept does not fit the key");
    }
    if (header_of(head, "Sec-WebSocket-Extensions").size > 0) {
        return refused("the server chose an extension, none was offered");
    }
    /* MQTT wants it named; a server that names none still speaks it. */
    struct gb_bytes protocol = header_of(head, "Sec-WebSocket-Protocol");
    if (protocol.size > 0 && !gb_bytes_equal_c(protocol, "mqtt")) {
        return refused("the server chose another sub-protocol than mqtt");
    }
    return gb_ok();
}

/* --- frames (RFC 6455 §5) --- */

void gb_ws_encode(struct gb_str *out, enum gb_ws_opcode opcode, const uint8_t mask[4],
                  struct gb_bytes payload)
{
    uint8_t head[HEAD_MAX + MASK_SIZE] = {(uint8_t)(FIN | (unsigned)opcode)};
    size_t size = 2;
    if (payload.size < LENGTH_16) {
        head[1] = (uint8_t)(MASKED | payload.size);
    } else if (payload.size <= UINT16_MAX) {
        head[1] = MASKED | LENGTH_16;
        gb_put_u16(head + size, (uint16_t)payload.size);
        size += 2;
    } else {
        head[1] = MASKED | LENGTH_64;
        gb_put_u64(head + size, payload.size);
        size += 8;
    }
    memcpy(head + size, mask, MASK_SIZE);
    size += MASK_SIZE;
    char *room = payload.size > SIZE_MAX - size ? NULL : gb_str_reserve(out, size + payload.size);
    if (room == NULL) {
        out->failed = true;
        return;
    }
    memcpy(room, head, size);
    for (size_t i = 0; i < payload.size; i++) {
        room[size + i] = (char)(payload.data[i] ^ mask[i % MASK_SIZE]);
    }
    out->size += size + payload.size;
    out->data[out->size] = '\0';
}

static struct gb_err broken(const char *rule)
{
    return gb_err(GB_CONNECTION_LOST, "WebSocket frame: %s", rule);
}

/* Bytes that the head needs, as far as it is known. */
static size_t head_needed(const struct gb_ws_decoder *d)
{
    if (d->head_size < 2) return 2;
    unsigned length = d->head[1] & LENGTH;
    return length == LENGTH_64 ? 10 : length == LENGTH_16 ? 4 : 2;
}

static struct gb_err check_opcode(const struct gb_ws_decoder *d, unsigned opcode, bool fin,
                                  uint64_t size)
{
    switch (opcode) {
    case GB_WS_CONTINUATION:
        return d->in_message ? gb_ok() : broken("a continuation without a start");
    case GB_WS_BINARY:
        return d->in_message ? broken("a message inside another") : gb_ok();
    case GB_WS_TEXT:
        return broken("a text frame; MQTT is binary");
    case GB_WS_CLOSE:
    case GB_WS_PING:
    case GB_WS_PONG:
        if (!fin) return broken("a control frame in fragments");
        return size > GB_WS_CONTROL_MAX ? broken("a control frame above 125 bytes") : gb_ok();
    default:
        return broken("an unknown opcode");
    }
}

static struct gb_err read_length(const struct gb_ws_decoder *d, uint64_t *out)
{
    size_t size = head_needed(d);
    if (size == 2) {
        *out = d->head[1] & LENGTH;
        return gb_ok();
    }
    uint64_t value = 0;
    for (size_t i = 2; i < size; i++) value = value << 8 | d->head[i];
    if (value > INT64_MAX) return broken("a length of 2^63 or more");
    if (value < LENGTH_16 || (size == HEAD_MAX && value <= UINT16_MAX)) {
        return broken("a length in more bytes than it needs");
    }
    *out = value;
    return gb_ok();
}

static struct gb_err start_frame(struct gb_ws_decoder *d)
{
    if ((d->head[0] & RESERVED) != 0) return broken("a reserved bit is set");
    if ((d->head[1] & MASKED) != 0) return broken("the server masks");
    uint64_t size = 0;
    struct gb_err err = read_length(d, &size);
    bool fin = (d->head[0] & FIN) != 0;
    unsigned opcode = d->head[0] & OPCODE;
    if (!gb_failed(err)) err = check_opcode(d, opcode, fin, size);
    if (gb_failed(err)) return err;
    d->opcode = (enum gb_ws_opcode)opcode;
    if (opcode <= GB_WS_BINARY) d->in_message = !fin;
    d->payload_left = size;
    d->control_size = 0;
    d->head_size = 0;
    d->in_payload = true;
    return err;
}

/* True when the head is complete. */
static bool collect_head(struct gb_ws_decoder *d, struct gb_bytes *input)
{
    while (d->head_size < head_needed(d)) {
        if (input->size == 0) return false;
        d->head[d->head_size++] = input->data[0];
        *input = gb_bytes(input->data + 1, input->size - 1);
    }
    return true;
}

static struct gb_bytes take_payload(struct gb_ws_decoder *d, struct gb_bytes *input)
{
    size_t size = d->payload_left < input->size ? (size_t)d->payload_left : input->size;
    struct gb_bytes piece = gb_bytes(input->data, size);
    if (size > 0) *input = gb_bytes(input->data + size, input->size - size);
    d->payload_left -= size;
    if (d->payload_left == 0) d->in_payload = false;
    return piece;
}

static struct gb_err finish_control(const struct gb_ws_decoder *d, enum gb_ws_event *event,
                                    struct gb_bytes *payload)
{
    *payload = gb_bytes(d->control, d->control_size);
    if (d->opcode == GB_WS_CLOSE && d->control_size == 1) {
        return broken("a close frame with half a status code");
    }
    *event = d->opcode == GB_WS_CLOSE  ? GB_WS_GOT_CLOSE
             : d->opcode == GB_WS_PING ? GB_WS_GOT_PING
                                       : GB_WS_GOT_PONG;
    return gb_ok();
}

struct gb_err gb_ws_decode(struct gb_ws_decoder *d, struct gb_bytes *input, enum gb_ws_event *event,
                           struct gb_bytes *payload)
{
    for (;;) {
        if (!d->in_payload) {
            if (!collect_head(d, input)) break;
            struct gb_err err = start_frame(d);
            if (gb_failed(err)) return err;
        }
        if (input->size == 0 && d->payload_left > 0) break;
        struct gb_bytes piece = take_payload(d, input);
        if (d->opcode <= GB_WS_BINARY) {
            if (piece.size == 0) continue; /* an empty frame */
            *event = GB_WS_DATA;
            *payload = piece;
            return gb_ok();
        }
        if (piece.size > 0) memcpy(d->control + d->control_size, piece.data, piece.size);
        d->control_size = (uint8_t)(d->control_size + piece.size);
        if (!d->in_payload) return finish_control(d, event, payload);
    }
    *event = GB_WS_NEED_MORE;
    *payload = gb_bytes(NULL, 0);
    return gb_ok();
}
