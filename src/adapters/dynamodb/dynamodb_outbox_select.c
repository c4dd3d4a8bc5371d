#include <stdlib.h>

#include "adapters/dynamodb/dynamodb_outbox_direct.h"

/* Which records a claim may take (spec 05 §9.6): out of ClaimIndex, oldest first; as soon as one of
 * them has an ordering key, out of the whole partition instead, because only a strong read shows
 * all that may stand before it (§2.4). */

enum { PAGE_MAX = 100, PAGES_QUIET = 8, FOUND_BYTES_MAX = 16 * 1024 * 1024 };
static const uint64_t corrupt_log_every_ns = UINT64_C(60000000000);
enum { NS_PER_MS = 1000000 };

struct gb_dbox_blocker {
    int64_t created_at_ms; /* the oldest that stays behind under its key */
    uint64_t seq;
};

static void query(struct gb_dbox_task *t, struct gb_dbox_select *sel, struct gb_bytes last_key);

/* --- candidates --- */

static struct gb_bytes copy(char **at, struct gb_bytes from)
{
    struct gb_bytes view = gb_bytes(*at, from.size);
    if (from.size > 0) memcpy(*at, from.data, from.size);
    *at += from.size;
    return view;
}

/* Takes over the row's envelope. */
static struct gb_dbox_candidate *candidate_new(const struct gb_dbox_row *row, size_t bytes)
{
    const struct gb_outbox_record *r = &row->record;
    size_t size = row->sort_key.size + r->id.size + r->route_id.size + r->binding_id.size +
                  r->session_id.size + r->address.size + r->dispatch_headers.size +
                  r->ordering_key.size;
    struct gb_dbox_candidate *c = calloc(1, sizeof *c + size);
    if (c == NULL) return NULL;
    char *at = c->memory;
    c->row = *row;
    c->row.sort_key = copy(&at, row->sort_key);
    c->row.record.id = copy(&at, r->id);
    c->row.record.route_id = copy(&at, r->route_id);
    c->row.record.binding_id = copy(&at, r->binding_id);
    c->row.record.session_id = copy(&at, r->session_id);
    c->row.record.address = copy(&at, r->address);
    c->row.record.dispatch_headers = copy(&at, r->dispatch_headers);
    c->row.record.ordering_key = copy(&at, r->ordering_key);
    c->row.envelope_id = r->envelope->id;
    c->row.partition = gb_bytes(NULL, 0);
    c->row.envelope_json = gb_bytes(NULL, 0);
    c->row.body = gb_bytes(NULL, 0);
    c->row.claimed_by = gb_bytes(NULL, 0);
    c->target = (struct gb_dbox_target){
        .sort_key = c->row.sort_key, .key = c->row.record.ordering_key, .bytes = bytes};
    return c;
}

static void candidate_free(struct gb_dbox_candidate *c)
{
    gb_envelope_unref(c->row.record.envelope);
    free(c);
}

static void drop_from(struct gb_dbox_select *sel, size_t count)
{
    while (sel->count > count) {
        struct gb_dbox_candidate *c = sel->found[--sel->count];
        sel->bytes -= c->target.bytes;
        candidate_free(c);
    }
}

static int compare(const void *a, const void *b)
{
    const struct gb_dbox_candidate *x = *(struct gb_dbox_candidate *const *)a;
    const struct gb_dbox_candidate *y = *(struct gb_dbox_candidate *const *)b;
    return gb_dbox_row_compare(&x->row, &y->row);
}

static bool blocked(const struct gb_dbox_select *sel, const struct gb_dbox_row *row)
{
    const struct gb_outbox_record *r = &row->record;
    const struct gb_dbox_blocker *b = gb_map_get(&sel->blockers, r->ordering_key);
    if (b == NULL || r->ordering_key.size == 0) return false;
    return b->created_at_ms < r->created_at_ms ||
           (b->created_at_ms == r->created_at_ms && b->seq < r->seq);
}

/* Out of the sorted candidates: what is blocked now stays so. */
static void drop_blocked(struct gb_dbox_select *sel)
{
    size_t kept = 0;
    size_t all = sel->count;
    for (size_t i = 0; i < sel->count; i++) {
        struct gb_dbox_candidate *c = sel->found[i];
        if (blocked(sel, &c->row)) continue;
        sel->found[i] = sel->found[kept];
        sel->found[kept++] = c;
    }
    sel->left = sel->left || kept < all;
    drop_from(sel, kept);
}

