#include "adapters/mqtt/mqtt_ingress.h"
#include "adapters/mqtt/mqtt_reason.h"
#include "adapters/mqtt/mqtt_session_parts.h"

/* Packets of the broker on their way in, SUBSCRIBE and UNSUBSCRIBE on their way out. */

enum { EXCESS_BYTES_MAX = 64 * 1024 * 1024, MESSAGE_OVERHEAD = 512 };

/* Some brokers send more than the receive maximum: mosquitto 2.0.11 answers each acknowledgement
 * with up to twenty queued messages. Refusing that would never end: they do it on the next
 * connection too. */
static bool may_take(struct gb_mqtt_session *s, size_t size)
{
    if (s->excess) return false;
    if (gb_mqtt_acks_unsettled(&s->acks) < s->cfg.receive_maximum) return true;
    if (!s->excess_told) {
        GB_LOG(GB_LOG_WARN,
               "the broker sends more than receive_maximum; what fits in memory is taken, the rest "
               "is left unacknowledged and fetched again",
               gb_lf_str("session_id", s->cfg.id),
               gb_lf_int("receive_maximum", s->cfg.receive_maximum));
    }
    s->excess_told = true;
    size_t limit = s->cfg.excess_bytes_max == 0 ? EXCESS_BYTES_MAX : s->cfg.excess_bytes_max;
    return gb_mqtt_inbound_bytes(s->inbound) + size <= limit;
}

/* Registers a QoS 1/2 message of `size` bytes; false: it is no new message, or it can't be taken.
 * Then a durable session leaves it, and all that follow it, unacknowledged, so that a new
 * connection brings them in order; an ephemeral one, which would lose everything with the
 * connection, drops it (spec 03 §6.4). */
static bool receive(struct gb_mqtt_session *s, uint8_t qos, uint16_t packet_id, size_t size,
                    uint64_t *seq)
{
    bool durable = s->cfg.mode != GB_MQTT_EPHEMERAL;
    bool take = gb_mqtt_acks_knows(&s->acks, packet_id, qos) || may_take(s, size);
    if (!take && durable) {
        s->excess = true;
        return false;
    }
    switch (gb_mqtt_acks_receive(&s->acks, packet_id, qos, seq, &s->link.tx)) {
    case GB_MQTT_RECEIVE_NEW:
        if (!take) gb_mqtt_inbound_overflow(s->inbound, *seq);
        return take;
    case GB_MQTT_RECEIVE_DUPLICATE:
        gb_mqtt_link_flush(&s->link);
        return false;
    case GB_MQTT_RECEIVE_RESENT:
        break;
    }
    /* Beyond the window the broker may have run out of identifiers and mean another message. */
    if (durable && s->excess_told) s->excess = true;
    return false;
}

static void ack_and_drop(struct gb_mqtt_session *s, uint8_t qos, uint64_t seq)
{
    if (qos == 0) return;
    gb_mqtt_acks_settle(&s->acks, seq, &s->link.tx);
    gb_mqtt_link_flush(&s->link);
}

/* Spec 03 §6.3: acknowledged and dropped in order, counted, one error a minute at most. */
static void drop_poison(struct gb_mqtt_session *s, const char *class_name, uint8_t qos,
                        uint64_t seq)
{
    gb_metric_add(s->m.poison_dropped, 1);
    uint64_t suppressed = 0;
    bool loud = gb_log_allow(&s->poison_limit, gb_reactor_now_ns(s->cfg.reactor),
                             60 * UINT64_C(1000000000), &suppressed);
    GB_LOG(loud ? GB_LOG_ERROR : GB_LOG_DEBUG,
           "message above a local limit acknowledged and dropped",
           gb_lf_str("session_id", s->cfg.id), gb_lf_str("class", class_name),
           gb_lf_int("more_since_last_line", (int64_t)suppressed));
    ack_and_drop(s, qos, seq);
}

static void handle_publish(struct gb_mqtt_session *s, const struct gb_mqtt_publish *p)
{
    uint64_t seq = 0;
    size_t size = p->topic.size + p->payload.size + MESSAGE_OVERHEAD;
    if (p->qos > 0 && !receive(s, p->qos, p->packet_id, size, &seq)) return;
    const struct gb_mqtt_ingress ingress = {
        .version = s->cfg.version,
        .content_hash = s->cfg.content_hash_id,
        .client_id = gb_bytes_c(s->cfg.client_id),
        .urls = gb_str_bytes(&s->urls_joined),
        .max_payload_bytes = s->cfg.max_payload_bytes,
    };
    bool truncated = false;
    enum gb_mqtt_poison poison = gb_mqtt_ingress_classify(&ingress, p, &truncated);
    if (truncated) gb_metric_add(s->m.properties_truncated, 1);
    if (poison != GB_MQTT_POISON_NONE) {
        drop_poison(s, gb_mqtt_poison_name(poison), p->qos, seq);
        return;
    }
    struct gb_mqtt_ingress_result built;
    struct gb_err err = gb_mqtt_ingress_build(&ingress, p, s->cfg.reactor, &built);
    if (gb_failed(err)) { /* out of memory: the message stays at the broker, which resends it */
        gb_mqtt_link_close(&s->link, GB_MQTT_UNSPECIFIED_ERROR, GB_MQTT_DOWN_LOST, err);
        return;
    }
    gb_metric_add(s->m.header_dropped, built.header_dropped);
    gb_mqtt_inbound_accept(s->inbound, &(struct gb_mqtt_message){
                                           .envelope = built.envelope,
                                           .topic = p->topic,
                                           .derived = built.derived,
                                           .seq = seq,
                                           .size = size,
                                           .qos = p->qos,
                                       });
}

