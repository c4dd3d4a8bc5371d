#ifndef GB_IO_WS_CODEC_H
#define GB_IO_WS_CODEC_H

#include "base/err.h"
#include "base/str.h"

/* WebSocket, the client's half (RFC 6455) with sub-protocol "mqtt": upgrade texts and frames. Pure.
 * Owns:   nothing; payloads are views into the input, or of control frames into the decoder, valid
 *         until the next call.
 * Thread: any.
 * Errors: GB_CONNECTION_LOST for an answer or a frame that breaks the rules, with the rule. */

enum {
    GB_WS_KEY_SIZE = 25,
    GB_WS_ACCEPT_SIZE = 29,
    GB_WS_HEAD_MAX = 16384,
    GB_WS_CONTROL_MAX = 125
};

void gb_ws_key(const uint8_t nonce[16], char out[GB_WS_KEY_SIZE]);
void gb_ws_accept(const char *key, char out[GB_WS_ACCEPT_SIZE]);
/* Starts with '/', no white space, control characters or fragment. */
bool gb_ws_path_valid(const char *path);

struct gb_ws_target {
    const char *host; /* an IPv6 literal has no brackets here */
    uint16_t port;
    bool tls; /* decides the default port */
    const char *path;
};
void gb_ws_request(struct gb_str *out, const struct gb_ws_target *target, const char *key);
/* Size of the answer's head, the empty line included; 0 = not yet complete. */
size_t gb_ws_head_size(struct gb_bytes input);
struct gb_err gb_ws_check_answer(struct gb_bytes head, const char *accept);

enum gb_ws_opcode {
    GB_WS_CONTINUATION = 0,
    GB_WS_TEXT = 1,
    GB_WS_BINARY = 2,
    GB_WS_CLOSE = 8,
    GB_WS_PING = 9,
    GB_WS_PONG = 10,
};
/* Appends one masked frame. */
void gb_ws_encode(struct gb_str *out, enum gb_ws_opcode opcode, const uint8_t mask[4],
                  struct gb_bytes payload);

enum gb_ws_event {
    GB_WS_NEED_MORE, /* the input is used up */
    GB_WS_DATA,      /* a piece of binary payload, as it came */
    GB_WS_GOT_PING,
    GB_WS_GOT_PONG,
    GB_WS_GOT_CLOSE,
};
/* Zeroed memory is the start of a connection. All fields are private. */
struct gb_ws_decoder {
    uint8_t head[10];
    uint8_t head_size;
    uint8_t control[GB_WS_CONTROL_MAX];
    uint8_t control_size;
    enum gb_ws_opcode opcode;
    bool in_payload;
    bool in_message; /* a fragmented message is under way */
    uint64_t payload_left;
};
/* Consumes from `*input` up to the next event; call again until GB_WS_NEED_MORE. The decoder keeps
 * no payload of data frames, so their length needs no limit. */
struct gb_err gb_ws_decode(struct gb_ws_decoder *d, struct gb_bytes *input, enum gb_ws_event *event,
                           struct gb_bytes *payload);

#endif
