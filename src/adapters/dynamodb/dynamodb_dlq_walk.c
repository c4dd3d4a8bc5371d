#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/dynamodb/dynamodb_dlq_parts.h"
#include "base/duration.h"

/* List, removal and count: pages of an index or, without route and category, of the table (spec 05
 * §9.6). */

enum { LIST_DEFAULT = 100, LIST_MAX = 10000, REMOVAL_PAGE = 100 };

struct pick {
    struct gb_ddlq_key key;
    struct gb_dlq_entry *entry; /* of a list */
};
struct walk {
    struct gb_dynamodb_task task;
    struct gb_ddlq *s;
    struct gb_dlq_list *list; /* one of the three */
    struct gb_dlq_delete *removal;
    struct gb_dlq_count *count;
    struct gb_dlq_filter filter;
    int64_t since_ms, until_ms; /* both inclusive */
    const char *index;          /* NULL: the table is scanned */
    size_t limit;               /* the oldest so many; 0: a removal of all */
    int64_t pages;
    bool resumed;       /* began at s->resume and has not come back to the start */
    struct pick *picks; /* oldest first */
    size_t pick_count, capacity, at;
    struct gb_str last_key; /* where the page in hand ended; empty: it was the last */
};

static struct walk *walk_of(struct gb_dynamodb_task *t)
{
    return GB_CONTAINER_OF(t, struct walk, task);
}

static void drop_picks(struct walk *w)
{
    while (w->pick_count > 0) gb_dlq_entry_free(w->picks[--w->pick_count].entry);
}

static void walk_deinit(struct gb_dynamodb_task *t)
{
    struct walk *w = walk_of(t);
    drop_picks(w);
    free(w->picks);
    gb_str_deinit(&w->last_key);
}

/* --- requests --- */

static bool is_given(const char *text)
{
    return text != NULL && text[0] != '\0';
}

static void write_values(struct walk *w, struct gb_json_writer *j)
{
    gb_dynamodb_w_i64(j, ":since", w->since_ms);
    gb_dynamodb_w_i64(j, ":until", w->until_ms);
    if (is_given(w->filter.route_id)) gb_dynamodb_w_s_c(j, ":route", w->filter.route_id);
    if (is_given(w->filter.category)) gb_dynamodb_w_s_c(j, ":category", w->filter.category);
}

#define WINDOW "failed_at BETWEEN :since AND :until"

/* An empty text was not stored: the row has no such attribute. */
static void write_filter(const struct walk *w, struct gb_dynamodb_call *call)
{
    const struct gb_dlq_filter *f = &w->filter;
    char text[160] = "";
    const char *parts[3] = {0};
    size_t count = 0;
    if (w->index == NULL) parts[count++] = WINDOW;
    if (f->route_id != NULL && !is_given(f->route_id))
        parts[count++] = "attribute_not_exists(route_id)";
    if (f->category != NULL && !is_given(f->category)) {
        parts[count++] = "attribute_not_exists(category)";
    } else if (is_given(f->category) && is_given(f->route_id)) {
        parts[count++] = "category = :category";
    }
    for (size_t i = 0, size = 0; i < count; i++) {
        size += (size_t)snprintf(text + size, sizeof text - size, "%s%s", i == 0 ? "" : " AND ",
                                 parts[i]);
    }
    if (count > 0) gb_dynamodb_text(call, GB_DYNAMODB_FILTER, text);
}

static void page_done(struct gb_dynamodb_task *t);

