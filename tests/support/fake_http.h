#ifndef GB_TESTS_SUPPORT_FAKE_HTTP_H
#define GB_TESTS_SUPPORT_FAKE_HTTP_H

#include "io/http.h"

/* An HTTP client by script: it notes each request and answers from a queue, then by the standing
 * answer. It takes over no deadline: the test fails a held request when it wants to.
 * Owns:   its notes (texts are copied); answers' texts are borrowed until they are used.
 * Thread: loop thread only.
 * Errors: asserts when more than FAKE_HTTP_MAX requests are noted or answers queued. */
enum { FAKE_HTTP_MAX = 128 };

struct fake_http_answer {
    int status;          /* 0: fail with `fail`, or hold when that is GB_OK */
    const char *body;    /* NULL = "" */
    const char *headers; /* "name: value\n" lines, NULL = none */
    enum gb_code fail;
    bool unsent; /* it failed before it reached the peer */
    bool resent; /* sent a second time, where the request allows that */
};
struct fake_http_note {
    char method[8];
    char url[256];
    struct gb_str headers; /* "Name: value\n" */
    struct gb_str body;
    uint64_t at_ns, deadline_ns;
    struct gb_http_request *held; /* NULL: answered */
};
struct fake_http {
    struct gb_http http;
    struct gb_reactor *reactor;
    struct fake_http_answer queue[FAKE_HTTP_MAX];
    size_t next, queued;
    struct fake_http_answer standing;
    struct fake_http_note notes[FAKE_HTTP_MAX];
    size_t count;
    unsigned cancels;
    bool no_notes; /* benchmarks: only count */
    /* When set, it answers each request instead of queue and standing answer. */
    struct fake_http_answer (*serve)(void *arg, const struct gb_http_request *q);
    void *serve_arg;
};
void fake_http_init(struct fake_http *f, struct gb_reactor *r);
void fake_http_deinit(struct fake_http *f);
void fake_http_add(struct fake_http *f, struct fake_http_answer answer);
/* Answers the held request `index`. */
void fake_http_answer(struct fake_http *f, size_t index, struct fake_http_answer answer);
/* The value of a header of request `index` up to the line's end, or NULL. */
bool fake_http_header_is(const struct fake_http *f, size_t index, const char *name,
                         const char *value);
bool fake_http_body_has(const struct fake_http *f, size_t index, const char *text);
bool fake_http_headers_have(const struct fake_http *f, size_t index, const char *text);

#endif
