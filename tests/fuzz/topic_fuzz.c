#include <stddef.h>
#include <stdint.h>

#include "base/assert.h"
#include "domain/address.h"
#include "domain/mqtt_topic.h"

/* Any text as a topic filter, a publish topic, a broker URL and an address template. The first line
 * may be a filter and the second a topic: matching agrees with a plain walk over the levels. */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_error(struct gb_err err, enum gb_code code)
{
    GB_ASSERT(err.code == code);
    GB_ASSERT(gb_utf8_safe(gb_bytes_c(err.message)));
}

/* Takes the level before the next '/' off `*rest`; false when none is left. */
static bool next_level(struct gb_bytes *rest, struct gb_bytes *level)
{
    if (rest->data == NULL) return false;
    size_t size = 0;
    while (size < rest->size && rest->data[size] != '/') size++;
    *level = gb_bytes(rest->data, size);
    *rest = size == rest->size ? gb_bytes(NULL, 0)
                               : gb_bytes(rest->data + size + 1, rest->size - size - 1);
    return true;
}

/* MQTT 5 §4.7 read literally. */
static bool matches_by_levels(struct gb_bytes filter, struct gb_bytes topic)
{
    bool wild = filter.data[0] == '#' || filter.data[0] == '+';
    if (wild && topic.data[0] == '$') return false;
    struct gb_bytes want;
    struct gb_bytes have;
    while (next_level(&filter, &want)) {
        if (gb_bytes_equal_c(want, "#")) return true;
        if (!next_level(&topic, &have)) return false;
        if (!gb_bytes_equal_c(want, "+") && !gb_bytes_equal(want, have)) return false;
        /* A '#' after the last level stands for that level, too. */
        if (topic.data == NULL && gb_bytes_equal_c(filter, "#")) return true;
    }
    return topic.data == NULL;
}

static void check_match(struct gb_bytes filter, struct gb_bytes topic)
{
    bool got = gb_mqtt_filter_matches(filter, topic); /* any bytes: no crash */
    if (gb_failed(gb_mqtt_filter_check(filter))) return;
    if (gb_failed(gb_mqtt_publish_topic_check(topic))) return;
    GB_ASSERT(got == matches_by_levels(gb_mqtt_filter_plain(filter), topic));
}

static void check_topics(struct gb_bytes input)
{
    struct gb_err filter = gb_mqtt_filter_check(input);
    struct gb_err topic = gb_mqtt_publish_topic_check(input);
    struct gb_err address = gb_mqtt_address_check(input);
    if (gb_failed(filter)) check_error(filter, GB_INVALID_CONFIG);
    if (gb_failed(topic)) check_error(topic, GB_INVALID_TOPIC);
    if (gb_failed(address)) check_error(address, GB_INVALID_TOPIC);
    GB_ASSERT(gb_failed(address) || !gb_failed(topic));
    GB_ASSERT(gb_failed(topic) || !gb_failed(filter)); /* a topic is a filter for itself */
    GB_ASSERT(gb_failed(topic) || gb_mqtt_filter_matches(input, input));
    GB_ASSERT(gb_failed(filter) || gb_mqtt_filter_plain(input).size > 0);
    const uint8_t *line = input.size == 0 ? NULL : memchr(input.data, '\n', input.size);
    if (line == NULL) return;
    size_t first = (size_t)(line - input.data);
    check_match(gb_bytes(input.data, first), gb_bytes(line + 1, input.size - first - 1));
}

static void check_endpoint(struct gb_bytes input)
{
    struct gb_mqtt_endpoint e = {.port = 7};
    struct gb_err err = gb_mqtt_endpoint_parse(input, &e);
    if (gb_failed(err)) {
        check_error(err, GB_INVALID_CONFIG);
        GB_ASSERT(e.port == 7);
        return;
    }
    char printed[GB_MQTT_ENDPOINT_TEXT_MAX];
    gb_mqtt_endpoint_print(&e, printed);
    GB_ASSERT(e.port > 0 && e.host[0] != '\0');
    GB_ASSERT(strchr(e.host, '@') == NULL); /* no user info */
    struct gb_mqtt_endpoint again;
    GB_ASSERT(!gb_failed(gb_mqtt_endpoint_parse(gb_bytes_c(printed), &again)));
    GB_ASSERT(e.scheme == again.scheme && e.port == again.port);
    GB_ASSERT(strcmp(e.host, again.host) == 0 && strcmp(e.path, again.path) == 0);
}

static void check_address(struct gb_bytes input)
{
    struct gb_envelope *e = NULL;
    struct gb_str out = {0};
    GB_ASSERT(!gb_failed(gb_envelope_new(64, &e)));
    GB_ASSERT(!gb_failed(gb_envelope_put_text(e, "a", gb_bytes_c("{a}"))));
    struct gb_err check = gb_address_check(input);
    struct gb_err expand = gb_address_expand(input, e, &out);
    if (gb_failed(check)) check_error(check, GB_INVALID_CONFIG);
    if (gb_failed(expand)) check_error(expand, GB_ADDRESS_TEMPLATE);
    if (!gb_failed(check) && input.size > 0 && !gb_address_has_placeholders(input)) {
        GB_ASSERT(!gb_failed(expand) && gb_bytes_equal(gb_str_bytes(&out), input));
    }
    gb_str_deinit(&out);
    gb_envelope_unref(e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gb_bytes input = gb_bytes(data, size);
    check_topics(input);
    check_endpoint(input);
    check_address(input);
    return 0;
}