static void send_page(struct walk *w)
{
    struct gb_dynamodb_call *call = &w->task.call;
    bool query = w->index != NULL;
    gb_dynamodb_begin(call, query ? GB_DYNAMODB_QUERY : GB_DYNAMODB_SCAN, w->s->desk.table);
    if (w->count != NULL) {
        gb_dynamodb_flag(call, GB_DYNAMODB_COUNT_ONLY);
    } else {
        if (query) gb_dynamodb_text(call, GB_DYNAMODB_INDEX, w->index);
        if (query) {
            gb_dynamodb_text(call, GB_DYNAMODB_KEY_CONDITION,
                             is_given(w->filter.route_id) ? "route_id = :route AND " WINDOW
                                                          : "category = :category AND " WINDOW);
        }
        write_filter(w, call);
        gb_dynamodb_object(call, GB_DYNAMODB_VALUES);
        write_values(w, &call->w);
        gb_dynamodb_object_end(call);
        if (w->removal != NULL) gb_dynamodb_text(call, GB_DYNAMODB_PROJECTION, "PK, failed_at");
        if (query) {
            size_t wanted = w->limit == 0 || w->limit > REMOVAL_PAGE ? REMOVAL_PAGE : w->limit + 1;
            gb_dynamodb_limit(call, (uint32_t)wanted);
        }
    }
    gb_dynamodb_start_key(call, gb_str_bytes(&w->last_key));
    if (w->last_key.failed) call->aws.body.failed = true;
    w->pages++;
    gb_dynamodb_task_send(&w->task, page_done);
}

/* --- picking the oldest of a page --- */

static struct gb_err grow(struct walk *w)
{
    if (w->pick_count < w->capacity) return gb_ok();
    size_t wanted = w->capacity == 0 ? LIST_DEFAULT : w->capacity * 2;
    struct pick *picks = realloc(w->picks, wanted * sizeof *picks);
    if (picks == NULL) return gb_err_no_memory("a list of DLQ entries");
    w->picks = picks;
    w->capacity = wanted;
    return gb_ok();
}

