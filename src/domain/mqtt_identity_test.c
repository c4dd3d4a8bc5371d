#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "domain/mqtt_topic.h"

static void identity(const char *url, const char *client_id, char out[GB_MQTT_IDENTITY_SIZE])
{
    struct gb_mqtt_endpoint e;
    assert_false(gb_failed(gb_mqtt_endpoint_parse(gb_bytes_c(url), &e)));
    gb_mqtt_storage_identity(&e, gb_bytes_c(client_id), out);
}

/* Spec 03 §3.4; the values were computed with Python's hashlib. A change here would make every
 * stored history unknown. */
static void histories_keep_their_identity(void **state)
{
    (void)state;
    static const struct identity_row {
        const char *url;
        const char *want;
    } rows[] = {
        {"tcp://broker:1883", "6014b0f73da71a31f203a02711dbf9989506f7dec8d82bce9a539d75f9103208"},
        {"mqtt://user:pw@BROKER#x",
         "6014b0f73da71a31f203a02711dbf9989506f7dec8d82bce9a539d75f9103208"},
        {"wss://broker/mqtt?x=1",
         "c88d17686be343c1afc3163d99a5abcab6478e0bd0a7f7d148951f66e9175576"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char got[GB_MQTT_IDENTITY_SIZE];
        identity(rows[i].url, "bridge-1", got);
        assert_string_equal(got, rows[i].want);
    }
}

static void other_brokers_and_clients_have_others(void **state)
{
    (void)state;
    char first[GB_MQTT_IDENTITY_SIZE];
    char other[GB_MQTT_IDENTITY_SIZE];
    identity("tcp://broker", "bridge-1", first);
    identity("tcp://broker", "bridge-2", other);
    assert_string_not_equal(first, other);
    identity("ssl://broker:1883", "bridge-1", other);
    assert_string_not_equal(first, other);
    identity("tcp://broker:1884", "bridge-1", other);
    assert_string_not_equal(first, other);
}

static void content_id(const char *client, const char *urls, const char *topic,
                       struct gb_bytes payload, char out[GB_MQTT_CONTENT_ID_SIZE])
{
    gb_mqtt_content_id(gb_bytes_c(client), gb_bytes_c(urls), gb_bytes_c(topic), payload, out);
}

static void content_ids_follow_the_published_vector(void **state)
{
    (void)state;
    char id[GB_MQTT_CONTENT_ID_SIZE];
    content_id("c", "tcp://broker:1883", "t", gb_bytes_c("p"), id); /* spec 03 §13 */
    assert_string_equal(id, "mqtt-sha256:J9sTAITCmYSboGvwPskEehxc2_vzajBMr1WEj0MBI1k");
    content_id("c", "tcp://a:1883\ntcp://b:1883", "", gb_bytes("\0\xFF", 2), id); /* hashlib */
    assert_string_equal(id, "mqtt-sha256:FfkJ0RDIMr7nH1Jxpddh3d99zw3LQ9NE7Jdh3RaRtPo");
}

static void content_ids_do_not_mix_their_parts(void **state)
{
    (void)state;
    char first[GB_MQTT_CONTENT_ID_SIZE];
    char other[GB_MQTT_CONTENT_ID_SIZE];
    content_id("ab", "u", "t", gb_bytes_c("p"), first);
    content_id("a", "bu", "t", gb_bytes_c("p"), other);
    assert_string_not_equal(first, other);
    content_id("ab", "u", "tp", gb_bytes(NULL, 0), other);
    assert_string_not_equal(first, other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(histories_keep_their_identity),
        cmocka_unit_test(other_brokers_and_clients_have_others),
        cmocka_unit_test(content_ids_follow_the_published_vector),
        cmocka_unit_test(content_ids_do_not_mix_their_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
