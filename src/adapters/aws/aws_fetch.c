#include <stdlib.h>
#include <string.h>

#include "adapters/aws/aws_document.h"
#include "adapters/aws/aws_provider.h"
#include "base/assert.h"

static void wipe_text(char *text)
{
    if (text != NULL) gb_wipe(text, strlen(text));
    free(text);
}

static void wipe_str(struct gb_str *s)
{
    if (s->data != NULL) gb_wipe(s->data, s->capacity);
    gb_str_deinit(s);
    *s = (struct gb_str){0};
}

void gb_aws_set_wipe(struct gb_aws_set *s)
{
    wipe_text(s->access_key_id);
    wipe_text(s->secret_access_key);
    wipe_text(s->session_token);
    *s = (struct gb_aws_set){0};
}

struct gb_err gb_aws_set_copy(struct gb_aws_set *s, struct gb_bytes access_key_id,
                              struct gb_bytes secret_access_key, struct gb_bytes session_token,
                              int64_t expires_ms)
{
    struct gb_aws_set made = {.expires_ms = expires_ms};
    made.access_key_id = gb_bytes_dup(access_key_id);
    made.secret_access_key = gb_bytes_dup(secret_access_key);
    if (session_token.size > 0) made.session_token = gb_bytes_dup(session_token);
    if (made.access_key_id == NULL || made.secret_access_key == NULL ||
        (session_token.size > 0 && made.session_token == NULL)) {
        gb_aws_set_wipe(&made);
        return gb_err_no_memory("credential set");
    }
    gb_aws_set_wipe(s);
    *s = made;
    return gb_ok();
}

struct gb_sigv4_credentials gb_aws_set_view(const struct gb_aws_set *s)
{
    return (struct gb_sigv4_credentials){s->access_key_id, s->secret_access_key, s->session_token};
}

static void release_http(struct gb_aws_fetch *f)
{
    wipe_str(&f->http.body);
    wipe_str(&f->http.answer);
    gb_http_deinit(&f->http);
}

void gb_aws_fetch_deinit(struct gb_aws_fetch *f)
{
    release_http(f);
    wipe_str(&f->url);
    wipe_str(&f->token);
    wipe_str(&f->date);
    wipe_str(&f->authorization);
    gb_aws_set_wipe(&f->set);
    gb_aws_files_deinit(&f->files);
    *f = (struct gb_aws_fetch){0};
}

void gb_aws_fetch_request(struct gb_aws_fetch *f, const char *method, const char *url)
{
    release_http(f);
    f->http.method = method;
    f->http.url = url;
    f->http.header_count = 0;
    f->http.connect_timeout_ns = 0;
    f->http.answer_bytes_max = 65536;
    f->once = false;
}

void gb_aws_fetch_header(struct gb_aws_fetch *f, const char *name, const char *value)
{
    GB_ASSERT(f->http.header_count < GB_HTTP_HEADERS_MAX);
    f->http.headers[f->http.header_count++] = (struct gb_http_header){name, value};
}

enum gb_aws_step gb_aws_fetch_fail(struct gb_aws_fetch *f, struct gb_err err)
{
    f->err = err;
    return GB_AWS_DONE;
}

const char *gb_aws_fetch_env(const struct gb_aws_fetch *f, const char *name)
{
    const char *value = f->cfg->env.get(f->cfg->env.ctx, name);
    return value == NULL || value[0] == '\0' ? NULL : value;
}

struct gb_err gb_aws_fetch_answer(const struct gb_aws_fetch *f, const char *what)
{
    if (gb_failed(f->http.op.result)) return gb_err_in(f->http.op.result, "%s", what);
    if (f->http.status < 200 || f->http.status > 299)
        return gb_err(GB_TEMPORARY_AUTH_FAILURE, "%s answered HTTP %d", what, f->http.status);
    return gb_ok();
}

struct gb_err gb_aws_fetch_document(struct gb_aws_fetch *f, const char *what)
{
    struct gb_aws_document d = {0};
    struct gb_err err = gb_aws_fetch_answer(f, what);
    if (gb_failed(err)) return err;
    err = gb_aws_document_parse(gb_str_bytes(&f->http.answer), &d);
    if (!gb_failed(err)) {
        err = gb_aws_set_copy(&f->set, gb_str_bytes(&d.access_key_id),
                              gb_str_bytes(&d.secret_access_key), gb_str_bytes(&d.token),
                              d.expires_ms);
    }
    gb_aws_document_deinit(&d);
    return gb_failed(err) ? gb_err_in(err, "%s", what) : err;
}
