#include "blueprint/rule_rows.h"

static const struct rule_row drain_settings_rows[] = {
    {"drain settings", "    policy: {}\n",
     "    policy: {}\n"
     "    session: {session_id: plant, sender_id: sqs-out, drain_batch_size: 10, drain_strategy: "
     "{type: adaptive_backoff, min_interval: 500ms, max_interval: 10s, multiplier: 1.5}}\n",
     NULL},
    {"fixed poll", "    policy: {}\n",
     "    policy: {}\n"
     "    session: {session_id: plant, sender_id: sqs-out, drain_strategy: {type: fixed_poll, "
     "interval: 2s}}\n",
     NULL},
    {"01 row 20, both", "    policy: {}\n",
     "    policy: {}\n"
     "    session: {session_id: plant, sender_id: sqs-out, drain_interval: 1s, drain_strategy: "
     "{type: fixed_poll}}\n",
     "drain_strategy and drain_interval are mutually exclusive"},
    {"01 row 20, multiplier", "    policy: {}\n",
     "    policy: {}\n"
     "    session: {session_id: plant, sender_id: sqs-out, drain_strategy: {multiplier: 1.0}}\n",
     "multiplier must be greater than 1"},
    {"01 row 20, max < min", "    policy: {}\n",
     "    policy: {}\n"
     "    session: {session_id: plant, sender_id: sqs-out, drain_strategy: {min_interval: 2s, "
     "max_interval: 1s}}\n",
     "max_interval is less than min_interval"},
    {"foreign strategy key", "    policy: {}\n",
     "    policy: {}\n"
     "    session: {session_id: plant, sender_id: sqs-out, drain_strategy: {type: fixed_poll, "
     "multiplier: 2}}\n",
     "multiplier has no meaning with type fixed_poll"},
    {"foreign interval", "    policy: {}\n",
     "    policy: {}\n"
     "    session: {session_id: plant, sender_id: sqs-out, drain_strategy: {interval: 1s}}\n",
     "interval has no meaning with type adaptive_backoff"},
    {"unknown strategy", "    policy: {}\n",
     "    policy: {}\n"
     "    session: {session_id: plant, sender_id: sqs-out, drain_strategy: {type: eager}}\n",
     "must be one of: adaptive_backoff, fixed_poll"},
    {"batch above its maximum", "    policy: {}\n",
     "    policy: {}\n"
     "    session: {session_id: plant, sender_id: sqs-out, drain_batch_size: 501}\n",
     "drain_max_batch_size 500 is less than drain_batch_size 501"},
    {"batch raised", "    policy: {}\n",
     "    policy: {}\n"
     "    session: {session_id: plant, sender_id: sqs-out, drain_batch_size: 501, "
     "drain_max_batch_size: 501}\n",
     NULL},
    {"batch too large", "    policy: {}\n",
     "    policy: {}\n"
     "    session: {session_id: plant, sender_id: sqs-out, drain_max_batch_size: 10001}\n",
     "must be 1..10000"},
    {"lease keys without a lease", "    policy: {}\n",
     "    policy: {}\n"
     "    session: {session_id: plant, sender_id: sqs-out, lease_ttl: 300s}\n",
     "warning: routes[0] (ingest): session.lease_ttl has no effect"},
    {"01 row 3, off", "    policy: {}\n",
     "    policy: {}\n"
     "    session: {session_id: plant, sender_id: sqs-out, broker_health_step_down: off}\n",
     "warning: "},
    {"01 row 3, quoted", "    policy: {}\n",
     "    policy: {}\n"
     "    session: {session_id: plant, sender_id: sqs-out, broker_health_step_down: \"off\"}\n",
     "warning: "},
    {"01 row 3, true", "    policy: {}\n",
     "    policy: {}\n"
     "    session: {session_id: plant, sender_id: sqs-out, broker_health_step_down: true}\n",
     "invalid duration \"true\""},
    {"01 row 3, zero", "    policy: {}\n",
     "    policy: {}\n"
     "    session: {session_id: plant, sender_id: sqs-out, broker_health_step_down: 0s}\n",
     "must be greater than zero, or \"off\""},
    {"01 row 3, negative", "    policy: {}\n",
     "    policy: {}\n"
     "    session: {session_id: plant, sender_id: sqs-out, broker_health_step_down: -1s}\n",
     "must be greater than zero, or \"off\""},
    {"01 row 19, most", "    policy: {}\n",
     "    policy: {}\n"
     "    session: {session_id: plant, sender_id: sqs-out, startup_allowance: 10m}\n",
     "warning: "},
    {"01 row 19, more", "    policy: {}\n",
     "    policy: {}\n"
     "    session: {session_id: plant, sender_id: sqs-out, startup_allowance: 10m1ns}\n",
     "must be 0s..10m0s"},
    {"01 row 19, less", "    policy: {}\n",
     "    policy: {}\n"
     "    session: {session_id: plant, sender_id: sqs-out, startup_allowance: -1s}\n",
     "must be 0s..10m0s"},
    {"unknown drain target", "    policy: {}\n",
     "    policy: {}\n"
     "    session: {session_id: plant, sender_id: x}\n",
     "session.sender_id \"x\" not found in senders"},
    {"unknown drained session", "    policy: {}\n",
     "    policy: {}\n"
     "    session: {session_id: x, sender_id: sqs-out}\n",
     "session_id \"x\" not found in sessions"},
    {"no drain target", "    policy: {}\n",
     "    policy: {}\n"
     "    session: {session_id: plant}\n",
     "session.sender_id is required"},
};

static void drain_settings(void **state)
{
    (void)state;
    RULES(DOCUMENTS "standalone.yaml", drain_settings_rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(drain_settings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
