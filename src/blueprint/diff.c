#include "blueprint/diff.h"

#include <stdlib.h>

#include "base/map.h"
#include "blueprint/diff_class.h"
#include "blueprint/identity.h"
#include "blueprint/normal.h"

const char *gb_diff_class_name(enum gb_diff_class class_)
{
    return class_ == GB_DIFF_LIVE_SAFE ? "live-safe" : "replacement-required";
}

const char *gb_diff_swap_name(enum gb_diff_swap swap)
{
    static const char *const names[] = {
        [GB_DIFF_IN_PLACE] = "in-place",
        [GB_DIFF_OVERLAP] = "overlap",
        [GB_DIFF_SERIALIZED] = "serialized",
    };
    return names[swap];
}

/* Which units of `of` have no twin in `in`. */
static struct gb_err find_gone(const struct gb_units *of, const struct gb_units *in, bool **out)
{
    struct gb_map known = {0};
    struct gb_err err = gb_ok();
    bool *gone = calloc(of->count + 1, sizeof *gone);
    if (gone == NULL) return gb_err_no_memory("the diff");
    for (size_t i = 0; i < in->count && !gb_failed(err); i++) {
        struct gb_bytes identity = gb_bytes(in->units[i].identity, GB_SHA256_SIZE);
        err = gb_map_put(&known, identity, &in->units[i]);
    }
    for (size_t i = 0; i < of->count && !gb_failed(err); i++) {
        gone[i] = !gb_map_has(&known, gb_bytes(of->units[i].identity, GB_SHA256_SIZE));
    }
    gb_map_deinit(&known);
    if (gb_failed(err)) {
        free(gone);
        return err;
    }
    *out = gone;
    return err;
}

static bool pick(const struct gb_unit_member *members, size_t count, const bool *gone,
                 struct gb_diff_ids *out)
{
    out->items = calloc(count + 1, sizeof *out->items);
    if (out->items == NULL) return false;
    for (size_t i = 0; i < count; i++) {
        if (gone[members[i].unit]) out->items[out->count++] = members[i].id;
    }
    return true;
}

struct side {
    const struct gb_blueprint *b;
    struct gb_units units;
    bool *gone;
    size_t gone_count;
    bool gone_http;
};

static void count_gone(struct side *s)
{
    for (size_t i = 0; i < s->units.count; i++) {
        if (!s->gone[i]) continue;
        s->gone_count++;
        if (s->units.units[i].http) s->gone_http = true;
    }
}

/* The name of a section that makes every unit another one, or NULL. */
static struct gb_err differing_section(const struct side *before, const struct side *after,
                                       const char **out)
{
    uint8_t a[GB_SHA256_SIZE];
    uint8_t b[GB_SHA256_SIZE];
    struct gb_err err = gb_ok();
    *out = NULL;
    for (const char *const *key = gb_units_bridge_wide; *key != NULL && *out == NULL; key++) {
        err = gb_normal_section_digest(before->b, *key, a);
        if (!gb_failed(err)) err = gb_normal_section_digest(after->b, *key, b);
        if (gb_failed(err)) break;
        if (memcmp(a, b, sizeof a) != 0) *out = *key;
    }
    return err;
}

static struct gb_err choose_swap(struct gb_diff *d, const struct side *before,
                                 const struct side *after)
{
    const char *section;
    struct gb_err err = differing_section(before, after, &section);
    if (gb_failed(err)) return err;
    bool outbox = after->b->stores[GB_BP_OUTBOX].node != NULL;
    if (section != NULL) {
        d->swap_reason = section;
    } else if (outbox &&
               gb_blueprint_stale_claim_ns(before->b) != gb_blueprint_stale_claim_ns(after->b)) {
        d->swap_reason = "stale_claim_duration";
    } else if (before->gone_http || after->gone_http) {
        d->swap_reason = "http endpoints";
    } else {
        d->swap = GB_DIFF_IN_PLACE;
        return err;
    }
    /* Every claim of a broker identity (spec 07 §6.2) goes with an MQTT session; one of the running
     * document counts only where the new one uses MQTT, for which it has a session too. */
    d->swap = after->b->session_count > 0 ? GB_DIFF_SERIALIZED : GB_DIFF_OVERLAP;
    return err;
}

static struct gb_err compare(struct gb_diff *d, struct side *before, struct side *after)
{
    struct gb_err err = find_gone(&before->units, &after->units, &before->gone);
    if (!gb_failed(err)) err = find_gone(&after->units, &before->units, &after->gone);
    if (gb_failed(err)) return err;
    count_gone(before);
    count_gone(after);
    d->retired_units = before->gone_count;
    d->added_units = after->gone_count;
    d->unchanged_units = before->units.count - before->gone_count;
    const struct gb_units *b = &before->units;
    const struct gb_units *a = &after->units;
    if (!pick(b->routes, b->route_count, before->gone, &d->retired_routes) ||
        !pick(b->sessions, b->session_count, before->gone, &d->retired_sessions) ||
        !pick(a->routes, a->route_count, after->gone, &d->added_routes) ||
        !pick(a->sessions, a->session_count, after->gone, &d->added_sessions)) {
        return gb_err_no_memory("the diff");
    }
    err = choose_swap(d, before, after);
    if (gb_failed(err)) return err;
    return gb_diff_classify(d, before->b, b, after->b);
}

static struct gb_err compare_digests(struct gb_diff *d, const struct gb_blueprint *before,
                                     const struct gb_blueprint *after)
{
    char a[GB_SHA256_HEX];
    char b[GB_SHA256_HEX];
    struct gb_err err = gb_blueprint_digest(before, a);
    if (!gb_failed(err)) err = gb_blueprint_digest(after, b);
    if (!gb_failed(err)) d->equal = strcmp(a, b) == 0;
    return err;
}

struct gb_err gb_diff_init(struct gb_diff *diff, const struct gb_blueprint *before,
                           const struct gb_blueprint *after)
{
    struct gb_diff d = {0};
    struct side old = {.b = before};
    struct side new = {.b = after};
    struct gb_err err = compare_digests(&d, before, after);
    if (!gb_failed(err)) err = gb_units_init(&old.units, before);
    if (!gb_failed(err)) err = gb_units_init(&new.units, after);
    if (!gb_failed(err)) err = compare(&d, &old, &new);
    gb_units_deinit(&old.units);
    gb_units_deinit(&new.units);
    free(old.gone);
    free(new.gone);
    if (gb_failed(err)) {
        gb_diff_deinit(&d);
    } else {
        *diff = d;
    }
    return err;
}

void gb_diff_deinit(struct gb_diff *diff)
{
    free(diff->retired_routes.items);
    free(diff->added_routes.items);
    free(diff->retired_sessions.items);
    free(diff->added_sessions.items);
    for (size_t i = 0; i < diff->reason_count; i++) free(diff->reasons[i]);
    *diff = (struct gb_diff){0};
}
