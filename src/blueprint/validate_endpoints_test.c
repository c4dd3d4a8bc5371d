#include "blueprint/rule_rows.h"

static const struct rule_row receivers_rows[] = {
    {"01 row 14, unknown session", "    session_id: plant\n    topics",
     "    session_id: plan\n    topics",
     "receivers[0] (telemetry-in): session_id \"plan\" not found in sessions"},
    {"01 V4, neither", "    session_id: plant\n    topics", "    topics",
     "transport or session_id is required"},
    {"01 V4, differs", "    session_id: plant\n    topics",
     "    session_id: plant\n"
     "    transport: http\n"
     "    topics",
     "session_id is refused with transport http"},
    {"mqtt without session", "    session_id: plant\n    topics", "    transport: mqtt\n    topics",
     "transport mqtt needs a session_id"},
    {"sqs receiver",
     "    session_id: plant\n"
     "    topics:\n"
     "      - {topic: \"telemetry/#\", qos: 1}\n",
     "    transport: sqs\n"
     "    options: {queue_name: q}\n",
     "transport sqs of a receiver is not supported yet"},
    {"http receiver",
     "    session_id: plant\n"
     "    topics:\n"
     "      - {topic: \"telemetry/#\", qos: 1}\n",
     "    transport: http\n", "transport http is not supported yet"},
    {"04 check 13, wait",
     "    session_id: plant\n"
     "    topics:\n"
     "      - {topic: \"telemetry/#\", qos: 1}\n",
     "    transport: sqs\n"
     "    options: {queue_name: q, wait_time_seconds: 0}\n",
     "must be 1..20"},
    {"04 check 13, messages",
     "    session_id: plant\n"
     "    topics:\n"
     "      - {topic: \"telemetry/#\", qos: 1}\n",
     "    transport: sqs\n"
     "    options: {queue_name: q, max_messages: 0}\n",
     "must be 1..10"},
    {"04 check 13, visibility",
     "    session_id: plant\n"
     "    topics:\n"
     "      - {topic: \"telemetry/#\", qos: 1}\n",
     "    transport: sqs\n"
     "    options: {queue_name: q, visibility_timeout: 43201}\n",
     "must be 0..43200"},
    {"04 check 13, poison",
     "    session_id: plant\n"
     "    topics:\n"
     "      - {topic: \"telemetry/#\", qos: 1}\n",
     "    transport: sqs\n"
     "    options: {queue_name: q, poison_max_receives: 1}\n",
     "needs poison_drop_without_dlq"},
    {"topics of another transport", "    session_id: plant\n    topics",
     "    transport: sqs\n"
     "    options: {queue_name: q}\n"
     "    topics",
     "topics are accepted with transport mqtt only"},
    {"no topics",
     "    topics:\n"
     "      - {topic: \"telemetry/#\", qos: 1}\n",
     "", "a receiver without topics is not supported yet"},
    {"topic without filter", "topic: \"telemetry/#\", ", "", "topics[0].topic is required"},
    {"01 row 7, no group", "telemetry/#", "$share//x", "topics[0]: "},
    {"01 row 7, no filter", "telemetry/#", "$share/g/", "topics[0]: "},
    {"QoS is never masked", "qos: 1", "qos: 3", "topics[0].qos 3 is out of range; must be 0..2"},
    {"negative QoS", "qos: 1", "qos: -1", "must be 0..2"},
    {"recheck off", "qos: 1", "qos: 1, options: {subscription: {qos_recheck_interval: 0s}}", NULL},
    {"recheck each minute", "qos: 1", "qos: 1, options: {subscription: {qos_recheck_interval: 1m}}",
     NULL},
    {"recheck too often", "qos: 1", "qos: 1, options: {subscription: {qos_recheck_interval: 59s}}",
     "must be 0s (off) or at least 1m0s"},
    {"unknown topic option", "qos: 1", "qos: 1, options: {retain: true}",
     "unknown key \"topics[0].options.retain\""},
    {"same topic twice", "qos: 1}", "qos: 1}\n      - {topic: \"telemetry/#\", qos: 0}",
     "subscribed twice"},
    {"01 P12, second receiver", "senders:\n",
     "  - {id: more, session_id: plant, topics: [{topic: x}]}\n"
     "senders:\n",
     "already has the receiver \"telemetry-in\""},
    {"04 B3, backoff upside down",
     "    session_id: plant\n    topics:\n      - {topic: \"telemetry/#\", qos: 1}\n",
     "    transport: sqs\n    options: {queue_name: q, poll_backoff_max: 1ms}\n",
     "options.poll_backoff_max is less than"},
    {"04 C2, short key",
     "    session_id: plant\n    topics:\n      - {topic: \"telemetry/#\", qos: 1}\n",
     "    transport: http\n    options: {api_key: a23456789abcdef}\n",
     "options.api_key has 15 bytes; at least 16"},
};

