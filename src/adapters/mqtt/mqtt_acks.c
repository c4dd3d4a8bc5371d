#include "adapters/mqtt/mqtt_acks.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

enum { ID_WORDS = 65536 / 64 };
enum { PUBACK = 0x40, PUBREC = 0x50, PUBCOMP = 0x70, PACKET_ID_NOT_FOUND = 0x92 };

static bool bit_get(const uint64_t *map, uint16_t id)
{
    return (map[id >> 6] >> (id & 63) & 1) != 0;
}

static void bit_set(uint64_t *map, uint16_t id, bool value)
{
    uint64_t mask = UINT64_C(1) << (id & 63);
    map[id >> 6] = value ? map[id >> 6] | mask : map[id >> 6] & ~mask;
}

struct gb_err gb_mqtt_acks_init(struct gb_mqtt_acks *a)
{
    memset(a, 0, sizeof *a);
    a->ring = calloc(GB_MQTT_ACKS_MAX, sizeof *a->ring);
    a->open = calloc(ID_WORDS, sizeof *a->open);
    a->awaiting = calloc(ID_WORDS, sizeof *a->awaiting);
    if (a->ring != NULL && a->open != NULL && a->awaiting != NULL) return gb_ok();
    gb_mqtt_acks_deinit(a);
    return gb_err_no_memory("MQTT acknowledgement window");
}

void gb_mqtt_acks_deinit(struct gb_mqtt_acks *a)
{
    free(a->ring);
    free(a->open);
    free(a->awaiting);
    memset(a, 0, sizeof *a);
}

void gb_mqtt_acks_reset(struct gb_mqtt_acks *a, bool resumed)
{
    a->head = 0;
    a->tail = 0;
    memset(a->open, 0, ID_WORDS * sizeof *a->open);
    if (resumed) return;
    memset(a->awaiting, 0, ID_WORDS * sizeof *a->awaiting);
}

static void append(struct gb_str *tx, uint8_t type, uint16_t id)
{
    char *p = gb_str_reserve(tx, 4);
    if (p == NULL) return; /* the buffer's sticky failure ends the connection */
    p[0] = (char)type;
    p[1] = 2;
    p[2] = (char)(id >> 8);
    p[3] = (char)id;
    tx->size += 4;
}

bool gb_mqtt_acks_knows(const struct gb_mqtt_acks *a, uint16_t packet_id, uint8_t qos)
{
    return bit_get(a->open, packet_id) || (qos == 2 && bit_get(a->awaiting, packet_id));
}

enum gb_mqtt_receive gb_mqtt_acks_receive(struct gb_mqtt_acks *a, uint16_t packet_id, uint8_t qos,
                                          uint64_t *seq, struct gb_str *tx)
{
    if (bit_get(a->awaiting, packet_id)) {
        if (qos == 2) {
            append(tx, PUBREC, packet_id);
            return GB_MQTT_RECEIVE_DUPLICATE;
        }
        /* The broker uses the id for another message: it has forgotten the QoS 2 exchange. */
        bit_set(a->awaiting, packet_id, false);
    }
    if (bit_get(a->open, packet_id)) return GB_MQTT_RECEIVE_RESENT;
    bit_set(a->open, packet_id, true);
    a->ring[a->tail & (GB_MQTT_ACKS_MAX - 1)] =
        (struct gb_mqtt_ack_slot){.packet_id = packet_id, .qos = qos};
    *seq = a->tail++;
    return GB_MQTT_RECEIVE_NEW;
}

void gb_mqtt_acks_settle(struct gb_mqtt_acks *a, uint64_t seq, struct gb_str *tx)
{
    GB_ASSERT(seq >= a->head && seq < a->tail);
    a->ring[seq & (GB_MQTT_ACKS_MAX - 1)].settled = true;
    while (a->head < a->tail) {
        struct gb_mqtt_ack_slot *slot = &a->ring[a->head & (GB_MQTT_ACKS_MAX - 1)];
        if (!slot->settled) return;
        bit_set(a->open, slot->packet_id, false);
        if (slot->qos == 2) bit_set(a->awaiting, slot->packet_id, true);
        append(tx, slot->qos == 2 ? PUBREC : PUBACK, slot->packet_id);
        a->head++;
    }
}

void gb_mqtt_acks_release(struct gb_mqtt_acks *a, uint16_t packet_id, bool v5, struct gb_str *tx)
{
    bool known = bit_get(a->awaiting, packet_id);
    if (known) bit_set(a->awaiting, packet_id, false);
    if (known || !v5) {
        append(tx, PUBCOMP, packet_id);
        return;
    }
    const char answer[] = {(char)PUBCOMP, 3, (char)(packet_id >> 8), (char)packet_id,
                           (char)PACKET_ID_NOT_FOUND};
    gb_str_append(tx, gb_bytes(answer, sizeof answer));
}
