#include "domain/mqtt_topic.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

struct check_row {
    const char *text;
    const char *says; /* part of the message; NULL: accepted */
};

static void assert_rows(const struct check_row *rows, size_t count,
                        struct gb_err (*check)(struct gb_bytes text), enum gb_code code)
{
    for (size_t i = 0; i < count; i++) {
        struct gb_err err = check(gb_bytes_c(rows[i].text));
        bool as_wanted = rows[i].says == NULL
                             ? !gb_failed(err)
                             : err.code == code && strstr(err.message, rows[i].says) != NULL;
        if (!as_wanted) fail_msg("\"%s\": %s", rows[i].text, err.message);
    }
}

static void filters_are_checked(void **state)
{
    (void)state;
    static const struct check_row rows[] = {
        {"a", NULL},
        {"a/b/c", NULL},
        {"#", NULL},
        {"+", NULL},
        {"+/+/#", NULL},
        {"a/+/b", NULL},
        {"a/#", NULL},
        {"/", NULL},
        {"/a//b/", NULL},
        {"$SYS/#", NULL},
        {"Malm\xC3\xB6/+", NULL},
        {"$share/g/a", NULL},
        {"$share/g/a/#", NULL},
        {"$share/g/#", NULL},
        {"$share/g//", NULL},
        {"$shared/x", NULL},
        {"$share", NULL},
        {"", "is empty"},
        {"a/#/b", "'#' must be the last"},
        {"##", "'#' must be the last"},
        {"a#", "must fill its level"},
        {"a+", "must fill its level"},
        {"a\n+", "topic filter \"a?+\": "},
        {"+a", "must fill its level"},
        {"a/b+/c", "must fill its level"},
        {"++", "must fill its level"},
        {"+#", "must fill its level"},
        {"\xFF", "not valid UTF-8"},
        {"$share/", "$share/<group>/<filter>"},
        {"$share/g", "$share/<group>/<filter>"},
        {"$share/g/", "$share/<group>/<filter>"},
        {"$share//a", "group of a shared filter is empty"},
        {"$share/g+/a", "has a wildcard"},
        {"$share/#/a", "has a wildcard"},
        {"$share/g/a/#/b", "'#' must be the last"},
        {"$share/g/a+", "must fill its level"},
    };
    assert_rows(rows, sizeof rows / sizeof rows[0], gb_mqtt_filter_check, GB_INVALID_CONFIG);
}

static void publish_topics_are_checked(void **state)
{
    (void)state;
    static const struct check_row rows[] = {
        {"a", NULL},
        {"a/b", NULL},
        {"/a//b/", NULL}, /* MQTT has empty levels; templates have not */
        {"$SYS/x", NULL},
        {"Malm\xC3\xB6", NULL},
        {"$share", NULL},
        {"", "is empty"},
        {"a/+", "wildcards are for filters"},
        {"a#", "wildcards are for filters"},
        {"$share/g/a", "$share/ is for filters"},
        {"\xC3", "not valid UTF-8"},
    };
    assert_rows(rows, sizeof rows / sizeof rows[0], gb_mqtt_publish_topic_check, GB_INVALID_TOPIC);
    assert_int_equal(gb_mqtt_publish_topic_check(gb_bytes_c("+")).class_, GB_CLASS_REJECTED);
}

/* Spec 02 §8.3. */
static void addresses_have_no_empty_level(void **state)
{
    (void)state;
    static const struct check_row rows[] = {
        {"factory/A/events", NULL}, {"a", NULL},
        {"", "is empty"},           {"factory/A#/events", "wildcards are for filters"},
        {"/a", "empty level"},      {"a/", "empty level"},
        {"a//b", "empty level"},    {"/", "empty level"},
    };
    assert_rows(rows, sizeof rows / sizeof rows[0], gb_mqtt_address_check, GB_INVALID_TOPIC);
}