/* Where the key belongs, behind all that are not younger. */
static size_t place_of(const struct walk *w, const struct gb_ddlq_key *key)
{
    size_t low = 0;
    size_t high = w->pick_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (gb_ddlq_key_compare(&w->picks[middle].key, key) <= 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static struct gb_err insert(struct walk *w, const struct pick *pick)
{
    struct gb_err err = grow(w);
    if (gb_failed(err)) return err;
    size_t at = place_of(w, &pick->key);
    memmove(&w->picks[at + 1], &w->picks[at], (w->pick_count - at) * sizeof *w->picks);
    w->picks[at] = *pick;
    w->pick_count++;
    if (w->limit > 0 && w->pick_count > w->limit)
        gb_dlq_entry_free(w->picks[--w->pick_count].entry);
    return err;
}

static struct gb_err take_item(struct walk *w, const struct gb_dynamodb_source *from,
                               struct gb_bytes item, int64_t *failed_at_ms)
{
    struct pick pick = {.entry = NULL};
    struct gb_err err = gb_ddlq_key_read(from, item, &w->task.scratch, &pick.key);
    if (gb_failed(err)) return err;
    *failed_at_ms = pick.key.failed_at_ms;
    bool full = w->limit > 0 && w->pick_count == w->limit;
    if (full && place_of(w, &pick.key) == w->pick_count) return err;
    if (w->list != NULL) err = gb_ddlq_entry_read(from, item, &w->task.scratch, &pick.entry);
    if (!gb_failed(err)) err = insert(w, &pick);
    if (gb_failed(err)) gb_dlq_entry_free(pick.entry);
    return err;
}

/* A row that can't be read is left out: it must not hide the others from the operator. */
static struct gb_err take_page(struct walk *w, int64_t *last_ms)
{
    const struct gb_dynamodb_source from = {w->s->desk.table, w->index != NULL ? w->index : "Scan"};
    struct gb_dynamodb_items items;
    struct gb_bytes item;
    struct gb_err err = gb_ok();
    gb_dynamodb_items_init(&items, w->task.call.answer.items);
    while (!gb_failed(err) && gb_dynamodb_items_next(&items, &item)) {
        err = take_item(w, &from, item, last_ms);
        if (err.code != GB_INVALID_OUTBOX_RECORD) continue;
        uint64_t unlogged = 0;
        if (gb_log_allow(&w->s->row_log, gb_reactor_now_ns(w->s->desk.reactor), GB_MINUTE,
                         &unlogged)) {
            GB_LOG(GB_LOG_ERROR, "DLQ row can't be read and is left out; repair or delete it",
                   gb_lf_str("table", w->s->desk.table), gb_lf_err(&err),
                   gb_lf_int("suppressed", (int64_t)unlogged));
        }
        err = gb_ok();
    }
    return err;
}

/* --- ends --- */

static void finish_list(struct walk *w)
{
    struct gb_dlq_list *q = w->list;
    if (w->pick_count > 0) {
        q->entries = calloc(w->pick_count, sizeof *q->entries);
        if (q->entries == NULL) {
            gb_dynamodb_task_end(&w->task, gb_err_no_memory("a list of DLQ entries"));
            return;
        }
        for (size_t i = 0; i < w->pick_count; i++) q->entries[i] = w->picks[i].entry;
    }
    q->count = w->pick_count;
    w->pick_count = 0; /* the caller's now */
    gb_dynamodb_task_end(&w->task, gb_ok());
}

static void warn_truncated(struct walk *w)
{
    uint64_t unlogged = 0;
    if (!gb_log_allow(&w->s->scan_log, gb_reactor_now_ns(w->s->desk.reactor), GB_MINUTE, &unlogged))
        return;
    GB_LOG(GB_LOG_WARN,
           "DLQ scan ended at max_scan_pages: its answer is not complete; name a route or category",
           gb_lf_str("table", w->s->desk.table), gb_lf_int("pages", w->pages),
           gb_lf_int("suppressed", (int64_t)unlogged));
}

/* --- from page to page --- */

static void remove_next(struct walk *w);

/* True: another page is under way. */
static bool go_on(struct walk *w)
{
    bool ended = w->last_key.size == 0;
    bool removes_all = w->removal != NULL && w->limit == 0;
    if (w->index == NULL && !ended && w->s->max_pages >= 0 && w->pages >= w->s->max_pages) {
        warn_truncated(w);
        if (!removes_all) return false;
        gb_str_clear(&w->s->resume);
        gb_str_append(&w->s->resume, gb_str_bytes(&w->last_key));
        if (w->s->resume.failed) gb_str_clear(&w->s->resume);
        return false;
    }
    if (ended && w->index == NULL && removes_all) gb_str_clear(&w->s->resume);
    if (ended && !w->resumed) return false;
    if (ended) w->resumed = false; /* what lies before the place where it began */
    send_page(w);
    return true;
}

static void page_taken(struct walk *w, int64_t last_ms)
{
    bool full = w->limit > 0 && w->pick_count == w->limit;
    /* An index is in the order of failed_at; ids of the same moment are in none. */
    bool enough =
        w->index != NULL && full && last_ms > w->picks[w->pick_count - 1].key.failed_at_ms;
    bool page_first = w->removal != NULL && w->limit == 0; /* before the next one is read */
    if (!page_first && !enough && go_on(w)) return;
    if (w->list != NULL) {
        finish_list(w);
    } else if (w->count != NULL) {
        gb_dynamodb_task_end(&w->task, gb_ok());
    } else {
        w->at = 0;
        remove_next(w);
    }
}

static void page_done(struct gb_dynamodb_task *t)
{
    struct walk *w = walk_of(t);
    int64_t last_ms = INT64_MIN;
    struct gb_err err = t->call.op.result;
    if (!gb_failed(err)) {
        gb_str_clear(&w->last_key);
        gb_str_append(&w->last_key, t->call.answer.last_key);
        err = gb_str_check(&w->last_key, "a page of DLQ entries"); /* an empty one is the last */
    }
    if (!gb_failed(err) && w->count != NULL) {
        w->count->count += t->call.answer.count;
    } else if (!gb_failed(err)) {
        err = take_page(w, &last_ms);
    }
    if (gb_failed(err)) {
        gb_dynamodb_task_end(t, err);
    } else {
        page_taken(w, last_ms);
    }
}

/* --- deletes, one after the other --- */

static const char *id_at(const struct walk *w)
{
    return w->removal->ids != NULL ? w->removal->ids[w->at] : w->picks[w->at].key.id;
}

/* What could be in the table at all. */
static bool is_id(const char *id)
{
    return id[0] != '\0' && strlen(id) < GB_DDLQ_ID_SIZE;
}

/* An attempt without an answer that is followed by a failed condition was what removed the row. */
static void deleted(struct gb_dynamodb_task *t)
{
    struct walk *w = walk_of(t);
    const struct gb_dynamodb_call *call = &t->call;
    bool absent = call->error == GB_DYNAMODB_CONDITION_FAILED;
    if (gb_failed(call->op.result) && !absent) {
        gb_dynamodb_task_end(t, call->op.result);
        return;
    }
    if (!absent || call->outcome == GB_DYNAMODB_OUTCOME_UNKNOWN) w->removal->deleted++;
    w->at++;
    remove_next(w);
}

static void remove_next(struct walk *w)
{
    struct gb_dynamodb_call *call = &w->task.call;
    size_t count = w->removal->ids != NULL ? w->removal->id_count : w->pick_count;
    while (w->at < count && !is_id(id_at(w))) w->at++;
    if (w->at == count) {
        drop_picks(w);
        bool paged = w->removal->ids == NULL && w->limit == 0;
        if (!paged || !go_on(w)) gb_dynamodb_task_end(&w->task, gb_ok());
        return;
    }
    gb_dynamodb_begin(call, GB_DYNAMODB_DELETE_ITEM, w->s->desk.table);
    call->repeatable = true; /* the condition fails the second time */
    gb_ddlq_write_key(call, id_at(w));
    gb_dynamodb_text(call, GB_DYNAMODB_CONDITION, "attribute_exists(PK)");
    gb_dynamodb_task_send(&w->task, deleted);
}

/* --- the port --- */

static struct walk *walk_new(struct gb_dlq *d, struct gb_op *op, gb_done_fn *done, void *arg)
{
    struct gb_ddlq *s = gb_ddlq_of(d);
    struct walk *w = gb_dynamodb_task_new(&s->desk, sizeof *w, op, done, arg);
    if (w == NULL) return NULL;
    w->s = s;
    w->task.deinit = walk_deinit;
    return w;
}

/* False: nothing can match. */
static bool set_filter(struct walk *w, const struct gb_dlq_filter *f)
{
    w->filter = *f;
    w->since_ms = f->since_ms != 0 ? f->since_ms : INT64_MIN;
    w->until_ms = INT64_MAX;
    if (f->before_ms == INT64_MIN) return false;
    if (f->before_ms != 0) w->until_ms = f->before_ms - 1;
    if (is_given(f->route_id)) {
        w->index = "RouteIndex";
    } else if (is_given(f->category)) {
        w->index = "CategoryIndex";
    }
    return w->since_ms <= w->until_ms;
}

void gb_ddlq_list(struct gb_dlq *d, struct gb_dlq_list *q, gb_done_fn *done, void *arg)
{
    q->entries = NULL;
    q->count = 0;
    struct walk *w = walk_new(d, &q->op, done, arg);
    if (w == NULL) return;
    w->list = q;
    w->limit = q->filter.limit > 0 ? (size_t)q->filter.limit : LIST_DEFAULT;
    if (w->limit > LIST_MAX) w->limit = LIST_MAX;
    if (set_filter(w, &q->filter)) {
        send_page(w);
    } else {
        gb_dynamodb_task_end(&w->task, gb_ok());
    }
}

void gb_ddlq_remove(struct gb_dlq *d, struct gb_dlq_delete *q, gb_done_fn *done, void *arg)
{
    q->deleted = 0;
    struct walk *w = walk_new(d, &q->op, done, arg);
    if (w == NULL) return;
    w->removal = q;
    if (q->ids != NULL) {
        remove_next(w);
        return;
    }
    w->limit = q->filter.limit > 0 ? (size_t)q->filter.limit : 0;
    if (w->limit > LIST_MAX) w->limit = LIST_MAX;
    if (!set_filter(w, &q->filter)) {
        gb_dynamodb_task_end(&w->task, gb_ok());
        return;
    }
    w->resumed = w->index == NULL && w->limit == 0 && w->s->resume.size > 0;
    if (w->resumed) gb_str_append(&w->last_key, gb_str_bytes(&w->s->resume));
    send_page(w);
}

void gb_ddlq_count(struct gb_dlq *d, struct gb_dlq_count *q, gb_done_fn *done, void *arg)
{
    q->count = 0;
    struct walk *w = walk_new(d, &q->op, done, arg);
    if (w == NULL) return;
    w->count = q;
    send_page(w);
}