/* The oldest 3 x limit stay, and no more than some MiB of them. */
static void trim(struct gb_dbox_select *sel)
{
    size_t keep = 0;
    size_t bytes = 0;
    qsort(sel->found, sel->count, sizeof sel->found[0], compare);
    drop_blocked(sel);
    while (keep < sel->count && keep < 3 * (size_t)sel->limit &&
           (keep == 0 || bytes + sel->found[keep]->target.bytes <= FOUND_BYTES_MAX / 2))
        bytes += sel->found[keep++]->target.bytes;
    if (keep == sel->count) return;
    const struct gb_outbox_record *r = &sel->found[keep]->row.record;
    if (!sel->trimmed || r->created_at_ms < sel->trimmed_ms ||
        (r->created_at_ms == sel->trimmed_ms && r->seq < sel->trimmed_seq)) {
        sel->trimmed = true;
        sel->trimmed_ms = r->created_at_ms;
        sel->trimmed_seq = r->seq;
    }
    drop_from(sel, keep);
}

/* What was read after a trim may be younger than what fell to it, and must not pass it. */
static void drop_behind_trimmed(struct gb_dbox_select *sel)
{
    size_t keep = 0;
    while (keep < sel->count) {
        const struct gb_outbox_record *r = &sel->found[keep]->row.record;
        bool behind = r->created_at_ms > sel->trimmed_ms ||
                      (r->created_at_ms == sel->trimmed_ms && r->seq > sel->trimmed_seq);
        if (sel->trimmed && behind) break;
        keep++;
    }
    drop_from(sel, keep);
}

static bool found(struct gb_dbox_task *t, struct gb_dbox_select *sel, struct gb_dbox_candidate *c)
{
    if (sel->count == sel->capacity) {
        size_t capacity = sel->capacity == 0 ? 16 : 2 * sel->capacity;
        struct gb_dbox_candidate **more = realloc(sel->found, capacity * sizeof(void *));
        if (more == NULL) {
            candidate_free(c);
            gb_dbox_end(t, gb_err_no_memory("a claim"));
            return false;
        }
        sel->found = more;
        sel->capacity = capacity;
    }
    sel->found[sel->count++] = c;
    sel->bytes += c->target.bytes;
    if (sel->scanning && (sel->count > 6 * (size_t)sel->limit || sel->bytes > FOUND_BYTES_MAX))
        trim(sel);
    return true;
}

/* --- rows --- */

static bool block(struct gb_dbox_task *t, struct gb_dbox_select *sel, const struct gb_dbox_row *row)
{
    const struct gb_outbox_record *r = &row->record;
    if (r->ordering_key.size == 0) return true;
    struct gb_dbox_blocker *b = gb_map_get(&sel->blockers, r->ordering_key);
    if (b == NULL) {
        b = calloc(1, sizeof *b);
        if (b == NULL || gb_failed(gb_map_put(&sel->blockers, r->ordering_key, b))) {
            free(b);
            gb_dbox_end(t, gb_err_no_memory("a claim"));
            return false;
        }
        *b = (struct gb_dbox_blocker){r->created_at_ms, r->seq};
    } else if (r->created_at_ms < b->created_at_ms ||
               (r->created_at_ms == b->created_at_ms && r->seq < b->seq)) {
        *b = (struct gb_dbox_blocker){r->created_at_ms, r->seq};
    }
    return true;
}

void gb_dbox_log_corrupt(struct gb_dbox *s, const struct gb_err *err)
{
    uint64_t suppressed = 0;
    if (!gb_log_allow(&s->corrupt_log, (uint64_t)gb_dbox_now_ms(s) * NS_PER_MS,
                      corrupt_log_every_ns, &suppressed))
        return;
    GB_LOG(GB_LOG_ERROR, "outbox row can't be read and is skipped; repair or delete it",
           gb_lf_str("table", s->table), gb_lf_int("suppressed", (int64_t)suppressed),
           gb_lf_err(err));
}

/* The row stays as it is and holds its key back; the others flow (docs/decisions/0203). */
static bool corrupt(struct gb_dbox_task *t, struct gb_dbox_select *sel,
                    const struct gb_dbox_row *row, const struct gb_err *err)
{
    if (!gb_failed(sel->corrupt)) sel->corrupt = *err;
    sel->foreign = true;
    gb_dbox_log_corrupt(t->s, err);
    return block(t, sel, row);
}

/* One that this process has in memory is no candidate: it is queued there, or held. */
static bool held_here(struct gb_dbox_task *t, struct gb_dbox_select *sel,
                      const struct gb_dbox_row *row, bool *goes_on)
{
    const struct gb_dbox_direct *e = gb_dbox_direct_find(t->s, row->record.id);
    if (e == NULL || !row->direct) return false;
    *goes_on = gb_dbox_direct_is_pending(e) || block(t, sel, row);
    return true;
}

