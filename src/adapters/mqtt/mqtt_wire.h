#ifndef GB_ADAPTERS_MQTT_MQTT_WIRE_H
#define GB_ADAPTERS_MQTT_MQTT_WIRE_H

#include "adapters/mqtt/mqtt_packet.h"
#include "base/assert.h"

/* Reading and writing the data types of MQTT; private to the codec (mqtt_*.c of this folder).
 * Owns:   nothing: readers borrow the input, writers fill what gb_mqtt_packet_begin reserved.
 * Thread: any. Pure.
 * Errors: a reader's failure is sticky: the caller checks once, after the last field; `why` is the
 *         first rule that was broken. */

struct gb_mqtt_reader {
    const uint8_t *pos;
    const uint8_t *end;
    bool failed;
    const char *why;
};

static inline struct gb_mqtt_reader gb_mqtt_reader(struct gb_bytes bytes)
{
    if (bytes.size == 0) return (struct gb_mqtt_reader){0};
    return (struct gb_mqtt_reader){.pos = bytes.data, .end = bytes.data + bytes.size};
}
static inline size_t gb_mqtt_left(const struct gb_mqtt_reader *r)
{
    return (size_t)(r->end - r->pos);
}
static inline void gb_mqtt_fail(struct gb_mqtt_reader *r, const char *why)
{
    if (!r->failed) r->why = why;
    r->failed = true;
    r->pos = r->end;
}
static inline bool gb_mqtt_need(struct gb_mqtt_reader *r, size_t size)
{
    if (gb_mqtt_left(r) >= size) return true;
    gb_mqtt_fail(r, "it ends inside a field");
    return false;
}
static inline uint8_t gb_mqtt_read_u8(struct gb_mqtt_reader *r)
{
    return gb_mqtt_need(r, 1) ? *r->pos++ : 0;
}
static inline uint16_t gb_mqtt_read_u16(struct gb_mqtt_reader *r)
{
    if (!gb_mqtt_need(r, 2)) return 0;
    uint16_t value = (uint16_t)(r->pos[0] << 8 | r->pos[1]);
    r->pos += 2;
    return value;
}
static inline uint32_t gb_mqtt_read_u32(struct gb_mqtt_reader *r)
{
    uint32_t high = gb_mqtt_read_u16(r);
    return high << 16 | gb_mqtt_read_u16(r);
}
static inline struct gb_bytes gb_mqtt_read_bytes(struct gb_mqtt_reader *r, size_t size)
{
    if (!gb_mqtt_need(r, size)) return gb_bytes(NULL, 0);
    struct gb_bytes bytes = gb_bytes(r->pos, size);
    if (size > 0) r->pos += size; /* no arithmetic on NULL */
    return bytes;
}
/* Two bytes of length, then as many bytes. */
static inline struct gb_bytes gb_mqtt_read_binary(struct gb_mqtt_reader *r)
{
    return gb_mqtt_read_bytes(r, gb_mqtt_read_u16(r));
}
struct gb_bytes gb_mqtt_read_text(struct gb_mqtt_reader *r); /* UTF-8 without U+0000 */
/* A topic name: text, not empty, no wildcards. */
struct gb_bytes gb_mqtt_read_topic(struct gb_mqtt_reader *r);
uint16_t gb_mqtt_read_packet_id(struct gb_mqtt_reader *r); /* not zero */
/* Variable byte integer, shortest form only (MQTT 5.0 §1.5.5). */
uint32_t gb_mqtt_read_varint(struct gb_mqtt_reader *r);

/* Reads the property length and the properties that `packet` may have; 0 stands for the will. */
void gb_mqtt_read_properties(struct gb_mqtt_reader *r, unsigned packet,
                             struct gb_mqtt_properties *out);
/* Body of a packet that only clients send. */
void gb_mqtt_read_connect(struct gb_mqtt_reader *r, struct gb_mqtt_connect *out);
void gb_mqtt_read_subscribe(struct gb_mqtt_reader *r, enum gb_mqtt_version version,
                            bool unsubscribe, struct gb_mqtt_subscribe *out);
/* Topic and packet id of a PUBLISH. */
void gb_mqtt_read_publish_head(struct gb_mqtt_reader *r, uint8_t flags,
                               struct gb_mqtt_publish *out);

static inline size_t gb_mqtt_varint_size(size_t value)
{
    return value < 0x80 ? 1 : value < 0x4000 ? 2 : value < 0x200000 ? 3 : 4;
}
static inline uint8_t *gb_mqtt_put_varint(uint8_t *p, size_t value)
{
    while (value >= 0x80) {
        *p++ = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    *p++ = (uint8_t)value;
    return p;
}
static inline uint8_t *gb_mqtt_put_u16(uint8_t *p, uint16_t value)
{
    gb_put_u16(p, value);
    return p + 2;
}
static inline uint8_t *gb_mqtt_put_raw(uint8_t *p, struct gb_bytes bytes)
{
    if (bytes.size == 0) return p; /* memcpy must not see NULL */
    memcpy(p, bytes.data, bytes.size);
    return p + bytes.size;
}
static inline uint8_t *gb_mqtt_put_binary(uint8_t *p, struct gb_bytes bytes)
{
    return gb_mqtt_put_raw(gb_mqtt_put_u16(p, (uint16_t)bytes.size), bytes);
}

/* Reserves the whole packet and writes its fixed header; NULL, and out->failed set, when it is too
 * large or memory is short. The caller writes exactly `remaining` bytes and calls _end. */
uint8_t *gb_mqtt_packet_begin(struct gb_str *out, uint8_t first, size_t remaining);
/* Asserts that `end` is where the computed size says. */
void gb_mqtt_packet_end(struct gb_str *out, size_t remaining, const uint8_t *end);

/* Bytes of the properties without their length; false when a text is longer than 65535 bytes. */
bool gb_mqtt_properties_size(const struct gb_mqtt_properties *p, size_t *size);
uint8_t *gb_mqtt_put_properties(uint8_t *at, const struct gb_mqtt_properties *p);

#endif
