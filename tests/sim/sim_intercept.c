#include "sim/sim_intercept.h"

#include "adapters/mqtt/mqtt_packet.h"

enum { PACKET_MAX = 1 << 20, PUBACK_BYTES = 4 };

/* PUBLISH: fixed header, topic with its length, packet id. */
static void share_packet_id(uint8_t *packet, const struct gb_mqtt_frame *f)
{
    if (f->type != GB_MQTT_PUBLISH || (f->flags & 6) == 0) return;
    uint8_t *topic = packet + f->header_size;
    size_t topic_size = (size_t)(topic[0] << 8 | topic[1]);
    gb_put_u16(topic + 2 + topic_size, 1);
}

/* One PUBACK waits until the next one has left. */
static void reorder_ack(struct sim_conn *c, struct gb_str *out, struct gb_bytes packet,
                        const struct gb_mqtt_frame *f)
{
    bool is_ack = f->type == GB_MQTT_PUBACK && packet.size == PUBACK_BYTES;
    if (is_ack && !c->holds_ack) {
        memcpy(c->held_ack, packet.data, PUBACK_BYTES);
        c->holds_ack = true;
        return;
    }
    gb_str_append(out, packet);
    if (is_ack) {
        gb_str_append(out, gb_bytes(c->held_ack, PUBACK_BYTES));
        c->holds_ack = false;
    }
}

void sim_intercept_write(struct sim_conn *c, struct gb_str *bytes)
{
    enum sim_fault fault = c->world->fault;
    if (fault != SIM_FAULT_REUSE_PACKET_ID && fault != SIM_FAULT_ACK_OUT_OF_ORDER) return;
    struct gb_str out = {0};
    size_t used = 0;
    struct gb_mqtt_frame f;
    while (gb_mqtt_frame_next(gb_bytes(bytes->data + used, bytes->size - used), PACKET_MAX, &f) ==
           GB_MQTT_FRAME_OK) {
        uint8_t *packet = (uint8_t *)bytes->data + used;
        used += f.size;
        if (fault == SIM_FAULT_REUSE_PACKET_ID) {
            share_packet_id(packet, &f);
            gb_str_append(&out, gb_bytes(packet, f.size));
        } else {
            reorder_ack(c, &out, gb_bytes(packet, f.size), &f);
        }
    }
    gb_str_deinit(bytes);
    *bytes = out;
}
