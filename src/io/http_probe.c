#include "io/http_probe.h"

#include <curl/curl.h>

static size_t drop(char *data, size_t size, size_t count, void *arg)
{
    (void)data;
    (void)arg;
    return size * count;
}

struct gb_err gb_http_probe(const char *url, long timeout_ms, unsigned *status)
{
    long code = 0;
    CURL *c = curl_easy_init();
    if (c == NULL) return gb_err_no_memory("HTTP client");
    CURLcode rc = curl_easy_setopt(c, CURLOPT_URL, url); /* the others only set fields */
    (void)curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, timeout_ms);
    (void)curl_easy_setopt(c, CURLOPT_NOPROXY, "*");
    (void)curl_easy_setopt(c, CURLOPT_SSL_VERIFYPEER, 0L);
    (void)curl_easy_setopt(c, CURLOPT_SSL_VERIFYHOST, 0L);
    (void)curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, drop);
    if (rc == CURLE_OK) rc = curl_easy_perform(c);
    if (rc == CURLE_OK) rc = curl_easy_getinfo(c, CURLINFO_RESPONSE_CODE, &code);
    curl_easy_cleanup(c);
    if (rc != CURLE_OK) return gb_err(GB_UNAVAILABLE, "%.200s: %s", url, curl_easy_strerror(rc));
    *status = (unsigned)code;
    return gb_ok();
}
