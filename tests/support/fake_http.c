#include "support/fake_http.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"

static void forget(struct fake_http *f, const struct gb_http_request *q)
{
    for (size_t i = 0; i < f->count; i++) {
        if (f->notes[i].held == q) f->notes[i].held = NULL;
    }
}

static void cancel(struct gb_op *op)
{
    struct fake_http *f = op->provider;
    f->cancels++;
    forget(f, GB_CONTAINER_OF(op, struct gb_http_request, op));
    gb_op_finish(op, (struct gb_err){.code = GB_CANCELLED});
}

static void give(struct gb_http_request *q, const struct fake_http_answer *a)
{
    if (a->unsent) q->sends = 0;
    if (a->resent && !q->send_once) q->sends++;
    if (a->status == 0) {
        gb_op_finish(&q->op, gb_err(a->fail, "scripted %s", gb_code_name(a->fail)));
        return;
    }
    q->status = a->status;
    gb_str_append_c(&q->answer, a->body == NULL ? "" : a->body);
    gb_str_append_c(&q->answer_headers, a->headers == NULL ? "" : a->headers);
    bool whole = !q->answer.failed && !q->answer_headers.failed;
    gb_op_finish(&q->op, whole ? gb_ok() : gb_err_no_memory("an HTTP answer"));
}

static void note(struct fake_http *f, struct gb_http_request *q)
{
    GB_ASSERT(f->count < FAKE_HTTP_MAX);
    struct fake_http_note *n = &f->notes[f->count];
    (void)snprintf(n->method, sizeof n->method, "%s", q->method);
    (void)snprintf(n->url, sizeof n->url, "%s", q->url);
    for (size_t i = 0; i < q->header_count; i++)
        gb_str_appendf(&n->headers, "%s: %s\n", q->headers[i].name, q->headers[i].value);
    gb_str_append_c(&n->headers, "");
    gb_str_append(&n->body, gb_str_bytes(&q->body));
    n->at_ns = gb_reactor_now_ns(f->reactor);
    n->deadline_ns = q->op.deadline_ns;
}

static void request(struct gb_http *h, struct gb_http_request *q, gb_done_fn *done, void *arg)
{
    struct fake_http *f = GB_CONTAINER_OF(h, struct fake_http, http);
    struct fake_http_answer a;
    if (f->serve != NULL) {
        a = f->serve(f->serve_arg, q);
    } else {
        a = f->next < f->queued ? f->queue[f->next++] : f->standing;
    }
    GB_ASSERT(q->op.deadline_ns != 0);
    gb_op_start(&q->op, f->reactor, done, arg, cancel, f);
    q->sends = 1;
    if (!f->no_notes) note(f, q);
    if (a.status == 0 && a.fail == GB_OK) {
        f->notes[f->count].held = q;
    } else {
        give(q, &a);
    }
    if (!f->no_notes) f->count++;
}

static const struct gb_http_ops ops = {.request = request, .close = NULL};

void fake_http_init(struct fake_http *f, struct gb_reactor *r)
{
    *f = (struct fake_http){.http = {&ops}, .reactor = r};
}

void fake_http_deinit(struct fake_http *f)
{
    for (size_t i = 0; i < f->count; i++) {
        gb_str_deinit(&f->notes[i].headers);
        gb_str_deinit(&f->notes[i].body);
    }
    *f = (struct fake_http){0};
}

void fake_http_add(struct fake_http *f, struct fake_http_answer answer)
{
    GB_ASSERT(f->queued < FAKE_HTTP_MAX);
    f->queue[f->queued++] = answer;
}

void fake_http_answer(struct fake_http *f, size_t index, struct fake_http_answer answer)
{
    GB_ASSERT(index < f->count && f->notes[index].held != NULL);
    struct gb_http_request *q = f->notes[index].held;
    f->notes[index].held = NULL;
    give(q, &answer);
}

bool fake_http_headers_have(const struct fake_http *f, size_t index, const char *text)
{
    GB_ASSERT(index < f->count);
    return strstr(f->notes[index].headers.data, text) != NULL;
}

bool fake_http_header_is(const struct fake_http *f, size_t index, const char *name,
                         const char *value)
{
    char line[512];
    (void)snprintf(line, sizeof line, "%s: %s\n", name, value);
    return fake_http_headers_have(f, index, line);
}

bool fake_http_body_has(const struct fake_http *f, size_t index, const char *text)
{
    GB_ASSERT(index < f->count);
    const struct gb_str *body = &f->notes[index].body;
    return body->size > 0 && memmem(body->data, body->size, text, strlen(text)) != NULL;
}
