#include "sim/sim_table.h"

#include <stdio.h>

#include "sim/sim_cluster.h"

void sim_table_init(struct sim_table *t, struct sim_world *w)
{
    *t = (struct sim_table){.world = w};
    gb_list_init(&t->requests);
}

void sim_row_view(const struct sim_row_image *row, struct gb_lease_row *out)
{
    *out = (struct gb_lease_row){
        .key = gb_bytes_c("mqtt"),
        .owner = gb_bytes_c(row->owner),
        .version = row->version,
        .acquired_ms = row->acquired_ms,
        .renewed_ms = row->renewed_ms,
        .expires_ms = row->expires_ms,
        .evidence_parts = row->evidence ? 3 : 0,
    };
    if (!row->evidence) return;
    out->evidence =
        (struct gb_lease_evidence){gb_bytes_c(row->fingerprint), row->elapsed_ns, row->generation};
}

static bool same_tuple(const struct sim_row_image *a, const struct sim_row_image *b)
{
    return a->exists == b->exists && strcmp(a->owner, b->owner) == 0 && a->version == b->version &&
           a->renewed_ms == b->renewed_ms && a->expires_ms == b->expires_ms;
}

static bool as_read(const struct sim_row_image *row, const struct sim_row_image *read)
{
    if (!same_tuple(row, read) || row->evidence != read->evidence) return false;
    return !row->evidence ||
           (strcmp(row->fingerprint, read->fingerprint) == 0 &&
            row->elapsed_ns == read->elapsed_ns && row->generation == read->generation);
}

/* --- conditions --- */

static bool holds(const struct sim_table *t, const struct sim_request_body *q)
{
    return t->row.exists && strcmp(t->row.owner, q->owner) == 0 && t->row.version == q->version;
}

static bool admits(const struct sim_table *t, const struct sim_request_body *q)
{
    enum sim_fault fault = t->world->fault;
    const struct sim_row_image *r = &t->row;
    switch (q->kind) {
    case SIM_READ:
        return true;
    case SIM_CREATE:
        return !r->exists;
    case SIM_OBSERVE:
        return fault == SIM_FAULT_OBSERVE_TWICE || fault == SIM_FAULT_EVIDENCE_STAYS ||
               as_read(r, &q->as_read);
    case SIM_TAKE:
        if (fault == SIM_FAULT_EVIDENCE_STAYS) return same_tuple(r, &q->as_read);
        return fault == SIM_FAULT_TAKE_BLINDLY || as_read(r, &q->as_read);
    case SIM_RENEW:
        if (fault == SIM_FAULT_RENEW_BLINDLY) return r->exists;
        return holds(t, q) && r->expires_ms >= q->now_ms;
    case SIM_RELEASE:
        return fault == SIM_FAULT_RELEASE_BLINDLY ? r->exists : holds(t, q);
    }
    return false;
}

/* --- writes --- */

static void write_owner(struct sim_row_image *r, const struct sim_request_body *q)
{
    (void)snprintf(r->owner, sizeof r->owner, "%s", q->owner);
    r->exists = true;
    r->version = q->version;
    r->acquired_ms = r->renewed_ms = q->now_ms;
    r->expires_ms = q->expires_ms;
    r->evidence = false;
}

static void write_take(struct sim_table *t, struct sim_row_image *r,
                       const struct sim_request_body *q)
{
    bool own = strcmp(q->as_read.owner, q->owner) == 0;
    enum sim_fault fault = t->world->fault;
    write_owner(r, q);
    if (fault == SIM_FAULT_VERSION_STAYS || (fault == SIM_FAULT_OWN_VERSION_STAYS && own))
        r->version = q->as_read.version;
}

static void write_renewal(struct sim_table *t, struct sim_row_image *r,
                          const struct sim_request_body *q)
{
    if (t->world->fault == SIM_FAULT_RENEW_LIES) return;
    if (t->world->fault == SIM_FAULT_RENEW_BLINDLY)
        (void)snprintf(r->owner, sizeof r->owner, "%s", q->owner);
    r->renewed_ms = q->now_ms;
    r->expires_ms = q->expires_ms;
    r->evidence = r->evidence && t->world->fault == SIM_FAULT_EVIDENCE_STAYS;
}

/* Planted: what is new is added to what stands there, whoever has added it before. */
static int64_t observed_ns(const struct sim_table *t, const struct sim_request_body *q)
{
    const struct sim_row_image *r = &t->row;
    bool adds = t->world->fault == SIM_FAULT_OBSERVE_TWICE && r->evidence && q->as_read.evidence &&
                strcmp(r->fingerprint, q->fingerprint) == 0;
    return adds ? r->elapsed_ns + q->elapsed_ns - q->as_read.elapsed_ns : q->elapsed_ns;
}

