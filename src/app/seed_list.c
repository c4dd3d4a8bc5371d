#include "app/seed_list.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"

void gb_seed_deinit(struct gb_seed *s)
{
    free(s->text);
    memset(s, 0, sizeof *s);
}

static struct gb_err split_filters(struct gb_seed *s, char *list)
{
    for (char *at = list; at != NULL;) {
        char *comma = strchr(at, ',');
        if (comma != NULL) *comma = '\0';
        if (s->count == GB_SEED_FILTERS_MAX) {
            return gb_err(GB_INVALID_CONFIG, "session %s: more than %d filters", s->session_id,
                          GB_SEED_FILTERS_MAX);
        }
        struct gb_err err = gb_mqtt_filter_check(gb_bytes_c(at));
        if (*at == '\0' || gb_failed(err)) {
            return gb_err(GB_INVALID_CONFIG, "session %s: \"%s\" is not a filter", s->session_id,
                          at);
        }
        s->filters[s->count++] = at;
        at = comma == NULL ? NULL : comma + 1;
    }
    return gb_ok();
}

static struct gb_err read_seed(const char *value, struct gb_seed *s)
{
    s->text = gb_strdup(value);
    if (s->text == NULL) return gb_err_no_memory("seed");
    char *equals = strchr(s->text, '=');
    if (equals != NULL) *equals = '\0';
    s->session_id = s->text;
    if (s->text[0] == '\0') return gb_err(GB_INVALID_CONFIG, "\"%s\" names no session", value);
    return equals == NULL ? gb_ok() : split_filters(s, equals + 1);
}

struct gb_err gb_seeds_read(const struct gb_options *o, struct gb_seed *seeds)
{
    for (size_t i = 0; i < o->seed_count; i++) {
        struct gb_err err = read_seed(o->seeds[i], &seeds[i]);
        if (gb_failed(err)) return err;
        for (size_t k = 0; k < i; k++) {
            if (strcmp(seeds[k].session_id, seeds[i].session_id) == 0)
                return gb_err(GB_INVALID_CONFIG, "session %s is named twice", seeds[i].session_id);
        }
    }
    return gb_ok();
}
