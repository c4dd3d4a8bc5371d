#include "app/lease_log.h"

#include <stdlib.h>

#include "base/log.h"
#include "blueprint/lease_plan.h"

struct shown {
    char text[GB_DURATION_TEXT_MAX];
};

static struct shown duration(int64_t ns)
{
    struct shown s;
    gb_duration_print(ns, s.text);
    return s;
}

static struct shown known(bool known, int64_t ns)
{
    return known ? duration(ns) : (struct shown){"unknown"};
}

static struct shown broker_path(const struct gb_lease_plan *p)
{
    if (p->terms.step_down_ns > 0) return known(!gb_failed(p->path_err), p->path.total_ns);
    return p->step_down_decided ? (struct shown){"off"} : (struct shown){"undecided"};
}

static void log_plan(const struct gb_lease_plan *p)
{
    struct shown budget = known(!gb_failed(p->death_err), p->death.total_ns);
    struct shown ttl = duration(p->terms.ttl_ns);
    struct shown activation = known(p->terms.activation_ns > 0, p->terms.activation_ns);
    struct shown startup = duration(p->terms.startup_ns);
    struct shown path = broker_path(p);
    GB_LOG(GB_LOG_INFO, "worst-case failover budget", gb_lf_str("session_id", p->session->id),
           gb_lf_str("failover_budget", budget.text), gb_lf_str("lease_ttl", ttl.text),
           gb_lf_str("post_takeover_activation", activation.text),
           gb_lf_str("startup_allowance", startup.text),
           gb_lf_str("broker_path_failover", path.text));
}

struct gb_err gb_lease_log(const struct gb_blueprint *b)
{
    const struct gb_bp_session **sessions = gb_blueprint_sessions_by_id(b);
    if (sessions == NULL) return gb_err_no_memory("the failover budgets");
    for (size_t i = 0; i < b->session_count; i++) {
        struct gb_lease_plan plan;
        if (!sessions[i]->in_use || !gb_blueprint_lease_plan(b, sessions[i], &plan)) continue;
        log_plan(&plan);
    }
    free(sessions);
    return gb_ok();
}
