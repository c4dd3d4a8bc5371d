#include "blueprint/rule_rows.h"

/* Spec 03 check 34: what a session that does not resume may feed without an outbox. */
static void direct_hold_of_an_ephemeral_session(void **state)
{
    (void)state;
    static const struct direct_row {
        int qos;
        bool dlq;
        const char *want; /* "": accepted */
    } rows[] = {
        {0, true, ""},
        {0, false, "cannot redeliver"},
        {1, true, "the source does not redeliver"},
        {2, true, "the source does not redeliver"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char *text = gb_asprintf(
            "bridge: {id: edge}\n%s"
            "sessions:\n"
            "  - {id: edge, transport: mqtt, session_mode: ephemeral, options: {session: "
            "{broker_url: \"tcp://a\", client_id: c}}}\n"
            "receivers: [{id: in, session_id: edge, topics: [{topic: \"alarms/+\", qos: %d}]}]\n"
            "senders: [{id: out, transport: sqs, options: {queue_url: "
            "\"https://sqs.eu-central-1.amazonaws.com/123456789012/q\"}}]\n"
            "bindings: [{id: to, sender_id: out, address: q}]\n"
            "routes: [{id: alarms, receiver_id: in, bindings: [to], policy: {allow_unfenced: true%s"
            "}}]\n",
            rows[i].dlq
                ? "stores: {dlq: {type: sqlite, options: {path: /var/lib/gobridge/dlq.db}}}\n"
                : "",
            rows[i].qos, rows[i].dlq ? "" : ", on_expired: drop, on_permanent_failure: drop");
        struct gb_err err;
        char *said = findings_of(text, GB_BLUEPRINT_YAML, &err);
        if (strstr(said, rows[i].want) == NULL || (said[0] == '\0') != (rows[i].want[0] == '\0'))
            fail_msg("QoS %d, DLQ %d: %s", rows[i].qos, rows[i].dlq, said);
        free(said);
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(direct_hold_of_an_ephemeral_session),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
