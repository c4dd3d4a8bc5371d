#include "app/supervisor_parts.h"

/* What the monitor API shows of it (spec 07 §3, 08 §6). */

/* That which starts, else that which runs or stops. */
static const struct gb_generation *shown(const struct gb_supervisor *s)
{
    bool starts = s->next != NULL && s->next->runtime != NULL;
    return starts || s->current == NULL ? s->next : s->current;
}

void gb_supervisor_look(const struct gb_supervisor *s, struct gb_supervisor_view *out)
{
    const struct gb_generation *g = shown(s);
    *out = (struct gb_supervisor_view){
        .instance_id = s->fallback_id,
        .terminal = s->terminal,
        .ending = s->ending,
        .activated = s->activated,
        .swapping = s->state != SUPERVISOR_IDLE && s->state != SUPERVISOR_RUNNING,
        .attempted_version = s->attempted_version,
        .read_error = s->read_errors > 0 ? s->read_error.message : NULL,
        .apply_error = gb_failed(s->apply_error) ? s->apply_error.message : NULL,
    };
    if (g == NULL) return;
    if (g->instance_id != NULL) out->instance_id = g->instance_id;
    out->runtime = g->runtime;
    out->blueprint = g->blueprint;
}
