#include "api/service_level.h"

#include <string.h>
#include <strings.h>

static const char *const names[] = {"down", "live", "running", "connected", "subscribed", "full"};

const char *gb_readiness_name(enum gb_readiness level)
{
    return names[level];
}

bool gb_readiness_parse(const char *text, enum gb_readiness *out)
{
    static const char blanks[] = " \t";
    text += strspn(text, blanks);
    size_t size = strcspn(text, blanks);
    if (text[size + strspn(text + size, blanks)] != '\0') return false;
    for (int i = GB_READY_LIVE; i <= GB_READY_FULL; i++) {
        if (strlen(names[i]) != size || strncasecmp(text, names[i], size) != 0) continue;
        *out = (enum gb_readiness)i;
        return true;
    }
    return false;
}

const char *gb_role_name(enum gb_role role)
{
    return role == GB_ROLE_STANDALONE ? "standalone"
           : role == GB_ROLE_ACTIVE   ? "active"
                                      : "standby";
}

const char *gb_service_level_name(enum gb_service_level level)
{
    return level == GB_LEVEL_FULL ? "full" : level == GB_LEVEL_DEGRADED ? "degraded" : "none";
}

bool gb_monitor_empty(const struct gb_monitor_snapshot *s)
{
    return s->route_count == 0 && s->session_count == 0;
}

/* One that waits for its lease before it connects is as it should be. */
static bool counts(const struct gb_monitor_session *m)
{
    return !m->exclusive || !m->lease.connect_after || m->lease.holds;
}

enum gb_role gb_role_of(const struct gb_monitor_snapshot *s)
{
    enum gb_role role = GB_ROLE_STANDALONE;
    for (size_t i = 0; i < s->session_count; i++) {
        if (!s->sessions[i].exclusive) continue;
        if (s->sessions[i].lease.holds) return GB_ROLE_ACTIVE;
        role = GB_ROLE_STANDBY;
    }
    return role;
}

enum gb_service_level gb_service_level_of(const struct gb_monitor_snapshot *s)
{
    if (gb_monitor_empty(s)) return GB_LEVEL_NONE;
    enum gb_service_level level = GB_LEVEL_FULL;
    for (size_t i = 0; i < s->session_count; i++) {
        const struct gb_session_health *h = &s->sessions[i].health;
        enum gb_service_level one = h->connected ? h->service_level : GB_LEVEL_NONE;
        if (one < level) level = one;
    }
    return level;
}

/* What the sessions allow: the lowest of them. */
static enum gb_readiness of_sessions(const struct gb_monitor_snapshot *s)
{
    enum gb_readiness level = GB_READY_FULL;
    for (size_t i = 0; i < s->session_count; i++) {
        const struct gb_session_health *h = &s->sessions[i].health;
        if (!counts(&s->sessions[i])) continue;
        enum gb_readiness one = !h->connected                       ? GB_READY_RUNNING
                                : !h->ready                         ? GB_READY_CONNECTED
                                : h->service_level != GB_LEVEL_FULL ? GB_READY_SUBSCRIBED
                                                                    : GB_READY_FULL;
        if (one < level) level = one;
    }
    return level;
}

enum gb_readiness gb_readiness_of(const struct gb_monitor_snapshot *s)
{
    if (!s->runtime || !s->running || !s->healthy) return GB_READY_LIVE;
    if (gb_monitor_empty(s)) return GB_READY_RUNNING;
    enum gb_readiness level = of_sessions(s);
    bool held = gb_role_of(s) == GB_ROLE_STANDBY;
    for (size_t i = 0; i < s->route_count; i++) held |= !s->routes[i].ready || s->routes[i].dead;
    return held && level > GB_READY_SUBSCRIBED ? GB_READY_SUBSCRIBED : level;
}

bool gb_ready_for_traffic(const struct gb_monitor_snapshot *s)
{
    return gb_readiness_of(s) >= GB_READY_CONNECTED && gb_role_of(s) != GB_ROLE_STANDBY;
}
