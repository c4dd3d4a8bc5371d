#include <string.h>

#include "blueprint/document.h"
#include "blueprint/schema.h"

/* Which field a key means, and which table reads a block of options. */

static bool same_letter(char a, char b)
{
    if (a >= 'A' && a <= 'Z') a = (char)(a - 'A' + 'a');
    return a == b;
}

/* maxPayloadBytes is also max_payload_bytes. */
static bool is_snake_of(const char *camel, const char *key)
{
    for (; *camel != '\0'; camel++, key++) {
        if (*camel >= 'A' && *camel <= 'Z') {
            if (*key != '_') return false;
            key++;
        }
        if (!same_letter(*camel, *key)) return false;
    }
    return *key == '\0';
}

const struct gb_field *gb_schema_field(const struct gb_block *block, const char *key)
{
    for (size_t i = 0; i < block->count; i++) {
        const struct gb_field *f = &block->fields[i];
        if (strcmp(f->key, key) == 0) return f;
        if (block->camel && is_snake_of(f->key, key)) return f;
    }
    return NULL;
}

bool gb_schema_is_secret(const char *key)
{
    static const char *const keys[] = {
        "admin_api_key", "monitor_api_key", "password",        "key_pem",
        "api_key",       "forward_token",   "cluster_api_key", "receiver_api_keys",
    };
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        if (strcmp(key, keys[i]) == 0) return true;
    }
    return false;
}

const struct gb_block *gb_schema_options_of_store(const void *entry)
{
    const struct gb_bp_store *s = entry;
    for (int role = 0; role < GB_BP_ROLE_COUNT; role++) {
        if (strcmp(gb_schema_role_name((enum gb_bp_role)role), s->node->key) != 0) continue;
        return gb_schema_store_options((enum gb_bp_role)role, (enum gb_bp_store_type)s->type.value);
    }
    return NULL;
}

const struct gb_block *gb_schema_options_of_session(const void *entry)
{
    const struct gb_bp_session *s = entry;
    return s->transport.value == GB_BP_MQTT ? &gb_schema_mqtt_session_options : NULL;
}

/* Only MQTT receivers have topics. */
const struct gb_block *gb_schema_options_of_topic(const void *entry)
{
    (void)entry;
    return &gb_schema_mqtt_topic_options;
}

const struct gb_block *gb_schema_options_of_receiver(const void *entry)
{
    static const struct gb_block *const blocks[] = {
        [GB_BP_KIND_NONE] = NULL,
        [GB_BP_MQTT] = &gb_schema_mqtt_receiver_options,
        [GB_BP_SQS] = &gb_schema_sqs_receiver,
        [GB_BP_HTTP] = &gb_schema_http_receiver,
    };
    const struct gb_bp_receiver *r = entry;
    return blocks[r->transport.value];
}

const struct gb_block *gb_schema_options_of_sender(const void *entry)
{
    static const struct gb_block *const blocks[] = {
        [GB_BP_KIND_NONE] = NULL,
        [GB_BP_MQTT] = &gb_schema_mqtt_sender_options,
        [GB_BP_SQS] = &gb_schema_sqs_sender,
        [GB_BP_HTTP] = &gb_schema_http_sender,
    };
    const struct gb_bp_sender *s = entry;
    return blocks[s->transport.value];
}

const struct gb_block *gb_schema_options_of_binding(const void *entry)
{
    const struct gb_bp_binding *b = entry;
    return b->sender == NULL ? NULL : gb_schema_options_of_sender(b->sender);
}

const struct gb_block *gb_schema_config_of_processor(const void *entry)
{
    const struct gb_bp_processor *p = entry;
    return gb_schema_processor_config((enum gb_bp_processor_type)p->type.value);
}
