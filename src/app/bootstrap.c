#include "app/bootstrap.h"

#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "base/log.h"
#include "io/file.h"

enum { FILE_BYTES_MAX = 1 << 20 };

static const char inline_name[] = "GOBRIDGE_AWS_BOOTSTRAP_JSON";
static const char older_name[] = "GOBRIDGE_FILEBASED_BOOTSTRAP_JSON";
static const char file_name[] = "GOBRIDGE_FILEBASED_BOOTSTRAP_FILE";

/* The one that counts; NULL: flag mode. */
static const char *variable_in_use(void)
{
    if (gb_env(inline_name) != NULL) return inline_name;
    if (gb_env(older_name) != NULL) return older_name;
    return gb_env(file_name) != NULL ? file_name : NULL;
}

static struct gb_err read_text(const char *variable, struct gb_str *out)
{
    const char *text = gb_env(inline_name);
    const char *older = gb_env(older_name);
    if (text != NULL && older != NULL && strcmp(text, older) != 0) {
        return gb_err(GB_INVALID_CONFIG, "%s and %s are both set and differ; unset one of them",
                      inline_name, older_name);
    }
    if (variable == file_name) return gb_file_read(gb_env(file_name), FILE_BYTES_MAX, out);
    gb_str_append_c(out, gb_env(variable));
    return gb_str_check(out, "bootstrap");
}

struct gb_err gb_bootstrap_check_flags(const struct gb_options *o)
{
    const char *variable = variable_in_use();
    if (variable == NULL) return gb_ok();
    if (o->config_given) {
        return gb_err(GB_INVALID_CONFIG,
                      "-config does not go with %s, which names the document; "
                      "leave one of them out",
                      variable);
    }
    if (o->overlay_count > 0 || o->set_count > 0) {
        return gb_err(GB_INVALID_CONFIG,
                      "-overlay and -set do not go with %s: all members of a "
                      "deployment run the same document; leave them out",
                      variable);
    }
    return gb_ok();
}

/* What the deployment says stands behind the environment. */
static struct gb_err offer(const char *name, const char *value)
{
    if (value == NULL || setenv(name, value, gb_env(name) == NULL) == 0) return gb_ok();
    return gb_err_no_memory("the environment");
}

static struct gb_err settle(struct gb_options *o, const struct gb_bootstrap *b)
{
    o->config = b->config_file_path;
    if (b->credential_file_path != NULL) o->credentials_dir = b->credential_file_path;
    struct gb_err err = offer("GOBRIDGE_INSTANCE_ID", b->instance_id);
    if (!gb_failed(err)) err = offer("AWS_REGION", b->aws_region);
    if (!gb_failed(err)) err = offer("AWS_ENDPOINT_URL_SSM", b->ssm_endpoint);
    GB_LOG(GB_LOG_INFO, "bootstrap read", gb_lf_str("bridge_id", b->bridge_id),
           gb_lf_str("topology", gb_topology_name(b->topology)),
           gb_lf_str("node_role", b->worker ? "worker" : "control"),
           gb_lf_str("config", b->config_file_path));
    if (b->admin_addr != NULL) {
        GB_LOG(GB_LOG_WARN,
               "bootstrap: admin_addr has no effect: the admin API is not part of this "
               "release");
    }
    const char *exporter = b->metrics_exporter;
    if (exporter != NULL && strcmp(exporter, "noop") != 0 && strcmp(exporter, "none") != 0) {
        GB_LOG(GB_LOG_WARN,
               "bootstrap: metrics_exporter has no effect in this release; SIGUSR1 "
               "prints the counters",
               gb_lf_str("metrics_exporter", exporter));
    }
    return err;
}

struct gb_err gb_bootstrap_load(struct gb_options *o, struct gb_bootstrap **out)
{
    const char *variable = variable_in_use();
    struct gb_str text = {0};
    if (variable == NULL) return gb_ok();
    struct gb_err err = read_text(variable, &text);
    if (!gb_failed(err))
        err = gb_bootstrap_read(gb_str_bytes(&text), gb_env("GOBRIDGE_NODE_ROLE"), out);
    gb_str_deinit(&text);
    return gb_failed(err) ? gb_err_in(err, "%s", variable) : settle(o, *out);
}