static bool claimable(const struct gb_dbox_select *sel, const struct gb_dbox_row *row)
{
    if (row->status == GB_OUTBOX_PENDING) return true;
    if (row->status != GB_OUTBOX_CLAIMED) return false;
    return row->record.claim_version < sel->token->version || row->claimed_at_ms < sel->cutoff_ms;
}

static bool block_held(struct gb_dbox_task *t, struct gb_dbox_select *sel,
                       const struct gb_dbox_row *row)
{
    if (gb_dbox_direct_find(t->s, row->record.id) == NULL) sel->foreign = true;
    return block(t, sel, row);
}

/* False: the task has ended. */
static bool take(struct gb_dbox_task *t, struct gb_dbox_select *sel, struct gb_bytes item)
{
    const struct gb_dynamodb_source from = {t->s->table, "Query"};
    struct gb_dbox_row row;
    gb_str_clear(&sel->scratch);
    struct gb_err err = gb_dbox_row_read(&from, item, &sel->scratch, &row);
    bool goes_on = true;
    if (!gb_failed(err) && held_here(t, sel, &row, &goes_on)) return goes_on;
    if (!gb_failed(err) && !claimable(sel, &row))
        return row.status != GB_OUTBOX_CLAIMED || block_held(t, sel, &row);
    if (!gb_failed(err)) err = gb_dbox_row_decode(&row);
    if (err.code == GB_INVALID_OUTBOX_RECORD) return corrupt(t, sel, &row, &err);
    struct gb_dbox_candidate *c = gb_failed(err) ? NULL : candidate_new(&row, item.size);
    if (c == NULL) {
        gb_envelope_unref(row.record.envelope);
        gb_dbox_end(t, gb_failed(err) ? err : gb_err_no_memory("a claim"));
        return false;
    }
    return found(t, sel, c);
}

/* --- the end of it --- */

/* Blocked ones go before the limit cuts. What is younger than a blocked one of its key is blocked
 * by the same. */
static void finish(struct gb_dbox_task *t, struct gb_dbox_select *sel)
{
    if (sel->count > 0) qsort(sel->found, sel->count, sizeof sel->found[0], compare);
    drop_blocked(sel);
    drop_behind_trimmed(sel);
    if (sel->trimmed && !sel->again && sel->count < sel->limit) { /* the trims kept blocked ones */
        drop_from(sel, 0);
        sel->again = true;
        sel->trimmed = false;
        query(t, sel, gb_bytes(NULL, 0));
        return;
    }
    sel->left = sel->left || sel->trimmed || sel->count >= sel->limit;
    if (sel->count > sel->limit) drop_from(sel, sel->limit);
    sel->done(t);
}

static void free_blockers(struct gb_dbox_select *sel)
{
    size_t cursor = 0;
    struct gb_bytes key;
    void *value;
    while (gb_map_next(&sel->blockers, &cursor, &key, &value)) free(value);
    gb_map_deinit(&sel->blockers);
    sel->blockers = (struct gb_map){0};
}

static void scan_instead(struct gb_dbox_task *t, struct gb_dbox_select *sel)
{
    drop_from(sel, 0);
    free_blockers(sel);
    sel->scanning = true;
    sel->pages = 0;
    sel->trimmed = false;
    sel->left = false;
    sel->foreign = false;
    sel->corrupt = gb_ok();
    query(t, sel, gb_bytes(NULL, 0));
}

static void warn_keyed(struct gb_dbox_task *t)
{
    if (t->s->warned_keyed) return;
    t->s->warned_keyed = true;
    GB_LOG(GB_LOG_WARN,
           "outbox partition has ordering keys: each claim reads the whole partition from now on",
           gb_lf_str("table", t->s->table), gb_lf_str("partition", t->partition->name));
}

static void warn_pages(struct gb_dbox_task *t, const struct gb_dbox_select *sel)
{
    if (!sel->scanning || sel->pages <= PAGES_QUIET) return;
    GB_LOG(GB_LOG_WARN, "outbox claim had to read many pages", gb_lf_str("table", t->s->table),
           gb_lf_str("partition", t->partition->name), gb_lf_int("pages", (int64_t)sel->pages));
    struct gb_metric *m = gb_dbox_counter(t->s, t->partition, "DynamoDBOutboxClaimScanPages");
    if (m != NULL) gb_metric_add(m, sel->pages);
}

