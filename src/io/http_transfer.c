#include "io/http_transfer.h"

#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "base/duration.h"

enum {
    ANSWER_BYTES_MAX = 8 << 20,
    ANSWER_HEADERS_MAX = 64 << 10,
    HEADER_TEXT_MAX = 256 << 10,
    HOST_TEXT_MAX = 120
};
/* libcurl's own default would cut a longer deadline of ours. */
static const long connect_timeout_unset_ms = 24L * 3600 * 1000;

/* --- error texts --- */

struct gb_err gb_transfer_err(const struct gb_http_request *q, enum gb_code code, const char *why)
{
    const char *scheme_end = strstr(q->url, "://");
    const char *host = scheme_end == NULL ? q->url : scheme_end + 3;
    size_t size = strcspn(host, "/?#\\"); /* credentials may be in the query, too */
    for (size_t i = size; i > 0; i--) {
        if (host[i - 1] != '@') continue;
        host += i;
        size -= i;
        break;
    }
    int scheme_size = scheme_end == NULL ? 0 : (int)(scheme_end + 3 - q->url);
    if (scheme_size > 8) scheme_size = 0; /* "https://" */
    return gb_err(code, "%.10s %.*s%.*s: %s", q->method, scheme_size, q->url,
                  (int)(size > HOST_TEXT_MAX ? HOST_TEXT_MAX : size), host, why);
}

/* --- what libcurl calls during a transfer --- */

static size_t answer_limit(const struct gb_http_request *q)
{
    return q->answer_bytes_max == 0 ? ANSWER_BYTES_MAX : q->answer_bytes_max;
}

static size_t on_body(char *data, size_t size, size_t count, void *arg)
{
    struct gb_transfer *t = arg;
    struct gb_str *answer = &t->request->answer;
    size_t bytes = size * count; /* size is always 1 */
    if (bytes > answer_limit(t->request) - answer->size) {
        t->answer_too_large = true;
        return CURL_WRITEFUNC_ERROR;
    }
    gb_str_append(answer, gb_bytes(data, bytes));
    return answer->failed ? CURL_WRITEFUNC_ERROR : bytes;
}

static bool is_wanted(const struct gb_http_request *q, struct gb_bytes name)
{
    for (const char *const *want = q->want_headers; *want != NULL; want++) {
        if (gb_bytes_equal_nocase(name, gb_bytes_c(*want))) return true;
    }
    return false;
}

