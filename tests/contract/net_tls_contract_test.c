#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "contract/net_fixture.h"

/* What TLS verifies and how it says so; what gb_tls_check refuses. */

/* Made once for all tests: EC keys are quick, but many. */
static struct {
    struct gb_test_cert ca, other_ca, leaf, expired, future, named, client, other_client;
    char *ca_file, *cert_file, *key_file, *garbage_file;
} m;

static char *write_file(const char *text)
{
    char *path = gb_strdup("/tmp/gb_tls_test_XXXXXX");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    assert_int_equal(close(fd), 0);
    return path;
}

static void make(struct gb_test_cert *out, const char *name, const char *ip,
                 const struct gb_test_cert *issuer)
{
    gb_test_cert_make(&(struct gb_test_cert_cfg){name, ip, issuer, -60, 3600}, out);
}

static int set_up_material(void **state)
{
    (void)state;
    make(&m.ca, "Test CA", NULL, NULL);
    make(&m.other_ca, "Other CA", NULL, NULL);
    make(&m.leaf, "localhost", "127.0.0.1", &m.ca);
    make(&m.named, "broker.example", NULL, &m.ca);
    make(&m.client, "client", NULL, &m.ca);
    make(&m.other_client, "client", NULL, &m.other_ca);
    gb_test_cert_make(&(struct gb_test_cert_cfg){"localhost", "127.0.0.1", &m.ca, -7200, -3600},
                      &m.expired);
    gb_test_cert_make(&(struct gb_test_cert_cfg){"localhost", "127.0.0.1", &m.ca, 3600, 7200},
                      &m.future);
    m.ca_file = write_file(m.ca.cert_pem);
    m.cert_file = write_file(m.client.cert_pem);
    m.key_file = write_file(m.client.key_pem);
    m.garbage_file = write_file("no PEM");
    return 0;
}

static int tear_down_material(void **state)
{
    (void)state;
    struct gb_test_cert *certs[] = {&m.ca,     &m.other_ca, &m.leaf,   &m.expired,
                                    &m.future, &m.named,    &m.client, &m.other_client};
    for (size_t i = 0; i < sizeof certs / sizeof certs[0]; i++) gb_test_cert_deinit(certs[i]);
    char *files[] = {m.ca_file, m.cert_file, m.key_file, m.garbage_file};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        unlink(files[i]);
        free(files[i]);
    }
    return 0;
}

/* Greets first: with TLS 1.3 the client hears of a refused certificate only after its handshake. */
static void greet(struct gb_peer_app *a)
{
    (void)gb_peer_app_write(a, "hi", 2);
    char c;
    (void)gb_peer_app_read(a, &c, 1);
}

static bool has_greeting_or_end(void)
{
    return gb_net.received.size == 2 || gb_net.closed > 0;
}

struct verify_row {
    const char *name, *host;
    const struct gb_test_cert *server, *client_ca;
    struct gb_tls_cfg tls;
    const char *message; /* NULL = accepted */
};

static void run_row(const struct verify_row *row, bool ws)
{
    print_message("row: %s\n", row->name);
    gb_net_fixture_start(&(struct gb_net_fixture_cfg){.tls = true,
                                                      .ws = ws,
                                                      .app = greet,
                                                      .server_cert = row->server,
                                                      .client_ca = row->client_ca});
    gb_net.tls_cfg = row->tls;
    gb_net_dial(row->host);
    gb_net_run_until(has_greeting_or_end);
    if (row->message == NULL) {
        assert_int_equal(gb_net.received.size, 2);
        gb_net_close_and_expect(GB_CANCELLED);
    } else {
        print_message("     %s\n", gb_net.reason.message);
        assert_int_equal(gb_net.reason.code, GB_CONNECTION_LOST);
        assert_non_null(strstr(gb_net.reason.message, row->message));
        assert_non_null(strstr(gb_net.reason.message, row->host));
    }
    gb_net_fixture_stop();
}

static void run_rows(const struct verify_row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) run_row(&rows[i], false);
}

