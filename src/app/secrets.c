#include "app/secrets.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "adapters/aws/aws_client.h"
#include "app/dynamodb.h"
#include "base/assert.h"
#include "base/digest.h"
#include "base/json_read.h"
#include "base/json_write.h"
#include "base/log.h"
#include "io/file.h"

enum { FILE_BYTES_MAX = 1 << 20 };
static const uint64_t fetch_timeout_ns = 30 * 1000000000ull;

struct secret {
    const char *kind, *id; /* of the first entry that names it, for messages */
    const char *uri;
    enum gb_credential_scheme scheme;
    struct gb_bytes path;
    struct gb_credential_set set;
};
struct gb_secrets {
    struct gb_secrets_cfg cfg;
    struct secret *items;
    size_t count, next;
    struct gb_op *op;
    struct gb_http *http; /* only while parameters are fetched */
    struct gb_aws_credentials *credentials;
    struct gb_aws_client *client;
    struct gb_aws_call call;
    struct gb_op close_http;
    struct gb_err result;
};

static void fetch_next(struct gb_secrets *s);

/* --- which there are --- */

static struct gb_err add(struct gb_secrets *s, const char *kind, const char *id, const char *uri)
{
    if (uri == NULL || gb_secrets_find(s, uri) != NULL) return gb_ok();
    struct secret *item = &s->items[s->count];
    *item = (struct secret){.kind = kind, .id = id, .uri = uri};
    struct gb_err err = gb_credential_uri_parse(uri, &item->scheme, &item->path);
    if (gb_failed(err)) return gb_err_in(err, "%s %s", kind, id);
    s->count++;
    return gb_ok();
}

static struct gb_err collect(struct gb_secrets *s)
{
    const struct gb_blueprint *b = s->cfg.blueprint;
    struct gb_err err = gb_ok();
    s->items = calloc(b->session_count + b->sender_count + 1, sizeof *s->items);
    if (s->items == NULL) return gb_err_no_memory("credentials");
    for (size_t i = 0; i < b->session_count && !gb_failed(err); i++) {
        if (b->sessions[i].in_use)
            err = add(s, "session", b->sessions[i].id, b->sessions[i].credentials_uri);
    }
    for (size_t i = 0; i < b->sender_count && !gb_failed(err); i++) {
        if (b->senders[i].transport.value == GB_BP_SQS)
            err = add(s, "sender", b->senders[i].id, b->senders[i].sqs.credentials_uri);
    }
    return err;
}

struct gb_err gb_secrets_new(const struct gb_secrets_cfg *cfg, struct gb_secrets **out)
{
    struct gb_secrets *s = calloc(1, sizeof *s);
    if (s == NULL) return gb_err_no_memory("credentials");
    s->cfg = *cfg;
    struct gb_err err = collect(s);
    if (gb_failed(err)) {
        gb_secrets_free(s);
    } else {
        *out = s;
    }
    return err;
}

void gb_secrets_free(struct gb_secrets *s)
{
    if (s == NULL) return;
    GB_ASSERT(s->op == NULL);
    for (size_t i = 0; i < s->count; i++) gb_credential_set_deinit(&s->items[i].set);
    free(s->items);
    free(s);
}

const struct gb_credential_set *gb_secrets_find(const struct gb_secrets *s, const char *uri)
{
    if (uri == NULL) return NULL;
    for (size_t i = 0; i < s->count; i++)
        if (gb_bytes_equal_c(gb_bytes_c(uri), s->items[i].uri)) return &s->items[i].set;
    return NULL;
}

/* --- files --- */

/* Each text about one leaves its path out: it is part of the URI (spec 04 D8). */
static struct gb_err about_file(struct gb_err err)
{
    if (err.code == GB_NOT_FOUND)
        return gb_err(err.code, "no such file below -credentials-dir; its name ends in .json");
    if (err.code == GB_NOT_AUTHORIZED)
        return gb_err(err.code, "access to the file is denied; check owner and mode");
    if (err.code == GB_PAYLOAD_TOO_LARGE)
        return gb_err(GB_INVALID_PAYLOAD, "the file is larger than %d bytes", FILE_BYTES_MAX);
    return gb_err(GB_UNAVAILABLE, "the file can't be read");
}

static void warn_if_open(const struct secret *item, const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0 || (st.st_mode & (S_IRWXG | S_IRWXO)) == 0) return;
    GB_LOG(GB_LOG_WARN, "the file of credentials_uri is open to others; chmod 600 it",
           gb_lf_str(item->kind, item->id));
}

