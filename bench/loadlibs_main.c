/* The floor of `make bench` for memory: a process that only loads the libraries the bridge is
 * linked with, and prints its own resident memory: {"rss_kib":..,"anon_kib":..}. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include <curl/curl.h>
#include <microhttpd.h>
#include <openssl/crypto.h>
#include <openssl/ssl.h>
#include <pcre2.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>
#include <yaml.h>

#include "bench_process.h"

static unsigned long status_kib(const char *key)
{
    char line[256];
    unsigned long kib = 0;
    FILE *f = fopen("/proc/self/status", "re");
    if (f == NULL) gb_bench_die("/proc/self/status can't be read");
    while (fgets(line, sizeof line, f) != NULL)
        if (strncmp(line, key, strlen(key)) == 0) kib = strtoul(line + strlen(key) + 1, NULL, 10);
    if (fclose(f) != 0 || kib == 0) gb_bench_die("/proc/self/status: no %s", key);
    return kib;
}

int main(void)
{
    /* One call into each, or the linker would leave it out. */
    char pcre2[64];
    size_t texts = strlen(curl_version()) + strlen(MHD_get_version()) +
                   strlen(OpenSSL_version(OPENSSL_VERSION)) + strlen(sqlite3_libversion()) +
                   strlen(uv_version_string()) + strlen(yaml_get_version_string());
    if (pcre2_config(PCRE2_CONFIG_VERSION, pcre2) < 0 || texts == 0 || TLS_method() == NULL)
        gb_bench_die("a library does not know its version");
    gb_bench_say("{\"rss_kib\":%lu,\"anon_kib\":%lu}", status_kib("VmRSS"), status_kib("RssAnon"));
    return 0;
}