static void what_the_client_verifies(void **state)
{
    (void)state;
    const char *ca = m.ca.cert_pem;
    const char *other = m.other_ca.cert_pem;
    char *both = gb_asprintf("# first\n%s# second\n%s", other, ca);
    const struct verify_row rows[] = {
        {"name", "localhost", &m.leaf, NULL, {.ca_pem = ca}, NULL},
        {"address", "127.0.0.1", &m.leaf, NULL, {.ca_pem = ca}, NULL},
        {"authority from a file", "localhost", &m.leaf, NULL, {.ca_file = m.ca_file}, NULL},
        {"text wins over file",
         "localhost",
         &m.leaf,
         NULL,
         {.ca_pem = ca, .ca_file = m.garbage_file},
         NULL},
        {"second authority of two", "localhost", &m.leaf, NULL, {.ca_pem = both}, NULL},
        {"other authority",
         "localhost",
         &m.leaf,
         NULL,
         {.ca_pem = other},
         "certificate verify failed: unable to get local issuer certificate for host localhost"},
        {"system's authorities",
         "localhost",
         &m.leaf,
         NULL,
         {0},
         "certificate verify failed: unable to get local issuer certificate"},
        {"other name",
         "localhost",
         &m.named,
         NULL,
         {.ca_pem = ca},
         "certificate verify failed: hostname mismatch for host localhost"},
        {"other address",
         "127.0.0.1",
         &m.named,
         NULL,
         {.ca_pem = ca},
         "certificate verify failed: IP address mismatch for host 127.0.0.1"},
        {"expired",
         "localhost",
         &m.expired,
         NULL,
         {.ca_pem = ca},
         "certificate verify failed: certificate has expired"},
        {"not yet valid",
         "localhost",
         &m.future,
         NULL,
         {.ca_pem = ca},
         "certificate verify failed: certificate is not yet valid"},
        {"not verified",
         "localhost",
         &m.named,
         NULL,
         {.ca_pem = other, .insecure_skip_verify = true},
         NULL},
    };
    run_rows(rows, sizeof rows / sizeof rows[0]);
    run_row(&rows[0], true); /* over WebSocket */
    run_row(&rows[5], true);
    free(both);
}

static void what_the_server_verifies(void **state)
{
    (void)state;
    const char *ca = m.ca.cert_pem;
    const struct verify_row rows[] = {
        {"client certificate",
         "localhost",
         &m.leaf,
         &m.ca,
         {.ca_pem = ca, .cert_pem = m.client.cert_pem, .key_pem = m.client.key_pem},
         NULL},
        {"client certificate from files",
         "localhost",
         &m.leaf,
         &m.ca,
         {.ca_pem = ca, .cert_file = m.cert_file, .key_file = m.key_file},
         NULL},
        {"no client certificate",
         "localhost",
         &m.leaf,
         &m.ca,
         {.ca_pem = ca},
         "alert certificate required"},
        {"client certificate of another authority",
         "localhost",
         &m.leaf,
         &m.ca,
         {.ca_pem = ca, .cert_pem = m.other_client.cert_pem, .key_pem = m.other_client.key_pem},
         "alert unknown ca"},
        {"refused without verification",
         "localhost",
         &m.named,
         &m.ca,
         {.insecure_skip_verify = true},
         "alert certificate required"},
    };
    run_rows(rows, sizeof rows / sizeof rows[0]);
}

static void talk_garbage(struct gb_peer_conn *c, void *arg)
{
    (void)arg;
    (void)gb_peer_write(c, "HTTP/1.1 400 Bad Request\r\n\r\n", 28);
    char data[1000];
    while (gb_peer_read(c, data, sizeof data) > 0) {
    }
}

static void end_at_once(struct gb_peer_conn *c, void *arg)
{
    (void)arg;
    char data[100]; /* a part of the ClientHello, then FIN or RST */
    (void)gb_peer_read(c, data, sizeof data);
}

static void failed_handshakes(void **state)
{
    (void)state;
    gb_peer_fn *const peers[] = {talk_garbage, end_at_once};
    for (size_t i = 0; i < 2; i++) {
        gb_net_fixture_start(&(struct gb_net_fixture_cfg){.tls = true, .raw = peers[i]});
        gb_net_dial("localhost");
        gb_net_run_until(gb_net_is_closed);
        print_message("     %s\n", gb_net.reason.message);
        assert_int_equal(gb_net.connected, 0);
        assert_int_equal(gb_net.reason.code, GB_CONNECTION_LOST);
        if (i == 0) assert_non_null(strstr(gb_net.reason.message, "TLS handshake: wrong version"));
        gb_net_fixture_stop();
    }
}