static struct gb_err read_file(struct gb_secrets *s, struct secret *item)
{
    struct gb_str text = {0};
    char *path = gb_asprintf("%s/%.*s.json", s->cfg.credentials_dir, (int)item->path.size,
                             (const char *)item->path.data);
    if (path == NULL) return gb_err_no_memory("credentials");
    struct gb_err err = gb_file_read(path, FILE_BYTES_MAX, &text);
    if (gb_failed(err)) {
        err = about_file(err);
    } else {
        warn_if_open(item, path);
        err = gb_credential_set_read_file(gb_str_bytes(&text), &item->set);
    }
    if (text.data != NULL) gb_wipe(text.data, text.size);
    gb_str_deinit(&text);
    free(path);
    return err;
}

/* --- parameters (SSM) --- */

/* Without the service's own text, which quotes the name of the parameter (spec 04 D8). */
static struct gb_err classify(const struct gb_aws_error *e)
{
    struct gb_err err = gb_aws_classify_default(e);
    if (err.code == GB_NOT_FOUND) return gb_err(GB_NOT_FOUND, "SSM has no such parameter");
    struct gb_err plain = gb_err(err.code, "SSM answered %s", gb_aws_error_code(e));
    plain.retry_after_ns = err.retry_after_ns;
    return plain;
}

static struct gb_err open_client(struct gb_secrets *s)
{
    struct gb_aws_env env = gb_aws_env_process();
    struct gb_str region = {0};
    struct gb_str endpoint = {0};
    struct gb_reactor *reactor = gb_loop_reactor(s->cfg.loop);
    struct gb_err err = gb_app_http_new(s->cfg.loop, &s->http);
    if (!gb_failed(err)) err = gb_aws_region(&env, NULL, NULL, &region);
    if (!gb_failed(err)) err = gb_aws_endpoint(&env, NULL, "ssm", region.data, &endpoint);
    const struct gb_aws_credentials_cfg credentials = {
        .reactor = reactor, .http = s->http, .env = env, .instance_id = s->cfg.instance_id};
    if (!gb_failed(err)) err = gb_aws_credentials_new(&credentials, &s->credentials);
    const struct gb_aws_client_cfg client = {
        .reactor = reactor,
        .http = s->http,
        .credentials = s->credentials,
        .service = "ssm",
        .target_prefix = "AmazonSSM",
        .content_type = "application/x-amz-json-1.1",
        .region = region.data,
        .endpoint = endpoint.data,
        .attempt_timeout_ns = 5 * INT64_C(1000000000),
        .classify = classify,
    };
    if (!gb_failed(err)) err = gb_aws_client_new(&client, &s->client);
    gb_str_deinit(&region);
    gb_str_deinit(&endpoint);
    return err;
}

/* {"Parameter": {"Value": "..."}} */
static struct gb_err read_answer(struct gb_bytes answer, struct gb_str *value)
{
    struct gb_json_reader r;
    gb_json_init(&r, answer);
    bool inside = false;
    if (gb_json_next(&r) != GB_JSON_OBJECT_BEGIN) return gb_err(GB_UNAVAILABLE, "no JSON");
    while (gb_json_next(&r) == GB_JSON_KEY) {
        if (!inside && gb_json_text_is(&r, "Parameter")) {
            if (gb_json_next(&r) != GB_JSON_OBJECT_BEGIN) break;
            inside = true;
        } else if (inside && gb_json_text_is(&r, "Value")) {
            if (gb_json_next(&r) != GB_JSON_STRING) break;
            /* Room for all of it: a buffer that grows leaves pieces of the secret behind. */
            if (gb_str_reserve(value, r.text.size) == NULL || !gb_json_string(&r, value, NULL))
                return gb_err_no_memory("credentials");
            return gb_ok();
        } else if (!gb_json_skip(&r)) {
            break;
        }
    }
    return gb_err(GB_UNAVAILABLE, "the answer of SSM has no Parameter.Value");
}

static struct gb_err in_entry(const struct secret *item, struct gb_err err)
{
    return gb_err_in(err, "%s %s: credentials_uri (%s://...)", item->kind, item->id,
                     gb_credential_scheme_name(item->scheme));
}

static void parameter_fetched(struct gb_op *op, void *arg)
{
    struct gb_secrets *s = arg;
    struct secret *item = &s->items[s->next];
    struct gb_str value = {0};
    struct gb_err err = op->result;
    if (!gb_failed(err)) err = read_answer(gb_str_bytes(&s->call.answer), &value);
    if (!gb_failed(err)) err = gb_credential_set_read_parameter(gb_str_bytes(&value), &item->set);
    if (value.data != NULL) gb_wipe(value.data, value.size);
    if (s->call.answer.data != NULL) gb_wipe(s->call.answer.data, s->call.answer.size);
    gb_str_deinit(&value);
    if (gb_failed(err) && err.code != GB_CANCELLED) err = in_entry(item, err);
    if (!gb_failed(s->result)) s->result = err; /* else cancelled */
    s->next++;
    fetch_next(s);
}

