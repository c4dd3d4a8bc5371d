#include "app/monitor.h"

#include <stdlib.h>
#include <string.h>

#include "api/monitor.h"
#include "app/bootstrap.h"
#include "app/document.h"
#include "app/monitor_look.h"
#include "base/log.h"
#include "io/file.h"
#include "io/http_probe.h"

enum { CONNECTIONS_MAX = 64, BODY_BYTES_MAX = 1 << 16 };
static const char default_address[] = ":8081";

struct gb_app_monitor {
    struct gb_app_monitor_cfg cfg;
    struct gb_monitor api;
    struct gb_monitor_room room;
    struct gb_http_server *server; /* NULL: the default address is taken */
};

static void look(void *arg, struct gb_monitor_snapshot *out)
{
    struct gb_app_monitor *m = arg;
    gb_monitor_look(&m->room, m->cfg.supervisor, m->cfg.metrics, out);
}

struct gb_app_monitor_at gb_app_monitor_at(const struct gb_options *o,
                                           const struct gb_bootstrap *bootstrap,
                                           const struct gb_blueprint *b)
{
    if (bootstrap != NULL && bootstrap->monitor_addr != NULL)
        return (struct gb_app_monitor_at){bootstrap->monitor_addr, true, "monitor_addr"};
    if (b != NULL && b->http.node != NULL && b->http.monitor_addr != NULL) {
        bool written = strcmp(b->http.monitor_addr, default_address) != 0;
        return (struct gb_app_monitor_at){b->http.monitor_addr, written, "http.monitor_addr"};
    }
    if (o->monitor_addr != NULL)
        return (struct gb_app_monitor_at){o->monitor_addr, true, "-monitor-addr"};
    return (struct gb_app_monitor_at){default_address, false, "-monitor-addr"};
}

/* The document's block has taken in what the environment gives (spec 08 §2). */
static struct gb_err read_keys(struct gb_app_monitor *m, const struct gb_blueprint *b)
{
    bool block = b != NULL && b->http.node != NULL;
    const char *admin = block ? b->http.admin_api_key : NULL;
    const char *monitor = block ? b->http.monitor_api_key : NULL;
    const char *const texts[] = {
        admin != NULL ? admin : gb_env("GOBRIDGE_ADMIN_API_KEY"),
        monitor != NULL ? monitor : gb_env("GOBRIDGE_MONITOR_API_KEY"),
    };
    return gb_keys_new(texts, 2, &m->api.keys);
}

static struct gb_err open_server(struct gb_app_monitor *m, const struct gb_app_monitor_at *at)
{
    const struct gb_http_server_cfg cfg = {
        .loop = m->cfg.loop,
        .address = at->address,
        .connections_max = CONNECTIONS_MAX,
        .body_max = BODY_BYTES_MAX,
        .request_ns = 10 * INT64_C(1000000000), /* spec 08 §4 */
        .idle_ns = 120 * INT64_C(1000000000),
        .handle = gb_monitor_handle,
        .arg = &m->api,
    };
    struct gb_err err = gb_http_server_new(&cfg, &m->server);
    if (!gb_failed(err)) {
        GB_LOG(GB_LOG_INFO, "HTTP servers started", gb_lf_str("monitor_addr", at->address),
               gb_lf_int("monitor_port", gb_http_server_port(m->server)),
               gb_lf_bool("keys", gb_keys_any(m->api.keys)));
        return err;
    }
    err = gb_err_in(err, "%s", at->key);
    if (at->asked || err.code != GB_UNAVAILABLE) return err;
    GB_LOG(GB_LOG_WARN,
           "no monitor API: its default address is taken; give this bridge one of its own with "
           "-monitor-addr HOST:PORT or http.monitor_addr (port 0: any that is free)",
           gb_lf_err(&err));
    return gb_ok();
}

struct gb_err gb_app_monitor_new(const struct gb_app_monitor_cfg *cfg, struct gb_app_monitor **out)
{
    struct gb_app_monitor *m = calloc(1, sizeof *m);
    if (m == NULL) return gb_err_no_memory("monitor API");
    struct gb_supervisor_view first;
    gb_supervisor_look(cfg->supervisor, &first);
    gb_log_set_instance(first.instance_id);
    const struct gb_blueprint *b = first.blueprint;
    const struct gb_app_monitor_at at = gb_app_monitor_at(cfg->options, cfg->bootstrap, b);
    m->cfg = *cfg;
    m->api.reactor = gb_loop_reactor(cfg->loop);
    m->api.source = (struct gb_monitor_source){look, m};
    struct gb_err err = read_keys(m, b);
    if (!gb_failed(err)) err = open_server(m, &at);
    if (gb_failed(err)) {
        gb_app_monitor_free(m);
        return err;
    }
    if (b != NULL && b->http.node != NULL) {
        GB_LOG(GB_LOG_WARN,
               "http.admin_addr and http.transport_addr have no effect: their APIs are "
               "not part of this release");
    }
    *out = m;
    return err;
}

void gb_app_monitor_free(struct gb_app_monitor *m)
{
    if (m == NULL) return;
    gb_http_server_free(m->server);
    gb_keys_free(m->api.keys);
    gb_monitor_room_deinit(&m->room);
    free(m);
}

/* --- -healthcheck --- */

/* What listens on every interface, or on the loopback, is asked there (spec 08 §2). */
static int ask(const char *address)
{
    enum { PROBE_MS = 3000 };
    const char *colon = strrchr(address, ':');
    unsigned status = 0;
    bool wildcard = colon == NULL || colon == address || strncmp(address, "0.0.0.0:", 8) == 0 ||
                    strncmp(address, "[::]:", 5) == 0;
    char *url =
        wildcard ? gb_asprintf("http://127.0.0.1%s/api/v1/monitor/live", colon == NULL ? "" : colon)
                 : gb_asprintf("http://%s/api/v1/monitor/live", address);
    if (url == NULL) return 1;
    struct gb_err err = gb_http_probe(url, PROBE_MS, &status);
    free(url);
    if (gb_failed(err)) GB_LOG(GB_LOG_ERROR, "not live", gb_lf_err(&err));
    return !gb_failed(err) && status == 200 ? 0 : 1;
}

int gb_process_healthcheck(const struct gb_options *options)
{
    struct gb_options o = *options;
    struct gb_bootstrap *bootstrap = NULL;
    struct gb_blueprint *b = NULL;
    gb_log_set_level(GB_LOG_ERROR);
    struct gb_err err = gb_bootstrap_load(&o, &bootstrap);
    if (gb_failed(err)) {
        GB_LOG(GB_LOG_ERROR, "not live", gb_lf_err(&err));
        return 1;
    }
    bool written = bootstrap != NULL && bootstrap->monitor_addr != NULL;
    if (!written && gb_failed(gb_document_load(&o, o.config, GB_DOCUMENT_RUN, &b)))
        b = NULL; /* an idle process: at the command line's address */
    int rc = ask(gb_app_monitor_at(&o, bootstrap, b).address);
    gb_blueprint_free(b);
    gb_bootstrap_free(bootstrap);
    return rc;
}
