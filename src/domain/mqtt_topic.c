#include "domain/mqtt_topic.h"

#include <string.h>

static const char share[] = "$share/";
enum { SHARE_SIZE = sizeof share - 1, SHOWN_MAX = 120 };

/* For messages: at most SHOWN_MAX bytes of a text that may not be printable. */
#define GB_SHOWN(b) (int)((b).size > SHOWN_MAX ? SHOWN_MAX : (b).size), (const char *)(b).data

bool gb_mqtt_filter_is_shared(struct gb_bytes filter)
{
    return filter.size >= SHARE_SIZE && memcmp(filter.data, share, SHARE_SIZE) == 0;
}

struct gb_bytes gb_mqtt_filter_plain(struct gb_bytes filter)
{
    if (!gb_mqtt_filter_is_shared(filter)) return filter;
    const uint8_t *group = filter.data + SHARE_SIZE;
    const uint8_t *slash = memchr(group, '/', filter.size - SHARE_SIZE);
    if (slash == NULL) return gb_bytes(NULL, 0);
    return gb_bytes(slash + 1, (size_t)(filter.data + filter.size - slash - 1));
}

static struct gb_err check_text(struct gb_bytes text, enum gb_code code, const char *what)
{
    if (text.size == 0) return gb_err(code, "%s is empty", what);
    if (text.size > GB_MQTT_TOPIC_MAX)
        return gb_err(code, "%s has %zu bytes, at most %d are allowed", what, text.size,
                      GB_MQTT_TOPIC_MAX);
    if (!gb_utf8_valid(text)) return gb_err(code, "%s is not valid UTF-8", what);
    if (memchr(text.data, '\0', text.size) != NULL) return gb_err(code, "%s holds U+0000", what);
    return gb_ok();
}

/* MQTT 5 §4.7.1: # is a whole level and the last one, + is a whole level. */
static struct gb_err check_wildcards(struct gb_bytes f, struct gb_bytes whole)
{
    for (size_t i = 0; i < f.size; i++) {
        uint8_t c = f.data[i];
        if (c != '#' && c != '+') continue;
        bool starts = i == 0 || f.data[i - 1] == '/';
        bool ends = i + 1 == f.size || f.data[i + 1] == '/';
        if (c == '#' && i + 1 != f.size)
            return gb_err(GB_INVALID_CONFIG, "filter \"%.*s\": # must be the last character",
                          GB_SHOWN(whole));
        if (!starts || !ends)
            return gb_err(GB_INVALID_CONFIG, "filter \"%.*s\": %c must stand alone in its level",
                          GB_SHOWN(whole), c);
    }
    return gb_ok();
}

struct gb_err gb_mqtt_filter_check(struct gb_bytes filter)
{
    struct gb_err err = check_text(filter, GB_INVALID_CONFIG, "the filter");
    if (gb_failed(err)) return err;
    if (!gb_mqtt_filter_is_shared(filter)) return check_wildcards(filter, filter);
    struct gb_bytes plain = gb_mqtt_filter_plain(filter);
    size_t group_size =
        plain.data == NULL ? 0 : (size_t)(plain.data - filter.data) - SHARE_SIZE - 1;
    if (plain.size == 0 || group_size == 0)
        return gb_err(GB_INVALID_CONFIG,
                      "filter \"%.*s\" is malformed: $share/<group>/<filter> needs both parts",
                      GB_SHOWN(filter));
    const uint8_t *group = filter.data + SHARE_SIZE;
    if (memchr(group, '+', group_size) != NULL || memchr(group, '#', group_size) != NULL)
        return gb_err(GB_INVALID_CONFIG, "filter \"%.*s\": the share group may not hold + or #",
                      GB_SHOWN(filter));
    return check_wildcards(plain, filter);
}

/* Spec 03 §3.2 and 02 §8.3: no wildcards, no $share/, no empty level is checked by the template's user. */
struct gb_err gb_mqtt_publish_topic_check(struct gb_bytes topic)
{
    struct gb_err err = check_text(topic, GB_INVALID_TOPIC, "the publish topic");
    if (gb_failed(err)) return err;
    if (memchr(topic.data, '+', topic.size) != NULL || memchr(topic.data, '#', topic.size) != NULL)
        return gb_err(GB_INVALID_TOPIC, "publish topic \"%.*s\" holds a wildcard", GB_SHOWN(topic));
    if (gb_mqtt_filter_is_shared(topic))
        return gb_err(GB_INVALID_TOPIC, "publish topic \"%.*s\" begins with $share/",
                      GB_SHOWN(topic));
    return gb_ok();
}

bool gb_mqtt_filter_matches(struct gb_bytes filter, struct gb_bytes topic)
{
    struct gb_bytes f = gb_mqtt_filter_plain(filter);
    if (f.size == 0 || topic.size == 0) return false;
    if (topic.data[0] == '$' && (f.data[0] == '#' || f.data[0] == '+')) return false;
    size_t i = 0, k = 0;
    while (i < f.size) {
        if (f.data[i] == '#') return true;
        if (f.data[i] == '+') {
            while (k < topic.size && topic.data[k] != '/') k++;
            i++;
        } else if (k < topic.size && f.data[i] == topic.data[k]) {
            i++;
            k++;
            continue;
        } else {
            /* "a/#" also matches "a" (MQTT 5 §4.7.1.2). */
            return k == topic.size && f.size - i == 2 && f.data[i] == '/' && f.data[i + 1] == '#';
        }
    }
    return k == topic.size;
}
