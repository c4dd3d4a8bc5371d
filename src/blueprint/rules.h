#ifndef GB_BLUEPRINT_RULES_H
#define GB_BLUEPRINT_RULES_H

/* Every rule that a document can break: its name, as findings and docs/configuration.md print it,
 * and what it asks. V, W, C and P are the rules of spec 01 §5; D (reading), K (keys and values), M
 * (MQTT, spec 03), Q (SQS) and H (HTTP, both spec 04) stand for rules that the specification leaves
 * unnumbered, A for those of an AWS deployment (spec 01 §6), which need its bootstrap.
 * Owns:   nothing. Thread: any. Errors: none. */

#define GB_RULES(X)                                                                                \
    X(D1, "a document has at most 4 MiB")                                                          \
    X(D2, "a document is UTF-8 text")                                                              \
    X(D3, "a document is well-formed YAML or JSON")                                                \
    X(D4, "a document has at most 400000 values, 100 levels, and 100000 values from aliases")      \
    X(D5, "a map has no key twice")                                                                \
    X(D6, "tags, further documents, and keys that are no texts are refused")                       \
    X(D7, "texts and keys hold no NUL character")                                                  \
    X(K1, "every key is known")                                                                    \
    X(K2, "a required key is written")                                                             \
    X(K3, "a value has the type of its key")                                                       \
    X(K4, "a number, a duration and a list are within the bounds of their key")                    \
    X(K5, "a word is one of the set of its key")                                                   \
    X(K6, "a duration is a number with a unit, such as \"30s\"")                                   \
    X(K7, "a secret is written out; [REDACTED] stands for the http key of a layer below")          \
    X(K8, "a credentials_uri is file:// or pms:// with a path")                                    \
    X(V1, "bridge.id is written")                                                                  \
    X(V2, "values agree with each other")                                                          \
    X(V3,                                                                                          \
      "ids and names are unique in their section, at most 255 bytes, without control characters")  \
    X(V4, "a receiver or sender has a transport, its own or its session's")                        \
    X(V5, "what an entry refers to exists")                                                        \
    X(V6, "a binding has a well-formed address, and a route has bindings, each once")              \
    X(V7,                                                                                          \
      "a resolver picks among the bindings of its route, and its conditions have usable values")   \
    X(V8, "keys that exclude each other are not written together")                                 \
    X(V9, "an MQTT topic filter is well-formed, and subscribed once")                              \
    X(V10,                                                                                         \
      "the http block has an admin key, keys of at least 16 bytes, listed origins, TLS files in "  \
      "pairs")                                                                                     \
    X(V20, "delivery_mode shared_outbox requires stores.outbox")                                   \
    X(V21, "an exclusive session requires stores.lease")                                           \
    X(V22, "a durable MQTT session with topics requires stores.managed_subscriptions")             \
    X(V23, "a store's type and options suit its role")                                             \
    X(V25, "a written dlq action requires stores.dlq")                                             \
    X(V26, "policy.ack_after suits the delivery mode")                                             \
    X(V27, "direct_hold sends to one binding, and not over an exclusive session")                  \
    X(V31, "stale_claim_duration is greater than the largest send_timeout")                        \
    X(V32, "stale_claim_duration is greater than send_timeout + bridge.max_drain_timeout")         \
    X(V33, "stale_claim_duration is greater than the largest step_down_grace, at most twice that") \
    X(V40, "renewing max_renew_fails times takes less than lease_ttl")                             \
    X(V41, "renew_interval and acquire_poll_interval resolve to at least 250ms, lease_ttl to 5s")  \
    X(V42, "failover_slo is greater than zero, startup_allowance between 0s and 10m")              \
    X(V43, "a declared failover_slo needs a decided broker_health_step_down")                      \
    X(W1, "direct_hold has no fencing between instances")                                          \
    X(W2, "lease_ttl outlasts connecting, reconciling and one renewal")                            \
    X(W3, "a binding does not publish into a topic of its own session")                            \
    X(W4, "messages that fail for good have a stores.dlq to go to")                                \
    X(W5, "what is written has an effect")                                                         \
    X(C1, "every store of a clustered bridge is distributed")                                      \
    X(C2, "a clustered MQTT receiver has $share/ topics or an exclusive session")                  \
    X(C3, "an exclusive session has no client_id_suffix")                                          \
    X(C4, "a clustered $share session that is not exclusive has a client_id_suffix")               \
    X(C5, "bridge.cluster.endpoints holds this instance's own http endpoint")                      \
    X(C6, "a clustered exclusive route with an HTTP receiver uses shared_outbox")                  \
    X(C7, "a coordinated rollout is clustered and has a roster")                                   \
    X(C9, "a clustered shared_outbox binding runs on a session that owns a lease")                 \
    X(P1, "the budget of an owner's death fits failover_slo")                                      \
    X(P2, "the budget of a broker-path outage fits failover_slo")                                  \
    X(P3, "all users of a session agree on its lease settings")                                    \
    X(P4, "session_id goes with a stateful transport")                                             \
    X(P5, "an exclusive session is lease-managed")                                                 \
    X(P6, "two MQTT sessions differ in endpoint or client id; a durable one has one endpoint")     \
    X(P7, "the ingress memory budget holds what may be in flight")                                 \
    X(P8, "a listed processor is defined, listed once, and its configuration is usable")           \
    X(P9,                                                                                          \
      "no message is lost by a source that cannot redeliver or a target that does not confirm")    \
    X(P11, "a delivery ends before its source gives the message out again")                        \
    X(P12, "an MQTT session has one receiver, which feeds one route")                              \
    X(M1, "an MQTT session names its broker by URLs of a known scheme")                            \
    X(M2, "TLS follows the URL's scheme")                                                          \
    X(M3, "credentials travel encrypted unless plain text is allowed")                             \
    X(M4, "a persistent session keeps its client id")                                              \
    X(M5, "certificates come with their keys, and verification stays on")                          \
    X(M6, "texts and payloads fit into MQTT's packets")                                            \
    X(M7, "options suit the protocol version")                                                     \
    X(M8, "clean_start is not set on an exclusive session")                                        \
    X(M9, "a topic to publish to is well-formed, without wildcards")                               \
    X(Q1, "an SQS queue is named by one of queue_url, queue_name and queue_tags")                  \
    X(Q2, "poll_backoff_max is at least poll_backoff_initial")                                     \
    X(Q3, "poison_max_receives: 1 deletes every message and has to be confirmed")                  \
    X(Q4, "FIFO options suit the queue")                                                           \
    X(H1, "an HTTP endpoint has a well-formed path of its own")                                    \
    X(H2, "the forward token differs from every API key")                                          \
    X(A1, "the document is that of the deployment's bridge")                                       \
    X(A2, "an HA document is clustered, with lease, outbox and subscriptions in DynamoDB")         \
    X(A3, "an HA document names the tables of its deployment")                                     \
    X(A4, "an HA document does without preflight_advisory and static endpoints")                   \
    X(A5, "an HA route uses shared_outbox and writes ack_after: outbox_persist")                   \
    X(A6, "an HA route declares failover_slo and startup_allowance")                               \
    X(A7, "the rollout strategy and its roster suit the deployment's members")                     \
    X(A8, "the document has the deployment's fingerprint")                                         \
    X(A9, "a document for replicas has no session blocks and no shared_outbox")                    \
    X(NOT_SUPPORTED, "this release supports it")

enum gb_rule {
    GB_RULE_NONE = 0,
#define GB_RULE_ITEM(name, asks) GB_RULE_##name,
    GB_RULES(GB_RULE_ITEM)
#undef GB_RULE_ITEM
        GB_RULE_COUNT,
};

const char *gb_rule_name(enum gb_rule rule); /* "V31"; "" for GB_RULE_NONE */
const char *gb_rule_asks(enum gb_rule rule);

#endif