/* gb_tls_check and dial refuse the same. */
static void refused_material(void **state)
{
    (void)state;
    const char *cert = m.client.cert_pem;
    const char *key = m.client.key_pem;
    char *damaged = gb_strdup(m.ca.cert_pem);
    damaged[100] = '!';
    char *half = gb_asprintf("%s%s", m.ca.cert_pem, damaged);
    static const char encrypted[] =
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIGjMF8GCSqGSIb3DQEFDTBS\n"
        "-----END ENCRYPTED PRIVATE KEY-----\n";
    const struct {
        const char *name;
        struct gb_tls_cfg cfg;
        const char *message; /* NULL = fine */
    } rows[] = {
        {"nothing", {0}, NULL},
        {"all", {.ca_pem = m.ca.cert_pem, .cert_pem = cert, .key_pem = key}, NULL},
        {"authority: no PEM", {.ca_pem = "x"}, "tls.ca_cert_pem: holds no PEM certificate"},
        {"authority: empty", {.ca_pem = ""}, "tls.ca_cert_pem: holds no PEM certificate"},
        {"authority: damaged",
         {.ca_pem = damaged},
         "tls.ca_cert_pem: a PEM certificate is damaged"},
        {"authority: second damaged", {.ca_pem = half}, "a PEM certificate is damaged"},
        {"authority: a key", {.ca_pem = key}, "tls.ca_cert_pem: holds no PEM certificate"},
        {"no such file",
         {.ca_file = "/nonexistent.pem"},
         "tls.ca_cert_file: /nonexistent.pem: no such file"},
        {"folder", {.ca_file = "/tmp"}, "tls.ca_cert_file: /tmp: is a directory"},
        {"file without PEM", {.ca_file = m.garbage_file}, m.garbage_file},
        {"certificate alone", {.cert_pem = cert}, "tls.cert_pem and tls.key_pem come together"},
        {"key alone", {.key_pem = key}, "tls.cert_pem and tls.key_pem come together"},
        {"half a pair beside files",
         {.cert_pem = cert, .cert_file = m.cert_file, .key_file = m.key_file},
         "tls.cert_pem and tls.key_pem come together"},
        {"certificate file alone",
         {.cert_file = m.cert_file},
         "tls.cert_file and tls.key_file come together"},
        {"key file alone",
         {.key_file = m.key_file},
         "tls.cert_file and tls.key_file come together"},
        {"other key",
         {.cert_pem = cert, .key_pem = m.leaf.key_pem},
         "tls.key_pem: the private key does not belong"},
        {"encrypted key",
         {.cert_pem = cert, .key_pem = encrypted},
         "tls.key_pem: is not an unencrypted PEM private key"},
        {"key as certificate",
         {.cert_pem = key, .key_pem = key},
         "tls.cert_pem: holds no PEM certificate"},
        {"swapped files", {.cert_file = m.key_file, .key_file = m.cert_file}, "tls.cert_file: "},
    };
    gb_net_fixture_start(&(struct gb_net_fixture_cfg){.tls = true, .app = greet});
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        print_message("row: %s\n", rows[i].name);
        struct gb_err err = gb_tls_check(&rows[i].cfg);
        assert_int_equal(err.code, rows[i].message == NULL ? GB_OK : GB_INVALID_CONFIG);
        if (rows[i].message == NULL) continue;
        print_message("     %s\n", err.message);
        assert_non_null(strstr(err.message, rows[i].message));
        gb_net.tls_cfg = rows[i].cfg;
        assert_int_equal(gb_net_try_dial("localhost").code, GB_INVALID_CONFIG);
    }
    assert_int_equal(gb_tls_check(NULL).code, GB_OK);
    gb_net_fixture_stop();
    free(damaged);
    free(half);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_the_client_verifies),
        cmocka_unit_test(what_the_server_verifies),
        cmocka_unit_test(failed_handshakes),
        cmocka_unit_test(refused_material),
    };
    return cmocka_run_group_tests_name("net_tls", tests, set_up_material, tear_down_material);
}