static void receivers(void **state)
{
    (void)state;
    RULES(DOCUMENTS "standalone.yaml", receivers_rows);
}

static const struct rule_row senders_rows[] = {
    {"queue missing",
     "      queue_url: https://sqs.eu-central-1.amazonaws.com/123456789/telemetry-events\n",
     "      region: x\n", "options.queue_url is required (or queue_name"},
    {"queue by name",
     "      queue_url: https://sqs.eu-central-1.amazonaws.com/123456789/telemetry-events\n",
     "      queue_name: telemetry-events\n", NULL},
    {"queue by url and name",
     "      queue_url: https://sqs.eu-central-1.amazonaws.com/123456789/telemetry-events\n",
     "      queue_url: https://sqs.eu-central-1.amazonaws.com/123456789/telemetry-events\n"
     "      queue_name: x\n",
     "mutually exclusive"},
    {"queue by tags",
     "      queue_url: https://sqs.eu-central-1.amazonaws.com/123456789/telemetry-events\n",
     "      queue_tags: {a: b}\n", "options.queue_tags is not supported yet"},
    {"queue by tags and name",
     "      queue_url: https://sqs.eu-central-1.amazonaws.com/123456789/telemetry-events\n",
     "      queue_tags: {a: b}\n"
     "      queue_name: x\n",
     "excludes queue_url and queue_name"},
    {"prefix without tags",
     "      queue_url: https://sqs.eu-central-1.amazonaws.com/123456789/telemetry-events\n",
     "      queue_url: https://sqs.eu-central-1.amazonaws.com/123456789/telemetry-events\n"
     "      queue_name_prefix: x\n",
     "accepted only with queue_tags"},
    {"01 row 12, region of a sender",
     "      queue_url: https://sqs.eu-central-1.amazonaws.com/123456789/telemetry-events\n",
     "      queue_url: https://sqs.eu-central-1.amazonaws.com/123456789/telemetry-events\n"
     "      region: eu-central-1\n"
     "      endpoint: http://127.0.0.1:4566\n"
     "      profile: p\n",
     NULL},
    {"01 row 12, encoding",
     "      queue_url: https://sqs.eu-central-1.amazonaws.com/123456789/telemetry-events\n",
     "      queue_url: https://sqs.eu-central-1.amazonaws.com/123456789/telemetry-events\n"
     "      payload_encoding: hex\n",
     "must be one of: auto, text, base64"},
    {"04 check 13, batch",
     "      queue_url: https://sqs.eu-central-1.amazonaws.com/123456789/telemetry-events\n",
     "      queue_url: https://sqs.eu-central-1.amazonaws.com/123456789/telemetry-events\n"
     "      batch_size: 11\n",
     "must be 0..10"},
    {"batch default",
     "      queue_url: https://sqs.eu-central-1.amazonaws.com/123456789/telemetry-events\n",
     "      queue_url: https://sqs.eu-central-1.amazonaws.com/123456789/telemetry-events\n"
     "      batch_size: 0\n",
     NULL},
    {"delay",
     "      queue_url: https://sqs.eu-central-1.amazonaws.com/123456789/telemetry-events\n",
     "      queue_url: https://sqs.eu-central-1.amazonaws.com/123456789/telemetry-events\n"
     "      delay_seconds: 900\n",
     NULL},
    {"long delay",
     "      queue_url: https://sqs.eu-central-1.amazonaws.com/123456789/telemetry-events\n",
     "      queue_url: https://sqs.eu-central-1.amazonaws.com/123456789/telemetry-events\n"
     "      delay_seconds: 901\n",
     "must be 0..900"},
    {"linger",
     "      queue_url: https://sqs.eu-central-1.amazonaws.com/123456789/telemetry-events\n",
     "      queue_url: https://sqs.eu-central-1.amazonaws.com/123456789/telemetry-events\n"
     "      linger: 1s\n",
     NULL},
    {"long linger",
     "      queue_url: https://sqs.eu-central-1.amazonaws.com/123456789/telemetry-events\n",
     "      queue_url: https://sqs.eu-central-1.amazonaws.com/123456789/telemetry-events\n"
     "      linger: 1001ms\n",
     "must be 0s..1s"},
    {"04 check 8, suffix alone",
     "      queue_url: https://sqs.eu-central-1.amazonaws.com/123456789/telemetry-events\n",
     "      queue_name: q.fifo\n", "needs fifo: true or message_group_id"},
    {"04 check 8, fifo",
     "      queue_url: https://sqs.eu-central-1.amazonaws.com/123456789/telemetry-events\n",
     "      queue_name: q.fifo\n"
     "      fifo: true\n",
     NULL},
    {"04 check 8, group",
     "      queue_url: https://sqs.eu-central-1.amazonaws.com/123456789/telemetry-events\n",
     "      queue_url: https://x/1/q.fifo\n"
     "      message_group_id: g\n",
     NULL},
    {"04 check 8, delay",
     "      queue_url: https://sqs.eu-central-1.amazonaws.com/123456789/telemetry-events\n",
     "      queue_name: q.fifo\n"
     "      fifo: true\n"
     "      delay_seconds: 5\n",
     "delay_seconds is refused on a FIFO queue"},
    {"fifo without suffix",
     "      queue_url: https://sqs.eu-central-1.amazonaws.com/123456789/telemetry-events\n",
     "      queue_url: https://sqs.eu-central-1.amazonaws.com/123456789/telemetry-events\n"
     "      fifo: true\n",
     "whose name ends in .fifo"},
    {"bad group",
     "      queue_url: https://sqs.eu-central-1.amazonaws.com/123456789/telemetry-events\n",
     "      queue_name: q.fifo\n"
     "      message_group_id: \"a b\"\n",
     "message_group_id must be at most 128"},
    {"credentials of a sender",
     "      queue_url: https://sqs.eu-central-1.amazonaws.com/123456789/telemetry-events\n",
     "      queue_url: https://sqs.eu-central-1.amazonaws.com/123456789/telemetry-events\n"
     "      credentials_uri: pms://x\n",
     "senders[0] (sqs-out): options.credentials_uri is not supported yet"},
    {"unknown sender option",
     "      queue_url: https://sqs.eu-central-1.amazonaws.com/123456789/telemetry-events\n",
     "      queue_url: https://sqs.eu-central-1.amazonaws.com/123456789/telemetry-events\n"
     "      queue: x\n",
     "unknown key \"options.queue\""},
    {"http sender",
     "    transport: sqs\n"
     "    options:\n"
     "      queue_url: https://sqs.eu-central-1.amazonaws.com/123456789/telemetry-events\n",
     "    transport: http\n", "transport http is not supported yet"},
    {"sqs sender with session", "    transport: sqs\n    options",
     "    transport: sqs\n"
     "    session_id: plant\n"
     "    options",
     "session_id is refused with transport sqs"},
    {"04 B2, too many tags",
     "      queue_url: https://sqs.eu-central-1.amazonaws.com/123456789/telemetry-events\n",
     "      queue_tags: {t0: v, t1: v, t2: v, t3: v, t4: v, t5: v, t6: v, t7: v, t8: v, t9: v, "
     "t10: v, t11: v, t12: v, t13: v, t14: v, t15: v, t16: v, t17: v, t18: v, t19: v, t20: v, t21: "
     "v, t22: v, t23: v, t24: v, t25: v, t26: v, t27: v, t28: v, t29: v, t30: v, t31: v, t32: v, "
     "t33: v, t34: v, t35: v, t36: v, t37: v, t38: v, t39: v, t40: v, t41: v, t42: v, t43: v, t44: "
     "v, t45: v, t46: v, t47: v, t48: v, t49: v, t50: v}\n",
     "has more than 50 tags"},
    {"04 B2, empty tag",
     "      queue_url: https://sqs.eu-central-1.amazonaws.com/123456789/telemetry-events\n",
     "      queue_tags: {\"\": v}\n", "keys have 1-128 characters"},
    {"04 B2, long prefix",
     "      queue_url: https://sqs.eu-central-1.amazonaws.com/123456789/telemetry-events\n",
     "      queue_tags: {a: b}\n      queue_name_prefix: "
     "ppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppp\n",
     "longer than 80 characters"},
    {"04 C9, both answers",
     "    transport: sqs\n    options:\n      queue_url: "
     "https://sqs.eu-central-1.amazonaws.com/123456789/telemetry-events\n",
     "    transport: http\n    options: {at_most_once_accept_loss: true, fail_on_zero_delivery: "
     "true}\n",
     "mutually exclusive"},
};

static void senders(void **state)
{
    (void)state;
    RULES(DOCUMENTS "standalone.yaml", senders_rows);
}

static const struct rule_row bindings_rows[] = {
    {"01 row 14, unknown sender", "sender_id: sqs-out, address", "sender_id: sqs, address",
     "bindings[0] (to-sqs): sender_id \"sqs\" not found in senders"},
    {"01 row 14, unknown session of a binding", "address: telemetry-events",
     "session_id: x, address: telemetry-events", "session_id \"x\" not found in sessions"},
    {"no address", ", address: telemetry-events", "", "address is required"},
    {"unbalanced address", "address: telemetry-events", "address: \"a/{b\"", "address: "},
    {"empty braces", "address: telemetry-events", "address: \"a/{}\"", "address: "},
    {"binding options", "address: telemetry-events", "address: x, options: {batch_size: 3}",
     "warning: bindings[0] (to-sqs): options of a binding"},
    {"wrong binding options", "address: telemetry-events", "address: x, options: {batch_size: 30}",
     "must be 0..10"},
};

static void bindings(void **state)
{
    (void)state;
    RULES(DOCUMENTS "standalone.yaml", bindings_rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(receivers),
        cmocka_unit_test(senders),
        cmocka_unit_test(bindings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
