#include "adapters/mqtt/mqtt_packet.h"

#include "adapters/mqtt/mqtt_wire.h"
#include "domain/mqtt_topic.h"

/* CONNECT, SUBSCRIBE and UNSUBSCRIBE: what only a server reads. */

enum connect_flags {
    FLAG_RESERVED = 0x01,
    FLAG_CLEAN_START = 0x02,
    FLAG_WILL = 0x04,
    FLAG_WILL_QOS = 0x18,
    FLAG_WILL_RETAIN = 0x20,
    FLAG_PASSWORD = 0x40,
    FLAG_USERNAME = 0x80,
};

static void read_connect_flags(struct gb_mqtt_reader *r, struct gb_mqtt_connect *out)
{
    uint8_t flags = gb_mqtt_read_u8(r);
    out->clean_start = (flags & FLAG_CLEAN_START) != 0;
    out->has_will = (flags & FLAG_WILL) != 0;
    out->will_qos = (uint8_t)((flags & FLAG_WILL_QOS) >> 3);
    out->will_retain = (flags & FLAG_WILL_RETAIN) != 0;
    out->has_password = (flags & FLAG_PASSWORD) != 0;
    out->has_username = (flags & FLAG_USERNAME) != 0;
    if ((flags & FLAG_RESERVED) != 0) gb_mqtt_fail(r, "a reserved flag is set");
    if (out->will_qos == 3) gb_mqtt_fail(r, "the will's QoS is 3");
    if (!out->has_will && (out->will_qos != 0 || out->will_retain)) {
        gb_mqtt_fail(r, "it has flags of a will and no will");
    }
    if (out->version == GB_MQTT_V311 && out->has_password && !out->has_username) {
        gb_mqtt_fail(r, "it has a password and no user name");
    }
}

static void read_will(struct gb_mqtt_reader *r, struct gb_mqtt_connect *out)
{
    if (out->version == GB_MQTT_V5) gb_mqtt_read_properties(r, 0, &out->will_properties);
    out->will_topic = gb_mqtt_read_topic(r);
    out->will_payload = gb_mqtt_read_binary(r);
}

void gb_mqtt_read_connect(struct gb_mqtt_reader *r, struct gb_mqtt_connect *out)
{
    *out = (struct gb_mqtt_connect){0};
    struct gb_bytes protocol = gb_mqtt_read_binary(r);
    uint8_t level = gb_mqtt_read_u8(r);
    if (!gb_bytes_equal_c(protocol, "MQTT") || (level != GB_MQTT_V5 && level != GB_MQTT_V311)) {
        gb_mqtt_fail(r, "the protocol is neither MQTT 5.0 nor 3.1.1");
    }
    out->version = (enum gb_mqtt_version)level;
    read_connect_flags(r, out);
    out->keep_alive = gb_mqtt_read_u16(r);
    if (out->version == GB_MQTT_V5) {
        gb_mqtt_read_properties(r, GB_MQTT_CONNECT, &out->properties);
        out->session_expiry_interval = out->properties.session_expiry;
        out->receive_maximum = out->properties.receive_maximum;
        out->maximum_packet_size = out->properties.maximum_packet_size;
    }
    out->client_id = gb_mqtt_read_text(r);
    if (out->has_will) read_will(r, out);
    if (out->has_username) out->username = gb_mqtt_read_text(r);
    if (out->has_password) out->password = gb_mqtt_read_binary(r);
}

static struct gb_bytes read_filter(struct gb_mqtt_reader *r)
{
    struct gb_bytes filter = gb_mqtt_read_text(r);
    if (filter.size == 0) gb_mqtt_fail(r, "a filter is empty");
    return filter;
}

static void split_options(uint8_t options, struct gb_mqtt_subscribe_entry *out)
{
    out->qos = options & 3;
    out->no_local = (options & 0x04) != 0;
    out->retain_as_published = (options & 0x08) != 0;
    out->retain_handling = options >> 4 & 3;
}

static void check_options(struct gb_mqtt_reader *r, enum gb_mqtt_version version, uint8_t options,
                          struct gb_bytes filter)
{
    struct gb_mqtt_subscribe_entry entry;
    split_options(options, &entry);
    uint8_t reserved = version == GB_MQTT_V5 ? 0xC0 : 0xFC;
    if ((options & reserved) != 0) gb_mqtt_fail(r, "a reserved subscription option is set");
    if (entry.qos == 3) gb_mqtt_fail(r, "a requested QoS is 3");
    if (entry.retain_handling == 3) gb_mqtt_fail(r, "a retain handling is 3");
    if (entry.no_local && gb_mqtt_filter_is_shared(filter)) {
        gb_mqtt_fail(r, "No Local is set on a shared subscription"); /* spec 03 §10 */
    }
}

void gb_mqtt_read_subscribe(struct gb_mqtt_reader *r, enum gb_mqtt_version version,
                            bool unsubscribe, struct gb_mqtt_subscribe *out)
{
    *out = (struct gb_mqtt_subscribe){.packet_id = gb_mqtt_read_packet_id(r)};
    if (version == GB_MQTT_V5) {
        gb_mqtt_read_properties(r, unsubscribe ? GB_MQTT_UNSUBSCRIBE : GB_MQTT_SUBSCRIBE,
                                &out->properties);
    }
    if (gb_mqtt_left(r) == 0) gb_mqtt_fail(r, "it names no filter");
    out->entries = gb_bytes(r->pos, gb_mqtt_left(r));
    while (gb_mqtt_left(r) > 0) {
        struct gb_bytes filter = read_filter(r);
        if (!unsubscribe) check_options(r, version, gb_mqtt_read_u8(r), filter);
        out->count++;
    }
}

bool gb_mqtt_subscribe_next(struct gb_bytes *entries, bool unsubscribe,
                            struct gb_mqtt_subscribe_entry *out)
{
    struct gb_mqtt_reader r = gb_mqtt_reader(*entries);
    if (gb_mqtt_left(&r) == 0) return false;
    *out = (struct gb_mqtt_subscribe_entry){.filter = gb_mqtt_read_binary(&r)};
    if (!unsubscribe) split_options(gb_mqtt_read_u8(&r), out);
    *entries = gb_bytes(r.pos, gb_mqtt_left(&r));
    return !r.failed;
}