void gb_mqtt_session_packet(void *arg, const struct gb_mqtt_packet *p)
{
    struct gb_mqtt_session *s = arg;
    switch (p->type) {
    case GB_MQTT_PUBLISH:
        handle_publish(s, &p->publish);
        break;
    case GB_MQTT_PUBACK:
        gb_mqtt_publisher_puback(s->publisher, p->ack.packet_id, p->ack.reason);
        break;
    case GB_MQTT_PUBREC:
        gb_mqtt_publisher_pubrec(s->publisher, p->ack.packet_id, p->ack.reason);
        break;
    case GB_MQTT_PUBCOMP:
        gb_mqtt_publisher_pubcomp(s->publisher, p->ack.packet_id, p->ack.reason);
        break;
    case GB_MQTT_PUBREL:
        gb_mqtt_acks_release(&s->acks, p->ack.packet_id, s->cfg.version == GB_MQTT_V5, &s->link.tx);
        gb_mqtt_link_flush(&s->link);
        break;
    case GB_MQTT_SUBACK:
        gb_mqtt_reconcile_suback(s->reconcile, p->suback.packet_id, p->suback.codes);
        break;
    case GB_MQTT_UNSUBACK:
        gb_mqtt_reconcile_unsuback(s->reconcile, p->suback.packet_id, p->suback.codes);
        break;
    case GB_MQTT_AUTH:
        gb_mqtt_session_reject(
            s, GB_MQTT_PROTOCOL_ERROR,
            gb_err(GB_PROTOCOL_ERROR, "the broker sent AUTH without being asked"));
        break;
    case GB_MQTT_CONNECT:
    case GB_MQTT_CONNACK:
    case GB_MQTT_SUBSCRIBE:
    case GB_MQTT_UNSUBSCRIBE:
    case GB_MQTT_PINGREQ:
    case GB_MQTT_PINGRESP:
    case GB_MQTT_DISCONNECT:
        break; /* the link has taken or refused these */
    }
}

void gb_mqtt_session_oversized(void *arg, uint8_t qos, uint16_t packet_id)
{
    struct gb_mqtt_session *s = arg;
    uint64_t seq = 0;
    if (qos > 0 && !receive(s, qos, packet_id, MESSAGE_OVERHEAD, &seq)) return;
    drop_poison(s, "payload", qos, seq);
}

/* Retain Handling 1 for durable sessions and for filters that the connection has (spec 03 §8.2),
 * else 0; No Local never on shared filters (§7, §10). */
void gb_mqtt_session_subscribe(void *arg, uint16_t id, const struct gb_mqtt_subscription *subs,
                               size_t count)
{
    struct gb_mqtt_session *s = arg;
    struct gb_mqtt_subscribe_entry entries[GB_MQTT_FILTERS_PER_PACKET];
    for (size_t i = 0; i < count; i++) {
        entries[i] = (struct gb_mqtt_subscribe_entry){
            .filter = subs[i].filter,
            .qos = subs[i].qos,
            .no_local = s->cfg.no_local && !subs[i].shared,
            .retain_handling = s->cfg.mode == GB_MQTT_EPHEMERAL && !subs[i].again ? 0 : 1,
        };
    }
    gb_mqtt_encode_subscribe(&s->link.tx, s->cfg.version, id, entries, count);
    gb_mqtt_link_flush(&s->link);
}

void gb_mqtt_session_unsubscribe(void *arg, uint16_t id, const struct gb_mqtt_subscription *subs,
                                 size_t count)
{
    struct gb_mqtt_session *s = arg;
    struct gb_bytes filters[GB_MQTT_FILTERS_PER_PACKET];
    for (size_t i = 0; i < count; i++) filters[i] = subs[i].filter;
    gb_mqtt_encode_unsubscribe(&s->link.tx, s->cfg.version, id, filters, count);
    gb_mqtt_link_flush(&s->link);
}

/* An ephemeral session got a message of a filter that nobody wanted: this exact topic is
 * unsubscribed (spec 03 §7 item 4), once as long as it is the one that comes. The answer's id is
 * outside of the reconcile's range and is ignored. */
void gb_mqtt_session_orphan(void *arg, struct gb_bytes topic)
{
    struct gb_mqtt_session *s = arg;
    enum { ORPHAN_ID = GB_MQTT_RECONCILE_ID_FIRST - 1 };
    if (gb_bytes_equal(gb_str_bytes(&s->orphan_topic), topic)) return;
    gb_str_clear(&s->orphan_topic);
    gb_str_append(&s->orphan_topic, topic);
    gb_mqtt_encode_unsubscribe(&s->link.tx, s->cfg.version, ORPHAN_ID, &topic, 1);
    gb_mqtt_link_flush(&s->link);
}
