#include "support/fake_script.h"

#include "base/assert.h"

static struct fake_answer answer(enum fake_action action, enum gb_code code)
{
    return (struct fake_answer){
        .action = action,
        .err = code == GB_OK ? gb_ok() : gb_err(code, "scripted"),
    };
}

void fake_script_add(struct fake_script *s, enum fake_action action, enum gb_code code)
{
    GB_ASSERT(s->count < FAKE_SCRIPT_MAX);
    s->queue[s->count++] = answer(action, code);
}

void fake_script_always(struct fake_script *s, enum fake_action action, enum gb_code code)
{
    s->standing = answer(action, code);
}

struct fake_answer fake_script_take(struct fake_script *s)
{
    if (s->next == s->count) return s->standing;
    return s->queue[s->next++];
}
