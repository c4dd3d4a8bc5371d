#include "domain/mqtt_topic.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* Spec 03 §3.3. */
static void urls_have_one_canonical_form(void **state)
{
    (void)state;
    static const struct url_row {
        const char *url;
        const char *printed;
        enum gb_mqtt_scheme scheme;
        const char *host;
        const char *path;
    } rows[] = {
        {"tcp://broker:1883", "tcp://broker:1883", GB_MQTT_TCP, "broker", ""},
        {"mqtt://broker", "tcp://broker:1883", GB_MQTT_TCP, "broker", ""},
        {"broker", "tcp://broker:1883", GB_MQTT_TCP, "broker", ""},
        {"broker:2000", "tcp://broker:2000", GB_MQTT_TCP, "broker", ""},
        {"ssl://broker", "ssl://broker:8883", GB_MQTT_TLS, "broker", ""},
        {"tls://broker", "ssl://broker:8883", GB_MQTT_TLS, "broker", ""},
        {"mqtts://broker", "ssl://broker:8883", GB_MQTT_TLS, "broker", ""},
        {"mqtt+ssl://broker", "ssl://broker:8883", GB_MQTT_TLS, "broker", ""},
        {"tcps://broker", "ssl://broker:8883", GB_MQTT_TLS, "broker", ""},
        {"ws://broker", "ws://broker:80", GB_MQTT_WS, "broker", "/"},
        {"ws://broker/", "ws://broker:80", GB_MQTT_WS, "broker", "/"},
        {"wss://broker/mqtt", "wss://broker:443/mqtt", GB_MQTT_WSS, "broker", "/mqtt"},
        {"wss://broker/mqtt?a=b&c", "wss://broker:443/mqtt?a=b&c", GB_MQTT_WSS, "broker",
         "/mqtt?a=b&c"},
        {"ws://broker?x=1", "ws://broker:80/?x=1", GB_MQTT_WS, "broker", "/?x=1"},
        {"ws://broker/p#frag?x", "ws://broker:80/p", GB_MQTT_WS, "broker", "/p"},
        {"ws://broker#frag", "ws://broker:80", GB_MQTT_WS, "broker", "/"},
        {"ws://broker/a@b:c", "ws://broker:80/a@b:c", GB_MQTT_WS, "broker", "/a@b:c"},
        {"TCP://BroKer.Example.COM:1883", "tcp://broker.example.com:1883", GB_MQTT_TCP,
         "broker.example.com", ""},
        {"MQTT+SSL://b", "ssl://b:8883", GB_MQTT_TLS, "b", ""},
        {"tcp://broker:1883/path?query#frag", "tcp://broker:1883", GB_MQTT_TCP, "broker", ""},
        {"tcp://user:secret@broker:1", "tcp://broker:1", GB_MQTT_TCP, "broker", ""},
        {"tcp://us@er:se@cret@broker", "tcp://broker:1883", GB_MQTT_TCP, "broker", ""},
        {"user:secret@broker", "tcp://broker:1883", GB_MQTT_TCP, "broker", ""},
        {"tcp://10.0.0.1:65535", "tcp://10.0.0.1:65535", GB_MQTT_TCP, "10.0.0.1", ""},
        {"tcp://[::1]", "tcp://[::1]:1883", GB_MQTT_TCP, "::1", ""},
        {"ssl://[FE80::A%25eth0]:99", "ssl://[fe80::a%25eth0]:99", GB_MQTT_TLS, "fe80::a%25eth0",
         ""},
        {"tcp://my_broker-1", "tcp://my_broker-1:1883", GB_MQTT_TCP, "my_broker-1", ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct gb_mqtt_endpoint e;
        struct gb_err err = gb_mqtt_endpoint_parse(gb_bytes_c(rows[i].url), &e);
        if (gb_failed(err)) fail_msg("%s: %s", rows[i].url, err.message);
        char printed[GB_MQTT_ENDPOINT_TEXT_MAX];
        gb_mqtt_endpoint_print(&e, printed);
        assert_string_equal(printed, rows[i].printed);
        assert_int_equal(e.scheme, rows[i].scheme);
        assert_string_equal(e.host, rows[i].host);
        assert_string_equal(e.path, rows[i].path);

        struct gb_mqtt_endpoint again; /* the canonical form is its own */
        assert_false(gb_failed(gb_mqtt_endpoint_parse(gb_bytes_c(printed), &again)));
        assert_int_equal(e.scheme, again.scheme);
        assert_int_equal(e.port, again.port);
        assert_string_equal(e.host, again.host);
        assert_string_equal(e.path, again.path);
    }
}

static void bad_urls_are_refused_without_showing_them(void **state)
{
    (void)state;
    static const struct bad_row {
        const char *url;
        const char *says;
    } rows[] = {
        {"", "it is empty"},
        {"tcp://", "host is missing"},
        {"tcp://:1883", "host is missing"},
        {"tcp://user:secret@", "host is missing"},
        {"://broker", "unknown scheme"},
        {"http://secret.example", "unknown scheme \"http\""},
        {"mqtt5://broker", "unknown scheme \"mqtt5\""},
        {"tcp ://broker", "no host name has"},
        {"tcp://broker:", "port is not a number"},
        {"tcp://broker:0", "port is not a number"},
        {"tcp://broker:65536", "port is not a number"},
        {"tcp://broker:999999", "port is not a number"},
        {"tcp://broker:18x3", "port is not a number"},
        {"tcp://broker:-1", "port is not a number"},
        {"tcp://user:secret/x@broker", "port is not a number"},
        {"tcp://bro ker", "no host name has"},
        {"tcp://bro%6ber", "no host name has"},
        {"tcp://m\xC3\xBCnchen", "no host name has"},
        {"tcp://::1", "host is missing"},
        {"tcp://[::1", "not closed"},
        {"tcp://[::1]x", "text after ']'"},
        {"tcp://[broker]", "IPv6"},
        {"tcp://[]", "host is missing"},
        {"tcp://[::g/]", "not closed"},
        {"tcp://[::1/]:1", "not closed"},
        {"ws://broker/a b", "%-escapes"},
        {"ws://broker/\xC3\xBC", "%-escapes"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct gb_mqtt_endpoint e = {.port = 7};
        struct gb_err err = gb_mqtt_endpoint_parse(gb_bytes_c(rows[i].url), &e);
        if (err.code != GB_INVALID_CONFIG || strstr(err.message, rows[i].says) == NULL) {
            fail_msg("%s: %s: %s", rows[i].url, gb_code_name(err.code), err.message);
        }
        assert_null(strstr(err.message, "secret"));
        assert_int_equal(e.port, 7);
    }
}

static struct gb_err parse_long(const char *before, size_t fill)
{
    char url[1200];
    size_t size = strlen(before);
    assert_true(size + fill <= sizeof url);
    memset(url, 'a', sizeof url);
    for (size_t i = 0; i < size; i++) url[i] = before[i];
    struct gb_mqtt_endpoint e;
    struct gb_err err = gb_mqtt_endpoint_parse(gb_bytes(url, size + fill), &e);
    if (gb_failed(err)) return err;
    char printed[GB_MQTT_ENDPOINT_TEXT_MAX];
    gb_mqtt_endpoint_print(&e, printed);
    assert_int_equal(strlen(e.host) + strlen(e.path), fill + (e.path[0] != '\0' ? 2 : 0));
    return err;
}

static void lengths_are_bounded(void **state)
{
    (void)state;
    assert_false(gb_failed(parse_long("tcp://", 255)));
    assert_int_equal(parse_long("tcp://", 256).code, GB_INVALID_CONFIG);
    assert_false(gb_failed(parse_long("ws://h/", 1022)));
    assert_int_equal(parse_long("ws://h/", 1023).code, GB_INVALID_CONFIG);
    struct gb_mqtt_endpoint e;
    assert_int_equal(gb_mqtt_endpoint_parse(gb_bytes("h\0st", 4), &e).code, GB_INVALID_CONFIG);
    assert_int_equal(gb_mqtt_endpoint_parse(gb_bytes(NULL, 0), &e).code, GB_INVALID_CONFIG);
}

static void tls_follows_from_the_scheme(void **state)
{
    (void)state;
    assert_false(gb_mqtt_scheme_is_tls(GB_MQTT_TCP));
    assert_true(gb_mqtt_scheme_is_tls(GB_MQTT_TLS));
    assert_false(gb_mqtt_scheme_is_tls(GB_MQTT_WS));
    assert_true(gb_mqtt_scheme_is_tls(GB_MQTT_WSS));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(urls_have_one_canonical_form),
        cmocka_unit_test(bad_urls_are_refused_without_showing_them),
        cmocka_unit_test(lengths_are_bounded),
        cmocka_unit_test(tls_follows_from_the_scheme),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
