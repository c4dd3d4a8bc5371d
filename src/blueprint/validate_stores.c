#include <stdio.h>

#include "blueprint/lease_plan.h"
#include "blueprint/schema.h"
#include "blueprint/validate.h"

static void key_of(char *out, size_t size, enum gb_bp_role role, const char *rest)
{
    (void)snprintf(out, size, "stores.%s%s", gb_schema_role_name(role), rest);
}

/* V23: what loses data at a restart must be asked for. */
static void check_memory(struct gb_check *c, enum gb_bp_role role, const struct gb_bp_store *s)
{
    char key[GB_CHECK_PATH_MAX];
    key_of(key, sizeof key, role, "");
    if (role == GB_BP_SUBSCRIPTIONS) {
        gb_check_error(c, GB_RULE_V23, key,
                       "%s: type memory is refused, since the history must survive restarts; use "
                       "type: sqlite or dynamodb",
                       key);
    } else if (s->options.acknowledge_single_replica.broken ||
               s->options.acknowledge_volatile.broken) {
        return; /* the decoder has spoken */
    } else if (role == GB_BP_LEASE && !s->options.acknowledge_single_replica.value) {
        gb_check_error(c, GB_RULE_V23, key,
                       "%s: type memory holds leases for one process only; set "
                       "options.acknowledge_single_replica: true to accept that",
                       key);
    } else if (role != GB_BP_LEASE && !s->options.acknowledge_volatile.value) {
        gb_check_error(c, GB_RULE_V23, key,
                       "%s: type memory loses its messages at a restart; set "
                       "options.acknowledge_volatile: true to accept that",
                       key);
    }
}

static bool is_clean_absolute(const char *path)
{
    if (path[0] != '/') return false;
    for (const char *p = path; *p == '/';) {
        size_t size = strcspn(p + 1, "/");
        if (size == 0) return false; /* "/", "//" or a trailing slash */
        if (size == 1 && p[1] == '.') return false;
        if (size == 2 && p[1] == '.' && p[2] == '.') return false;
        p += 1 + size;
    }
    return true;
}

static void check_path(struct gb_check *c, enum gb_bp_role role, const char *path)
{
    char key[GB_CHECK_PATH_MAX];
    if (path == NULL) return;
    key_of(key, sizeof key, role, ".options.path");
    if (strncmp(path, "file:", 5) == 0 || strpbrk(path, "?#") != NULL) {
        gb_check_error(c, GB_RULE_V23, key,
                       "%s \"%.*s\" must be a plain path without file:, ? and #; write one such as "
                       "/var/lib/gobridge/store.db",
                       key, GB_SHOWN_MAX, path);
    } else if (strcmp(path, ":memory:") == 0) {
        if (role == GB_BP_LEASE || role == GB_BP_SUBSCRIPTIONS) {
            gb_check_error(c, GB_RULE_V23, key,
                           "%s \":memory:\" does not survive a restart; name a file such as "
                           "/var/lib/gobridge/store.db",
                           key);
        }
    } else if (role == GB_BP_SUBSCRIPTIONS && !is_clean_absolute(path)) {
        gb_check_error(c, GB_RULE_V23, key,
                       "%s \"%.*s\" must be an absolute path without \".\", \"..\" and doubled or "
                       "trailing slashes; write one such as /var/lib/gobridge/store.db",
                       key, GB_SHOWN_MAX, path);
    }
}

/* C1: every configured store of a cluster is distributed. */
static void check_distributed(struct gb_check *c, enum gb_bp_role role, const char *type)
{
    char key[GB_CHECK_PATH_MAX];
    key_of(key, sizeof key, role, ".type");
    gb_check_error(c, GB_RULE_C1, key,
                   "%s: %s is on one instance only, and a clustered bridge needs a distributed "
                   "store for every role; use type: dynamodb",
                   key, type);
}

/* False when what the rules compare with could not be read. */
static bool times_are_read(const struct gb_blueprint *b)
{
    for (size_t i = 0; i < b->route_count; i++) {
        const struct gb_bp_route *r = &b->routes[i];
        if (r->delivery_mode.value != GB_SHARED_OUTBOX) continue;
        if (r->policy.send_timeout.broken || r->session.step_down_grace.broken) return false;
        if (!gb_check_readable(r->policy.node) || !gb_check_readable(r->session.node)) return false;
    }
    return true;
}

/* V31-V33: a written value is judged, the derived one is not. */
static void check_stale_claim(struct gb_check *c)
{
    static const char key[] = "stores.outbox.options.stale_claim_duration";
    const struct gb_opt_ns *stale = &c->b->stores[GB_BP_OUTBOX].options.stale_claim_duration;
    struct gb_outbox_times times = gb_blueprint_outbox_times(c->b);
    int64_t send = times.send_ns;
    int64_t grace = times.grace_ns;
    if (!times_are_read(c->b)) return;
    if (!stale->given || send == 0) return;
    char value[GB_DURATION_TEXT_MAX];
    char limit[GB_DURATION_TEXT_MAX];
    gb_duration_print(stale->ns, value);
    gb_duration_print(send, limit);
    if (stale->ns <= send) {
        gb_check_error(c, GB_RULE_V31, key,
                       "%s %s must be greater than the largest send_timeout of the routes, %s, or "
                       "a record is claimed again while it is being sent; raise it, or leave it "
                       "out to have it derived",
                       key, value, limit);
        return;
    }
    int64_t batch = gb_add_sat_i64(send, c->b->bridge.max_drain_timeout.ns);
    gb_duration_print(batch, limit);
    if (stale->ns <= batch && !c->b->bridge.max_drain_timeout.broken &&
        gb_check_readable(c->b->bridge.node)) {
        gb_check_warning(c, GB_RULE_V32, key,
                         "%s %s is not greater than send_timeout + bridge.max_drain_timeout, %s; "
                         "leave it out to have it derived",
                         key, value, limit);
    }
    if (grace == 0) return;
    gb_duration_print(grace, limit);
    if (stale->ns <= grace || stale->ns > gb_mul_sat_i64(grace, 2)) {
        gb_check_warning(
            c, GB_RULE_V33, key,
            "%s %s should be greater than the largest step_down_grace, %s, and at most "
            "twice that; leave it out to have it derived",
            key, value, limit);
    }
}

void gb_validate_stores(struct gb_check *c)
{
    for (int i = 0; i < GB_BP_ROLE_COUNT; i++) {
        enum gb_bp_role role = (enum gb_bp_role)i;
        const struct gb_bp_store *s = &c->b->stores[i];
        if (s->node == NULL || !s->type.given || s->type.broken) continue;
        bool readable = gb_check_readable(s->raw);
        if (s->type.value == GB_BP_MEMORY && readable) check_memory(c, role, s);
        if (s->type.value == GB_BP_SQLITE) check_path(c, role, s->options.path);
        if (s->type.value != GB_BP_DYNAMODB && gb_is_clustered(c->b)) {
            check_distributed(c, role, s->type.value == GB_BP_MEMORY ? "memory" : "sqlite");
        }
    }
    check_stale_claim(c);
}