static void zero_bytes_and_lengths_are_checked(void **state)
{
    (void)state;
    static char text[GB_MQTT_TOPIC_MAX + 1];
    memset(text, 'a', sizeof text);
    struct gb_bytes longest = gb_bytes(text, GB_MQTT_TOPIC_MAX);
    struct gb_bytes too_long = gb_bytes(text, GB_MQTT_TOPIC_MAX + 1);
    struct gb_bytes zero = gb_bytes("a\0b", 3);
    assert_false(gb_failed(gb_mqtt_filter_check(longest)));
    assert_false(gb_failed(gb_mqtt_publish_topic_check(longest)));
    assert_int_equal(gb_mqtt_filter_check(too_long).code, GB_INVALID_CONFIG);
    assert_int_equal(gb_mqtt_publish_topic_check(too_long).code, GB_INVALID_TOPIC);
    assert_int_equal(gb_mqtt_filter_check(zero).code, GB_INVALID_CONFIG);
    assert_int_equal(gb_mqtt_publish_topic_check(zero).code, GB_INVALID_TOPIC);
    text[0] = '#'; /* a long value is cut in the message */
    assert_int_equal(gb_mqtt_filter_check(longest).code, GB_INVALID_CONFIG);
}

static void the_share_part_comes_off(void **state)
{
    (void)state;
    static const struct plain_row {
        const char *filter;
        bool shared;
        const char *plain;
    } rows[] = {
        {"a/#", false, "a/#"},
        {"$share/g/a/#", true, "a/#"},
        {"$share/g//a", true, "/a"},
        {"$SYS/#", false, "$SYS/#"},
        {"$share/g", true, ""},
        {"$share/", true, ""},
        {"$share/g/", true, ""},
        {"$sharex/g/a", false, "$sharex/g/a"},
        {"", false, ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct gb_bytes filter = gb_bytes_c(rows[i].filter);
        if (gb_mqtt_filter_is_shared(filter) != rows[i].shared ||
            !gb_bytes_equal_c(gb_mqtt_filter_plain(filter), rows[i].plain)) {
            fail_msg("\"%s\"", rows[i].filter);
        }
    }
}

/* Mostly the examples of MQTT 5 §4.7.1 and §4.7.2. */
static void filters_match_topics(void **state)
{
    (void)state;
    static const struct match_row {
        const char *filter, *topic;
        bool matches;
    } rows[] = {
        {"sport/tennis/player1/#", "sport/tennis/player1", true},
        {"sport/tennis/player1/#", "sport/tennis/player1/ranking", true},
        {"sport/tennis/player1/#", "sport/tennis/player1/score/wimbledon", true},
        {"sport/tennis/player1/#", "sport/tennis/player10", false},
        {"sport/#", "sport", true},
        {"sport/#", "sport/", true},
        {"sport/#", "sports", false},
        {"#", "a", true},
        {"#", "/", true},
        {"#", "a/b/c", true},
        {"sport/tennis/+", "sport/tennis/player1", true},
        {"sport/tennis/+", "sport/tennis/player1/ranking", false},
        {"sport/+", "sport", false},
        {"sport/+", "sport/", true},
        {"+/+", "/finance", true},
        {"/+", "/finance", true},
        {"+", "/finance", false},
        {"+", "finance", true},
        {"+/tennis/#", "sport/tennis", true},
        {"+/tennis/#", "sport/tennis/x/y", true},
        {"+/tennis/#", "sport/golf", false},
        {"+/#", "a", true},
        {"a/+/c", "a//c", true},
        {"a/+/c", "a/b/d", false},
        {"a/b", "a/b", true},
        {"a/b", "a/b/c", false},
        {"a/b/c", "a/b", false},
        {"a/b", "A/b", false},
        {"a", "a/", false},
        {"a/", "a", false},
        {"a//b", "a//b", true},
        {"#", "$SYS/x", false},
        {"+/x", "$SYS/x", false},
        {"$SYS/#", "$SYS/x", true},
        {"$SYS/+", "$SYS/x", true},
        {"a/+", "a/$b", true}, /* only a leading $ is special */
        {"$share/g/a/#", "a/b", true},
        {"$share/g/a/#", "$share/g/a/b", false},
        {"$share/g/#", "$SYS/x", false},
        {"$share/g/+", "x", true},
        {"", "a", false},
        {"a", "", false},
        {"#", "", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        bool got = gb_mqtt_filter_matches(gb_bytes_c(rows[i].filter), gb_bytes_c(rows[i].topic));
        if (got != rows[i].matches) fail_msg("\"%s\", \"%s\"", rows[i].filter, rows[i].topic);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(filters_are_checked),
        cmocka_unit_test(publish_topics_are_checked),
        cmocka_unit_test(addresses_have_no_empty_level),
        cmocka_unit_test(zero_bytes_and_lengths_are_checked),
        cmocka_unit_test(the_share_part_comes_off),
        cmocka_unit_test(filters_match_topics),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