/* An index that was there when the program started (spec 05 §9.6, 3). */
static bool index_is_gone(struct gb_dbox_task *t, const struct gb_dbox_select *sel,
                          const struct gb_dynamodb_call *call)
{
    bool refused = call->error == GB_DYNAMODB_INVALID || call->error == GB_DYNAMODB_NO_TABLE;
    if (sel->scanning || !refused) return false;
    if (!t->s->warned_no_index) {
        t->s->warned_no_index = true;
        GB_LOG(GB_LOG_WARN,
               "ClaimIndex can't be queried: each claim reads the whole partition; create it",
               gb_lf_str("table", t->s->table), gb_lf_err(&call->op.result));
    }
    return true;
}

static bool has_keys(const struct gb_dbox_select *sel)
{
    if (sel->blockers.count > 0) return true;
    for (size_t i = 0; i < sel->count; i++) {
        if (sel->found[i]->target.key.size > 0) return true;
    }
    return false;
}

static void on_page(struct gb_dbox_request *r)
{
    struct gb_dbox_task *t = r->task;
    struct gb_dbox_select *sel = r->step;
    struct gb_dynamodb_items items;
    struct gb_bytes item;
    if (t->ending) return;
    if (gb_failed(r->call.op.result)) {
        if (index_is_gone(t, sel, &r->call)) {
            scan_instead(t, sel);
        } else {
            gb_dbox_end(t, r->call.op.result);
        }
        return;
    }
    sel->pages++;
    gb_dynamodb_items_init(&items, r->call.answer.items);
    while (gb_dynamodb_items_next(&items, &item)) {
        if (!take(t, sel, item)) return;
    }
    if (!sel->scanning && has_keys(sel)) {
        warn_keyed(t);
        scan_instead(t, sel);
        return;
    }
    bool enough = !sel->scanning && (sel->count >= sel->limit || sel->bytes > FOUND_BYTES_MAX);
    if (r->call.answer.last_key.size > 0 && !enough) {
        query(t, sel, r->call.answer.last_key);
    } else {
        warn_pages(t, sel);
        finish(t, sel);
    }
}

/* --- the query --- */

static void query(struct gb_dbox_task *t, struct gb_dbox_select *sel, struct gb_bytes last_key)
{
    static const struct gb_dynamodb_name names[] = {{"#status", "status"}};
    struct gb_dynamodb_call *call = &sel->request->call;
    bool scan = sel->scanning;
    gb_str_clear(&sel->scratch);
    gb_str_append(&sel->scratch, last_key); /* it lies in the answer that goes now */
    gb_dynamodb_begin(call, GB_DYNAMODB_QUERY, t->s->table);
    gb_dynamodb_text(call, GB_DYNAMODB_KEY_CONDITION,
                     scan ? "PK = :pk AND begins_with(SK, :prefix)" : "PK = :pk");
    gb_dynamodb_text(call, GB_DYNAMODB_FILTER,
                     scan ? "#status = :pending OR #status = :claimed"
                          : "#status = :pending OR (#status = :claimed AND (claim_version < "
                            ":version OR claimed_at < :cutoff))");
    gb_dynamodb_names(call, names, 1);
    gb_dynamodb_object(call, GB_DYNAMODB_VALUES);
    gb_dynamodb_w_s(&call->w, ":pk", t->partition->key);
    gb_dynamodb_w_s_c(&call->w, ":pending", "pending");
    gb_dynamodb_w_s_c(&call->w, ":claimed", "claimed");
    if (scan) {
        gb_dynamodb_w_s_c(&call->w, ":prefix", GB_DBOX_PREFIX);
    } else {
        gb_dynamodb_w_u64(&call->w, ":version", sel->token->version);
        gb_dynamodb_w_i64(&call->w, ":cutoff", sel->cutoff_ms);
    }
    gb_dynamodb_object_end(call);
    if (scan) {
        gb_dynamodb_flag(call, GB_DYNAMODB_CONSISTENT_READ);
    } else {
        gb_dynamodb_text(call, GB_DYNAMODB_INDEX, "ClaimIndex");
        gb_dynamodb_limit(call, sel->limit < PAGE_MAX ? sel->limit : PAGE_MAX);
    }
    gb_dynamodb_start_key(call, gb_str_bytes(&sel->scratch));
    if (sel->scratch.failed) call->aws.body.failed = true;
    gb_dbox_send(t, sel->request, on_page);
}

void gb_dbox_select_run(struct gb_dbox_task *t, struct gb_dbox_select *sel)
{
    sel->request->step = sel;
    query(t, sel, gb_bytes(NULL, 0));
}

void gb_dbox_select_deinit(struct gb_dbox_select *sel)
{
    drop_from(sel, 0);
    free(sel->found);
    free_blockers(sel);
    gb_str_deinit(&sel->scratch);
}