static struct gb_err fetch_parameter(struct gb_secrets *s, const struct secret *item)
{
    struct gb_json_writer w;
    struct gb_str name = {0};
    struct gb_err err = s->client == NULL ? open_client(s) : gb_ok();
    if (gb_failed(err)) return err;
    gb_str_append_char(&name, '/');
    gb_str_append(&name, item->path);
    gb_str_clear(&s->call.body);
    gb_json_w_init(&w, &s->call.body);
    gb_json_w_object(&w);
    gb_json_w_key(&w, "Name");
    gb_json_w_string(&w, gb_str_bytes(&name));
    gb_json_w_key(&w, "WithDecryption");
    gb_json_w_bool(&w, true);
    gb_json_w_object_end(&w);
    if (name.failed) s->call.body.failed = true;
    gb_str_deinit(&name);
    err = gb_str_check(&s->call.body, "SSM request");
    if (gb_failed(err)) return err;
    s->call.action = "GetParameter";
    s->call.op.deadline_ns = gb_reactor_now_ns(gb_loop_reactor(s->cfg.loop)) + fetch_timeout_ns;
    gb_aws_call_start(s->client, &s->call, parameter_fetched, s);
    return gb_ok();
}

/* --- all of them --- */

/* What only they show of a session, while the document before still runs. */
static struct gb_err check_use(const struct gb_secrets *s)
{
    const struct gb_blueprint *b = s->cfg.blueprint;
    for (size_t i = 0; i < b->session_count; i++) {
        const struct gb_bp_session *session = &b->sessions[i];
        const struct gb_credential_set *set = gb_secrets_find(s, session->credentials_uri);
        if (set == NULL || !session->in_use) continue;
        const struct gb_bp_mqtt_session *m = &session->mqtt;
        struct gb_err err = gb_blueprint_check_credentials(
            session, m->username == NULL ? set->username : m->username,
            m->password == NULL ? set->password : m->password);
        if (gb_failed(err)) return gb_err_in(err, "session %s: credentials_uri", session->id);
    }
    return gb_ok();
}

static void finish(struct gb_secrets *s)
{
    struct gb_op *op = s->op;
    s->op = NULL;
    gb_op_finish(op, s->result);
}

static void http_closed(struct gb_op *op, void *arg)
{
    (void)op;
    finish(arg);
}

static void close_client(struct gb_secrets *s)
{
    gb_aws_call_deinit(&s->call);
    s->call = (struct gb_aws_call){0};
    gb_aws_client_free(s->client);
    gb_aws_credentials_unref(s->credentials);
    s->client = NULL;
    s->credentials = NULL;
    struct gb_http *http = s->http;
    s->http = NULL;
    if (http == NULL) {
        finish(s);
    } else {
        http->ops->close(http, &s->close_http, http_closed, s);
    }
}

/* Files at once; a parameter goes on in parameter_fetched. */
static void fetch_next(struct gb_secrets *s)
{
    while (!gb_failed(s->result) && s->next < s->count) {
        struct secret *item = &s->items[s->next];
        bool file = item->scheme == GB_CREDENTIAL_FILE;
        struct gb_err err = file ? read_file(s, item) : fetch_parameter(s, item);
        if (gb_failed(err)) s->result = in_entry(item, err);
        if (!file && !gb_failed(err)) return;
        s->next++;
    }
    if (!gb_failed(s->result)) s->result = check_use(s);
    close_client(s);
}

static void cancel(struct gb_op *op)
{
    struct gb_secrets *s = op->provider;
    if (!gb_failed(s->result)) s->result = gb_err(GB_CANCELLED, "cancelled");
    gb_op_cancel(&s->call.op);
}

static void warn_about_dir(const struct gb_secrets *s)
{
    struct stat st;
    for (size_t i = 0; i < s->count; i++) {
        if (s->items[i].scheme != GB_CREDENTIAL_FILE) continue;
        if (stat(s->cfg.credentials_dir, &st) == 0 && S_ISDIR(st.st_mode)) return;
        GB_LOG(GB_LOG_WARN, "-credentials-dir is no directory: file:// URIs can't be resolved",
               gb_lf_str("directory", s->cfg.credentials_dir));
        return;
    }
}

void gb_secrets_resolve(struct gb_secrets *s, struct gb_op *op, gb_done_fn *done, void *arg)
{
    gb_op_start(op, gb_loop_reactor(s->cfg.loop), done, arg, cancel, s);
    s->op = op;
    warn_about_dir(s);
    fetch_next(s);
}