static struct sim_row_image written(struct sim_table *t, const struct sim_request_body *q)
{
    struct sim_row_image r = t->row;
    switch (q->kind) {
    case SIM_READ:
        break;
    case SIM_CREATE:
        write_owner(&r, q);
        break;
    case SIM_TAKE:
        write_take(t, &r, q);
        break;
    case SIM_OBSERVE:
        r.evidence = true;
        memcpy(r.fingerprint, q->fingerprint, sizeof r.fingerprint);
        r.elapsed_ns = observed_ns(t, q);
        r.generation = q->generation;
        break;
    case SIM_RENEW:
        write_renewal(t, &r, q);
        break;
    case SIM_RELEASE:
        r.owner[0] = '\0';
        r.expires_ms = 0;
        r.evidence = false;
        if (t->world->fault == SIM_FAULT_ROW_DELETED) r = (struct sim_row_image){0};
        break;
    }
    return r;
}

/* --- what must hold --- */

/* Spec 06 §5, §6.1: +1 with each change of owner, never less, and the row stays. */
static void check_versions(struct sim_table *t, const struct sim_row_image *now,
                           const struct sim_request_body *q)
{
    const struct sim_row_image *was = &t->row;
    bool taken = q->kind == SIM_CREATE || q->kind == SIM_TAKE;
    uint64_t want = taken ? t->version_max + 1 : was->version;
    if (now->version != want || (was->exists && !now->exists)) {
        sim_violate(t->world, "version %llu of the lease was followed by %llu, not %llu",
                    (unsigned long long)was->version, (unsigned long long)now->version,
                    (unsigned long long)want);
    } else if (!taken && strcmp(was->owner, now->owner) != 0 && now->owner[0] != '\0') {
        sim_violate(t->world, "the lease went from %s to %s under one version", was->owner,
                    now->owner);
    } else if (q->kind == SIM_RELEASE && strcmp(was->owner, q->owner) != 0) {
        sim_violate(t->world, "the lease of %s was released by %s", was->owner, q->owner);
    }
}

/* Spec 06 §6.1: not before the owner's row was unchanged for its own duration. */
static void check_unchanged(struct sim_table *t, const struct sim_row_image *now)
{
    const struct sim_row_image *was = &t->row;
    if (was->owner[0] == '\0' || strcmp(was->owner, now->owner) == 0) return;
    uint64_t required_ns = (uint64_t)(was->expires_ms - was->renewed_ms) * (uint64_t)GB_MS;
    uint64_t seen_ns = t->world->now_ns - t->unchanged_ns;
    if (seen_ns < required_ns) {
        sim_violate(t->world,
                    "%s took the lease from %s, whose row was unchanged for %llu of %llu ms",
                    now->owner, was->owner, (unsigned long long)seen_ns / 1000000,
                    (unsigned long long)required_ns / 1000000);
    }
    sim_cluster_check_taken_from(t->world, was->owner);
}

/* Spec 06 check 6: no observer counts time that did not pass. */
static void check_evidence(struct sim_table *t, const struct sim_row_image *now)
{
    struct gb_lease_row row;
    char fingerprint[GB_SHA256_HEX];
    sim_row_view(now, &row);
    if (!now->evidence) return;
    gb_lease_fingerprint(&row, fingerprint);
    if (strcmp(fingerprint, now->fingerprint) != 0) return;
    uint64_t passed_ns = t->world->now_ns - t->unchanged_ns;
    if ((uint64_t)now->elapsed_ns <= passed_ns) return;
    sim_violate(t->world, "evidence of %lld ms about a row that is unchanged for %llu ms",
                (long long)(now->elapsed_ns / GB_MS), (unsigned long long)passed_ns / 1000000);
}

static void trace_write(struct sim_table *t, const struct sim_row_image *now,
                        const struct sim_request_body *q)
{
    static const char *const names[] = {"lease read",  "lease created", "lease observed",
                                        "lease taken", "lease renewed", "lease released"};
    uint32_t who = sim_cluster_index_of(t->world, q->owner);
    sim_trace(t->world, names[q->kind], who,
              q->kind == SIM_OBSERVE ? (uint64_t)(now->elapsed_ns / GB_MS) : now->version);
}

bool sim_table_apply(struct sim_table *t, const struct sim_request_body *q,
                     struct sim_row_image *result)
{
    bool admitted = admits(t, q);
    if (admitted && q->kind != SIM_READ) {
        struct sim_row_image now = written(t, q);
        trace_write(t, &now, q);
        check_versions(t, &now, q);
        if (q->kind == SIM_TAKE) {
            check_unchanged(t, &now);
            t->takeovers++;
        }
        if (!same_tuple(&t->row, &now)) t->unchanged_ns = t->world->now_ns;
        check_evidence(t, &now);
        if (now.version > t->version_max) t->version_max = now.version;
        t->row = now;
        t->writes++;
    }
    *result = t->row;
    return admitted;
}
