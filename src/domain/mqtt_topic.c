#include "domain/mqtt_topic.h"

static const char share[] = "$share/";
enum { SHARE_SIZE = sizeof share - 1, SHOWN_MAX = 120 };

bool gb_mqtt_filter_is_shared(struct gb_bytes filter)
{
    return filter.size >= SHARE_SIZE && memcmp(filter.data, share, SHARE_SIZE) == 0;
}

struct gb_bytes gb_mqtt_filter_plain(struct gb_bytes filter)
{
    if (!gb_mqtt_filter_is_shared(filter)) return filter;
    struct gb_bytes rest = gb_bytes(filter.data + SHARE_SIZE, filter.size - SHARE_SIZE);
    const uint8_t *slash = rest.size == 0 ? NULL : memchr(rest.data, '/', rest.size);
    if (slash == NULL) return gb_bytes(NULL, 0);
    return gb_bytes(slash + 1, (size_t)(rest.data + rest.size - slash - 1));
}

static bool holds(struct gb_bytes text, char c)
{
    return text.size > 0 && memchr(text.data, c, text.size) != NULL;
}

/* `what` "value": `rule`. */
static struct gb_err refuse(enum gb_code code, const char *what, struct gb_bytes value,
                            const char *rule)
{
    char shown[SHOWN_MAX];
    gb_bytes_show(value, shown, sizeof shown);
    return gb_err(code, "%s \"%s\": %s", what, shown, rule);
}

/* What topics and filters share (MQTT 5 §4.7.3). */
static struct gb_err check_text(enum gb_code code, const char *what, struct gb_bytes text)
{
    if (text.size == 0) return gb_err(code, "%s is empty", what);
    if (text.size > GB_MQTT_TOPIC_MAX) {
        return gb_err(code, "%s has %zu bytes; at most %d are allowed", what, text.size,
                      GB_MQTT_TOPIC_MAX);
    }
    if (!gb_utf8_valid(text)) return gb_err(code, "%s is not valid UTF-8", what);
    if (holds(text, '\0')) return gb_err(code, "%s holds U+0000", what);
    return gb_ok();
}

/* What is wrong with the wildcards of a filter without its share part (MQTT 5 §4.7.1), or NULL. */
static const char *wildcard_fault(struct gb_bytes f)
{
    for (size_t i = 0; i < f.size; i++) {
        uint8_t c = f.data[i];
        if (c != '#' && c != '+') continue;
        bool starts = i == 0 || f.data[i - 1] == '/';
        bool ends = i + 1 == f.size || f.data[i + 1] == '/';
        if (c == '#' && i + 1 != f.size) return "'#' must be the last character";
        if (!starts || !ends) return "a wildcard must fill its level, as in a/+/b or a/#";
    }
    return NULL;
}

/* What is wrong with $share/<group>/<filter> (MQTT 5 §4.8.2), or NULL. */
static const char *share_fault(struct gb_bytes filter)
{
    struct gb_bytes plain = gb_mqtt_filter_plain(filter);
    if (plain.size == 0) return "a shared filter is $share/<group>/<filter>";
    size_t group_size = (size_t)(plain.data - filter.data) - SHARE_SIZE - 1;
    struct gb_bytes group = gb_bytes(filter.data + SHARE_SIZE, group_size);
    if (group.size == 0) return "the group of a shared filter is empty";
    if (holds(group, '+') || holds(group, '#'))
        return "the group of a shared filter has a wildcard";
    return NULL;
}

struct gb_err gb_mqtt_filter_check(struct gb_bytes filter)
{
    struct gb_err err = check_text(GB_INVALID_CONFIG, "topic filter", filter);
    if (gb_failed(err)) return err;
    const char *fault = gb_mqtt_filter_is_shared(filter) ? share_fault(filter) : NULL;
    if (fault == NULL) fault = wildcard_fault(gb_mqtt_filter_plain(filter));
    return fault == NULL ? gb_ok() : refuse(GB_INVALID_CONFIG, "topic filter", filter, fault);
}

struct gb_err gb_mqtt_publish_topic_check(struct gb_bytes topic)
{
    struct gb_err err = check_text(GB_INVALID_TOPIC, "publish topic", topic);
    if (gb_failed(err)) return err;
    if (holds(topic, '+') || holds(topic, '#')) {
        return refuse(GB_INVALID_TOPIC, "publish topic", topic, "wildcards are for filters");
    }
    if (gb_mqtt_filter_is_shared(topic)) {
        return refuse(GB_INVALID_TOPIC, "publish topic", topic, "$share/ is for filters");
    }
    return gb_ok();
}

static bool has_empty_level(struct gb_bytes topic)
{
    bool at_start = true; /* of a level */
    for (size_t i = 0; i < topic.size; i++) {
        bool slash = topic.data[i] == '/';
        if (slash && at_start) return true;
        at_start = slash;
    }
    return at_start;
}

struct gb_err gb_mqtt_address_check(struct gb_bytes address)
{
    struct gb_err err = gb_mqtt_publish_topic_check(address);
    if (gb_failed(err) || !has_empty_level(address)) return err;
    return refuse(GB_INVALID_TOPIC, "publish topic", address, "it has an empty level");
}

/* `f` is what is left of the filter where it first differs from a topic. */
static bool rest_matches_end(struct gb_bytes f)
{
    return f.size == 2 && f.data[0] == '/' && f.data[1] == '#'; /* "a/#" matches "a", too */
}

bool gb_mqtt_filter_matches(struct gb_bytes filter, struct gb_bytes topic)
{
    struct gb_bytes f = gb_mqtt_filter_plain(filter);
    if (f.size == 0 || topic.size == 0) return false;
    if (topic.data[0] == '$' && (f.data[0] == '#' || f.data[0] == '+')) return false;
    size_t t = 0;
    for (size_t i = 0; i < f.size; i++) {
        if (f.data[i] == '#') return true;
        if (f.data[i] == '+') {
            while (t < topic.size && topic.data[t] != '/') t++;
        } else if (t < topic.size && f.data[i] == topic.data[t]) {
            t++;
        } else {
            return t == topic.size && rest_matches_end(gb_bytes(f.data + i, f.size - i));
        }
    }
    return t == topic.size;
}