static bool is_space(uint8_t c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static void keep_header(struct gb_str *out, struct gb_bytes name, struct gb_bytes value)
{
    while (value.size > 0 && is_space(value.data[0]))
        value = gb_bytes(value.data + 1, value.size - 1);
    while (value.size > 0 && is_space(value.data[value.size - 1])) value.size--;
    for (size_t i = 0; i < name.size; i++) {
        char c = (char)name.data[i];
        gb_str_append_char(out, c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c);
    }
    gb_str_append_c(out, ": ");
    gb_str_append(out, value);
    gb_str_append_char(out, '\n');
}

static size_t on_header(char *data, size_t size, size_t count, void *arg)
{
    struct gb_transfer *t = arg;
    struct gb_http_request *q = t->request;
    size_t bytes = size * count;
    if (q->want_headers == NULL) return bytes;
    /* A status line starts the headers of the next answer: the ones before were of a 1xx. */
    if (gb_bytes_starts_with_nocase(gb_bytes(data, bytes), "HTTP/")) {
        gb_str_clear(&q->answer_headers);
        return bytes;
    }
    const char *colon = memchr(data, ':', bytes);
    if (colon == NULL) return bytes;
    struct gb_bytes name = gb_bytes(data, (size_t)(colon - data));
    if (is_wanted(q, name)) {
        keep_header(&q->answer_headers, name,
                    gb_bytes(colon + 1, (size_t)(data + bytes - colon - 1)));
    }
    return q->answer_headers.failed ? 0 : bytes;
}

/* Before the request goes to a connection, new or kept, and again when libcurl repeats it because
 * a kept one was dead. */
static int on_send(void *arg, char *remote_ip, char *local_ip, int remote_port, int local_port)
{
    struct gb_transfer *t = arg;
    struct gb_http_request *q = t->request;
    (void)remote_ip;
    (void)local_ip;
    (void)remote_port;
    (void)local_port;
    if (q->sends > 0 && q->send_once) return CURL_PREREQFUNC_ABORT;
    q->sends++;
    return CURL_PREREQFUNC_OK;
}

/* --- settings --- */

/* libcurl's setopt is variadic; these check the types and collect the first failure. */
static void set_long(CURLcode *rc, CURL *easy, CURLoption option, long value)
{
    if (*rc == CURLE_OK) *rc = curl_easy_setopt(easy, option, value);
}

static void set_pointer(CURLcode *rc, CURL *easy, CURLoption option, const void *value)
{
    if (*rc == CURLE_OK) *rc = curl_easy_setopt(easy, option, value);
}

static CURLcode set_functions(struct gb_transfer *t, const struct gb_transfer_cfg *cfg)
{
    CURLcode rc = curl_easy_setopt(t->easy, CURLOPT_WRITEFUNCTION, on_body);
    if (rc == CURLE_OK) rc = curl_easy_setopt(t->easy, CURLOPT_HEADERFUNCTION, on_header);
    if (rc == CURLE_OK)
        rc = curl_easy_setopt(t->easy, CURLOPT_OPENSOCKETFUNCTION, cfg->open_socket);
    if (rc == CURLE_OK) {
        rc = curl_easy_setopt(t->easy, CURLOPT_CLOSESOCKETFUNCTION, cfg->close_socket);
    }
    if (rc == CURLE_OK) rc = curl_easy_setopt(t->easy, CURLOPT_PREREQFUNCTION, on_send);
    set_pointer(&rc, t->easy, CURLOPT_PREREQDATA, t);
    set_pointer(&rc, t->easy, CURLOPT_WRITEDATA, t);
    set_pointer(&rc, t->easy, CURLOPT_HEADERDATA, t);
    set_pointer(&rc, t->easy, CURLOPT_PRIVATE, t);
    set_pointer(&rc, t->easy, CURLOPT_ERRORBUFFER, t->error_text);
    set_pointer(&rc, t->easy, CURLOPT_OPENSOCKETDATA, cfg->client);
    set_pointer(&rc, t->easy, CURLOPT_CLOSESOCKETDATA, cfg->client);
    return rc;
}

/* Exactly these: without a path libcurl would go on trusting the system's beside the file. */
static void set_trust(CURLcode *rc, CURL *easy, const char *ca_file, const char *ca_path)
{
    set_pointer(rc, easy, CURLOPT_CAINFO, ca_file);
    set_pointer(rc, easy, CURLOPT_CAPATH, ca_path);
}

static void set_client_trust(CURLcode *rc, CURL *easy, const struct gb_http_curl_cfg *cfg)
{
    if (cfg->ca_file != NULL || cfg->ca_path != NULL) {
        set_trust(rc, easy, cfg->ca_file, cfg->ca_path);
    } else {
        const curl_version_info_data *built_in = curl_version_info(CURLVERSION_NOW);
        set_trust(rc, easy, built_in->cainfo, built_in->capath);
    }
}

static CURLcode set_invariants(struct gb_transfer *t, const struct gb_http_curl_cfg *cfg)
{
    CURLcode rc = CURLE_OK;
    set_long(&rc, t->easy, CURLOPT_NOSIGNAL, 1);
    set_long(&rc, t->easy, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
    set_long(&rc, t->easy, CURLOPT_TCP_NODELAY, 1);
    set_long(&rc, t->easy, CURLOPT_TCP_KEEPALIVE, 1);
    set_long(&rc, t->easy, CURLOPT_FOLLOWLOCATION, 0);
    set_long(&rc, t->easy, CURLOPT_SSLVERSION, CURL_SSLVERSION_TLSv1_2);
    set_long(&rc, t->easy, CURLOPT_CONNECTTIMEOUT_MS, connect_timeout_unset_ms);
    /* A thread that still asks the DNS is left behind instead of waited for. */
    set_long(&rc, t->easy, CURLOPT_QUICK_EXIT, 1);
    set_pointer(&rc, t->easy, CURLOPT_PROTOCOLS_STR, "http,https");
    set_client_trust(&rc, t->easy, cfg);
    return rc;
}

struct gb_err gb_transfer_new(const struct gb_transfer_cfg *cfg, struct gb_transfer **out)
{
    struct gb_transfer *t = calloc(1, sizeof *t);
    if (t == NULL) return gb_err_no_memory("an HTTP transfer");
    t->client = cfg->client;
    t->header_text.size_max = HEADER_TEXT_MAX;
    t->connect_timeout_ms = connect_timeout_unset_ms;
    t->easy = curl_easy_init();
    CURLcode rc = t->easy == NULL ? CURLE_OUT_OF_MEMORY : set_functions(t, cfg);
    if (rc == CURLE_OK) rc = set_invariants(t, cfg->http);
    if (rc != CURLE_OK) {
        gb_transfer_free(t);
        return gb_err(GB_UNAVAILABLE, "HTTP client: %s", curl_easy_strerror(rc));
    }
    *out = t;
    return gb_ok();
}

void gb_transfer_free(struct gb_transfer *t)
{
    if (t == NULL) return;
    if (t->easy != NULL) curl_easy_cleanup(t->easy);
    gb_str_deinit(&t->header_text);
    free(t);
}

/* --- one request --- */

/* A line break in a name, a value or the method would let it end the header early. */
static bool is_clean(const char *text, bool token)
{
    for (const unsigned char *p = (const unsigned char *)text; *p != '\0'; p++) {
        if ((*p < ' ' && *p != '\t') || *p == 0x7F) return false;
        if (token && (*p <= ' ' || *p == ':')) return false;
    }
    return !token || text[0] != '\0';
}

/* Without these libcurl would wait for "100 Continue" and claim types that nobody gave. */
static const char *const unless_given[] = {"Expect", "Content-Type", "Accept"};
enum { UNLESS_GIVEN_COUNT = sizeof unless_given / sizeof unless_given[0] };

static bool has_header(const struct gb_http_request *q, const char *name)
{
    for (size_t i = 0; i < q->header_count; i++) {
        if (strcasecmp(q->headers[i].name, name) == 0) return true;
    }
    return false;
}

static void add_header_text(struct gb_str *text, const char *name, const char *value)
{
    gb_str_append_c(text, name);
    /* "Name:" means "no such header" to libcurl, "Name;" one with an empty value. */
    if (value == NULL) {
        gb_str_append_c(text, ":");
    } else if (value[0] == '\0') {
        gb_str_append_c(text, ";");
    } else {
        gb_str_append_c(text, ": ");
        gb_str_append_c(text, value);
    }
    gb_str_append(text, gb_bytes("", 1));
}

/* Builds libcurl's list in our own nodes: no allocation per header and request. */
static struct gb_err build_headers(struct gb_transfer *t, const struct gb_http_request *q)
{
    GB_ASSERT(q->header_count <= GB_HTTP_HEADERS_MAX);
    gb_str_clear(&t->header_text);
    size_t count = 0;
    for (size_t i = 0; i < q->header_count; i++, count++) {
        if (!is_clean(q->headers[i].name, true) || !is_clean(q->headers[i].value, false)) {
            return gb_transfer_err(q, GB_INVALID_CONFIG,
                                   "a header's name or value has a control character");
        }
        add_header_text(&t->header_text, q->headers[i].name, q->headers[i].value);
    }
    for (size_t i = 0; i < UNLESS_GIVEN_COUNT; i++) {
        if (has_header(q, unless_given[i])) continue;
        add_header_text(&t->header_text, unless_given[i], NULL);
        count++;
    }
    struct gb_err err = gb_str_check(&t->header_text, "HTTP headers");
    if (gb_failed(err)) return err;
    char *at = t->header_text.data;
    for (size_t i = 0; i < count; i++) {
        t->headers[i].data = at;
        t->headers[i].next = i + 1 < count ? &t->headers[i + 1] : NULL;
        at += strlen(at) + 1;
    }
    return gb_ok();
}

static void set_method(CURLcode *rc, struct gb_transfer *t, const struct gb_http_request *q)
{
    bool head = strcmp(q->method, "HEAD") == 0;
    bool has_body = q->body.size > 0 || strcmp(q->method, "POST") == 0 ||
                    strcmp(q->method, "PUT") == 0 || strcmp(q->method, "PATCH") == 0;
    if (has_body && !head) {
        /* The body stays where it is; libcurl reads it from there. */
        if (*rc == CURLE_OK) {
            *rc = curl_easy_setopt(t->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)q->body.size);
        }
        set_pointer(rc, t->easy, CURLOPT_POSTFIELDS, q->body.data == NULL ? "" : q->body.data);
    }
    if (t->method != NULL && strcmp(t->method, q->method) == 0 && has_body) return;
    if (head) {
        set_long(rc, t->easy, CURLOPT_NOBODY, 1);
    } else if (has_body) {
        set_long(rc, t->easy, CURLOPT_POST, 1);
    } else {
        set_long(rc, t->easy, CURLOPT_HTTPGET, 1);
    }
    set_pointer(rc, t->easy, CURLOPT_CUSTOMREQUEST, q->method);
}

static void set_connect_timeout(CURLcode *rc, struct gb_transfer *t, int64_t timeout_ns)
{
    long ms = connect_timeout_unset_ms;
    if (timeout_ns > 0 && (timeout_ns - 1) / GB_MS + 1 < ms)
        ms = (long)((timeout_ns - 1) / GB_MS + 1);
    if (ms == t->connect_timeout_ms) return;
    set_long(rc, t->easy, CURLOPT_CONNECTTIMEOUT_MS, ms);
    t->connect_timeout_ms = ms;
}

struct gb_err gb_transfer_prepare(struct gb_transfer *t, struct gb_http_request *q,
                                  const struct gb_http_curl_cfg *cfg)
{
    if (!is_clean(q->method, true)) {
        return gb_err(GB_INVALID_CONFIG, "an HTTP method can't be empty or have spaces");
    }
    if (!gb_bytes_starts_with_nocase(gb_bytes_c(q->url), "http://") &&
        !gb_bytes_starts_with_nocase(gb_bytes_c(q->url), "https://")) {
        return gb_transfer_err(q, GB_INVALID_CONFIG, "the URL must start with http:// or https://");
    }
    struct gb_err err = build_headers(t, q);
    if (gb_failed(err)) return err;
    t->request = q;
    t->error_text[0] = '\0';
    t->answer_too_large = false;
    q->status = 0;
    gb_str_clear(&q->answer);
    gb_str_clear(&q->answer_headers);
    q->answer.size_max = answer_limit(q);
    q->answer_headers.size_max = ANSWER_HEADERS_MAX;

    CURLcode rc = curl_easy_setopt(t->easy, CURLOPT_URL, q->url);
    set_pointer(&rc, t->easy, CURLOPT_HTTPHEADER, &t->headers[0]);
    set_method(&rc, t, q);
    set_connect_timeout(&rc, t, q->connect_timeout_ns);
    if (q->ca_file != NULL) {
        set_trust(&rc, t->easy, q->ca_file, NULL);
        t->own_ca_file = true;
    } else if (t->own_ca_file) {
        set_client_trust(&rc, t->easy, cfg);
        t->own_ca_file = false;
    }
    /* The method is compared by content with the next one, so it must not be borrowed longer. */
    t->method = rc == CURLE_OK && strcmp(q->method, "POST") == 0 ? "POST" : NULL;
    if (rc != CURLE_OK) return gb_transfer_err(q, GB_UNAVAILABLE, curl_easy_strerror(rc));
    return gb_ok();
}

/* --- outcome --- */

static enum gb_code code_of(CURLcode code)
{
    switch ((int)code) { /* most of libcurl's codes belong to other protocols */
    case CURLE_OPERATION_TIMEDOUT:
        return GB_TIMEOUT;
    case CURLE_OUT_OF_MEMORY:
        return GB_UNAVAILABLE;
    case CURLE_URL_MALFORMAT:
    case CURLE_SSL_CACERT_BADFILE:
        return GB_INVALID_CONFIG;
    default:
        return GB_CONNECTION_LOST;
    }
}

struct gb_err gb_transfer_outcome(struct gb_transfer *t, CURLcode code)
{
    struct gb_http_request *q = t->request;
    long connects = 0;
    (void)curl_easy_getinfo(t->easy, CURLINFO_NUM_CONNECTS, &connects); /* a valid handle: OK */
    t->connects += connects;
    if (code == CURLE_OK) {
        long status = 0;
        (void)curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
        q->status = (int)status;
        return gb_ok();
    }
    if (t->answer_too_large) {
        char why[80];
        (void)snprintf(why, sizeof why, "the answer is larger than the limit of %zu bytes",
                       answer_limit(q));
        return gb_transfer_err(q, GB_PAYLOAD_TOO_LARGE, why);
    }
    if (q->answer_headers.failed) {
        return gb_transfer_err(q, GB_PAYLOAD_TOO_LARGE, "the answer's headers are too large");
    }
    if (q->answer.failed) return gb_err_no_memory("an HTTP answer");
    const char *why = t->error_text[0] != '\0' ? t->error_text : curl_easy_strerror(code);
    return gb_transfer_err(q, code_of(code), why);
}
