#include "adapters/dynamodb/dynamodb_outbox_direct.h"

#include <stdlib.h>

/* The queue of direct records and the conditions under which one may be put (docs/decisions/0623).
 */

enum {
    RECORD_MAX = 48 * 1024, /* its ordinary row must fit an item, however it is escaped */
    QUEUE_BYTES_MAX = 32 * 1024 * 1024
};
#define FORGET_EVERY_MS INT64_C(10000)
#define SESSION_PREFIX "SESSION#"

/* --- entries --- */

static struct gb_bytes copy(char **at, struct gb_bytes from)
{
    struct gb_bytes view = gb_bytes(*at, from.size);
    if (from.size > 0) memcpy(*at, from.data, from.size);
    *at += from.size;
    return view;
}

static bool is_full(const struct gb_dbox *s)
{
    return s->direct.count >= s->cfg.direct_max || s->direct_bytes > QUEUE_BYTES_MAX;
}

static struct gb_dbox_direct *entry_new(struct gb_dbox *s, struct gb_dbox_partition *p,
                                        const struct gb_outbox_record *r, struct gb_bytes sort_key,
                                        const struct gb_token *token)
{
    size_t size = r->id.size + r->route_id.size + r->binding_id.size + r->session_id.size +
                  r->address.size + r->dispatch_headers.size + r->ordering_key.size +
                  sort_key.size + token->owner.size;
    struct gb_dbox_direct *e = calloc(1, sizeof *e + size);
    if (e == NULL) return NULL;
    char *at = e->memory;
    e->partition = p;
    e->record = *r;
    e->record.id = copy(&at, r->id);
    e->record.route_id = copy(&at, r->route_id);
    e->record.binding_id = copy(&at, r->binding_id);
    e->record.session_id = copy(&at, r->session_id);
    e->record.address = copy(&at, r->address);
    e->record.dispatch_headers = copy(&at, r->dispatch_headers);
    e->record.ordering_key = copy(&at, r->ordering_key);
    e->record.envelope = gb_envelope_ref(r->envelope);
    e->sort_key = copy(&at, sort_key);
    e->token = (struct gb_token){copy(&at, token->owner), token->version};
    e->bytes = sizeof *e + size + gb_envelope_size(r->envelope);
    if (gb_failed(gb_map_put(&s->direct, e->record.id, e))) {
        gb_envelope_unref(e->record.envelope);
        free(e);
        return NULL;
    }
    s->direct_bytes += e->bytes;
    p->users++;
    return e;
}

void gb_dbox_direct_free(struct gb_dbox *s, struct gb_dbox_direct *e)
{
    gb_map_remove(&s->direct, e->record.id);
    gb_list_remove(&e->node);
    s->direct_bytes -= e->bytes;
    e->partition->users--;
    gb_envelope_unref(e->record.envelope);
    free(e);
}

struct gb_dbox_direct *gb_dbox_direct_find(const struct gb_dbox *s, struct gb_bytes id)
{
    return id.size == 0 ? NULL : gb_map_get(&s->direct, id);
}

bool gb_dbox_direct_is_pending(const struct gb_dbox_direct *e)
{
    return e->state == GB_DBOX_DIRECT_PUTTING || e->state == GB_DBOX_DIRECT_QUEUED ||
           (e->state == GB_DBOX_DIRECT_LEAVING && e->pending);
}

static void leave(struct gb_dbox_direct *e, bool pending)
{
    e->state = GB_DBOX_DIRECT_LEAVING;
    e->pending = pending;
    gb_list_push(&e->partition->leaving, &e->node);
}

struct gb_dbox_direct *gb_dbox_direct_stray(struct gb_dbox *s, struct gb_dbox_partition *p,
                                            const struct gb_dbox_row *row)
{
    const struct gb_token token = {row->claimed_by, row->record.claim_version};
    struct gb_dbox_direct *e = entry_new(s, p, &row->record, row->sort_key, &token);
    if (e != NULL) leave(e, false);
    return e;
}

bool gb_dbox_direct_hold(struct gb_dbox *s, struct gb_dbox_partition *p,
                         const struct gb_dbox_row *row, const struct gb_token *token)
{
    if (s->cfg.holds == NULL || row->record.ordering_key.size == 0) return true;
    struct gb_dbox_direct *e = gb_dbox_direct_find(s, row->record.id);
    if (e != NULL && !e->indexed) return false;
    if (e != NULL) gb_dbox_direct_free(s, e); /* of a claim that ended here unnoticed */
    e = is_full(s) ? NULL : entry_new(s, p, &row->record, row->sort_key, token);
    if (e == NULL) return false;
    e->indexed = true;
    e->handed_ms = gb_dbox_now_ms(s);
    e->state = GB_DBOX_DIRECT_HANDED;
    gb_list_push(&p->handed, &e->node);
    return true;
}

/* What is left when nobody can write any more is found by the next owner's sweep. */
void gb_dbox_direct_deinit(struct gb_dbox *s)
{
    size_t cursor = 0;
    struct gb_bytes id;
    void *value;
    while (gb_map_next(&s->direct, &cursor, &id, &value)) gb_dbox_direct_free(s, value);
    gb_map_deinit(&s->direct);
    s->direct = (struct gb_map){0};
}

/* --- order --- */

static int compare(const struct gb_outbox_record *x, const struct gb_outbox_record *y)
{
    if (x->created_at_ms != y->created_at_ms) return x->created_at_ms < y->created_at_ms ? -1 : 1;
    if (x->seq != y->seq) return x->seq < y->seq ? -1 : 1;
    return gb_bytes_compare(x->envelope->id, y->envelope->id);
}

/* Nearly always the youngest; the oldest, if it was released. */
static void enqueue(struct gb_dbox_direct *e)
{
    struct gb_list *queue = &e->partition->queued;
    struct gb_list_node *at = &queue->head;
    struct gb_list_node *head = gb_list_first(queue);
    if (head != NULL &&
        compare(&e->record, &GB_CONTAINER_OF(head, struct gb_dbox_direct, node)->record) < 0)
        at = head;
    while (at->prev != &queue->head) {
        const struct gb_dbox_direct *before =
            GB_CONTAINER_OF(at->prev, struct gb_dbox_direct, node);
        if (compare(&before->record, &e->record) <= 0) break;
        at = at->prev;
    }
    e->state = GB_DBOX_DIRECT_QUEUED;
    gb_list_insert_before(at, &e->node);
}

/* --- may a record go this way? --- */

bool gb_dbox_direct_holds(const struct gb_dbox *s, const struct gb_dbox_partition *p,
                          const struct gb_token *token)
{
    struct gb_token now = {0};
    return s->cfg.holds != NULL && s->cfg.holds(s->cfg.holds_arg, p->key, &now) &&
           gb_token_valid(&now) && now.version == token->version &&
           gb_bytes_equal(now.owner, token->owner);
}

static bool is_current(const struct gb_dbox_partition *p, const struct gb_token *token)
{
    return p->version == token->version && gb_bytes_equal(gb_str_bytes(&p->owner), token->owner);
}

/* Of a key, no other process may bring records, and none may be in the indexes: those are looked
 * for when they may be claimed, but this one is not then. */
static bool key_is_free(const struct gb_dbox *s, struct gb_dbox_partition *p,
                        const struct gb_outbox_record *r)
{
    if (r->ordering_key.size == 0) return true;
    if (strncmp(p->name, SESSION_PREFIX, sizeof SESSION_PREFIX - 1) != 0) return false;
    bool clean = p->keyed_clean && p->clean_ms >= p->owned_ms + s->keyed_after_ms;
    p->keyed_wish = p->keyed_wish || !clean;
    return clean;
}

/* What is not held any more is the next owner's, whose sweep finds it. Should it be us again, under
 * the same token, then so does ours. */
static void forget_lost(struct gb_dbox *s)
{
    size_t cursor = 0;
    struct gb_bytes id;
    void *value;
    int64_t age_ms = gb_dbox_now_ms(s) - s->forgot_ms;
    if (s->forgot_ms != 0 && age_ms >= 0 && age_ms < FORGET_EVERY_MS) return;
    s->forgot_ms = gb_dbox_now_ms(s);
    while (gb_map_next(&s->direct, &cursor, &id, &value)) {
        struct gb_dbox_direct *e = value;
        if (e->running || e->state == GB_DBOX_DIRECT_PUTTING) continue;
        if (gb_dbox_direct_holds(s, e->partition, &e->token)) continue;
        gb_dbox_sweep_later(s, e->partition);
        e->partition->keyed_clean = false;
        gb_dbox_direct_free(s, e);
    }
}

static bool has_room(struct gb_dbox *s, const struct gb_outbox_record *r)
{
    if (gb_envelope_size(r->envelope) + r->dispatch_headers.size > RECORD_MAX) return false;
    if (is_full(s)) forget_lost(s);
    return !is_full(s);
}

struct gb_dbox_direct *gb_dbox_direct_begin(struct gb_dbox *s, struct gb_dbox_partition *p,
                                            const struct gb_outbox_record *r)
{
    const struct gb_token token = {gb_str_bytes(&p->owner), p->version};
    if (!p->swept || !p->backlog_empty || p->mark != p->version || p->raised_ms == 0) return NULL;
    if (!has_room(s, r) || gb_dbox_direct_find(s, r->id) != NULL) return NULL;
    if (!gb_dbox_direct_holds(s, p, &token) || !key_is_free(s, p, r)) return NULL;
    struct gb_str sort_key = {0};
    gb_dbox_sort_key(&sort_key, r->envelope->id, r->binding_id);
    struct gb_dbox_direct *e =
        sort_key.failed ? NULL : entry_new(s, p, r, gb_str_bytes(&sort_key), &token);
    gb_str_deinit(&sort_key);
    return e;
}

bool gb_dbox_direct_may_stay(const struct gb_dbox *s, const struct gb_dbox_direct *e)
{
    const struct gb_dbox_partition *p = e->partition;
    return e->state == GB_DBOX_DIRECT_HANDED && !e->indexed && is_current(p, &e->token) &&
           p->mark == e->token.version && p->raised_ms != 0 &&
           gb_dbox_direct_holds(s, p, &e->token);
}

bool gb_dbox_direct_landed(struct gb_dbox *s, struct gb_dbox_direct *e)
{
    if (is_current(e->partition, &e->token) && gb_dbox_direct_holds(s, e->partition, &e->token)) {
        enqueue(e);
        return true;
    }
    leave(e, true);
    return false;
}

void gb_dbox_direct_requeue(struct gb_dbox_direct *e)
{
    gb_list_remove(&e->node);
    enqueue(e);
}

/* --- hand-out --- */

static bool has_older(const struct gb_list *list, const struct gb_dbox_direct *e)
{
    struct gb_list_node *node = gb_list_first(list);
    for (; node != NULL; node = gb_list_next(list, node)) {
        const struct gb_dbox_direct *other = GB_CONTAINER_OF(node, struct gb_dbox_direct, node);
        if (gb_bytes_equal(other->record.ordering_key, e->record.ordering_key) &&
            compare(&other->record, &e->record) < 0)
            return true;
    }
    return false;
}

/* One in front of it, of its key, that this claim does not return: it is handed out or on its way
 * into the indexes. `keys` are those that were found to be blocked on the way through the queue:
 * what follows them is, too. */
static bool is_blocked(const struct gb_dbox_direct *e, struct gb_map *keys)
{
    if (e->record.ordering_key.size == 0) return false;
    if (gb_map_has(keys, e->record.ordering_key)) return true;
    if (!has_older(&e->partition->handed, e) && !has_older(&e->partition->leaving, e)) return false;
    (void)gb_map_put(keys, e->record.ordering_key, NULL); /* without it, it is looked up again */
    return true;
}

static struct gb_err add(struct gb_dbox_direct *e, int64_t now_ms, struct gb_outbox_batch *batch)
{
    struct gb_outbox_record r = e->record;
    r.claim_version = e->token.version;
    if (r.replay_count < UINT32_MAX) r.replay_count++;
    if (r.first_attempted_at_ms == 0) r.first_attempted_at_ms = now_ms;
    r.envelope = gb_envelope_ref(r.envelope);
    struct gb_err err = gb_outbox_batch_add(batch, &r);
    if (gb_failed(err)) {
        gb_envelope_unref(r.envelope);
        return err;
    }
    e->record.replay_count = r.replay_count;
    e->record.first_attempted_at_ms = r.first_attempted_at_ms;
    e->handed_ms = now_ms;
    e->state = GB_DBOX_DIRECT_HANDED;
    return err;
}

struct gb_err gb_dbox_direct_hand_out(struct gb_dbox *s, struct gb_dbox_partition *p,
                                      uint32_t limit, struct gb_outbox_batch **out)
{
    struct gb_outbox_batch *batch = NULL;
    struct gb_list taken; /* they block nothing in this claim */
    struct gb_map keys = {0};
    int64_t now_ms = gb_dbox_now_ms(s);
    struct gb_err err = gb_outbox_batch_new(limit, &batch);
    struct gb_list_node *node = gb_list_first(&p->queued);
    gb_list_init(&taken);
    while (node != NULL && !gb_failed(err) && batch->count < limit) {
        struct gb_dbox_direct *e = GB_CONTAINER_OF(node, struct gb_dbox_direct, node);
        node = gb_list_next(&p->queued, node);
        if (is_blocked(e, &keys)) continue;
        err = add(e, now_ms, batch);
        if (gb_failed(err)) break;
        gb_list_remove(&e->node);
        gb_list_push(&taken, &e->node);
    }
    gb_list_splice(&p->handed, &taken);
    gb_map_deinit(&keys);
    if (batch != NULL && batch->count > 0) {
        *out = batch; /* cut short by lack of memory: the rest stays queued */
        return gb_ok();
    }
    gb_outbox_batch_free(batch);
    return err;
}

uint32_t gb_dbox_direct_ready(const struct gb_dbox_partition *p, uint32_t limit)
{
    uint32_t count = 0;
    struct gb_map keys = {0};
    struct gb_list_node *node = gb_list_first(&p->queued);
    for (; node != NULL && count < limit; node = gb_list_next(&p->queued, node)) {
        const struct gb_dbox_direct *e = GB_CONTAINER_OF(node, struct gb_dbox_direct, node);
        const struct gb_outbox_record *r = &e->record;
        if (!p->backlog_empty && (r->created_at_ms > p->backlog_ms ||
                                  (r->created_at_ms == p->backlog_ms && r->seq >= p->backlog_seq)))
            break;
        count += !is_blocked(e, &keys);
    }
    gb_map_deinit(&keys);
    return count;
}

void gb_dbox_note_indexed(struct gb_dbox_partition *p, const struct gb_outbox_record *r)
{
    p->index_events++;
    if (r->ordering_key.size > 0) {
        p->keyed_events++;
        p->keyed_clean = false;
    }
    if (p->backlog_empty || r->created_at_ms < p->backlog_ms ||
        (r->created_at_ms == p->backlog_ms && r->seq < p->backlog_seq)) {
        p->backlog_ms = r->created_at_ms;
        p->backlog_seq = r->seq;
    }
    p->backlog_empty = false;
}

void gb_dbox_note_released(struct gb_dbox_partition *p)
{
    p->index_events++;
    p->keyed_events++;
    p->keyed_clean = false;
    p->backlog_empty = false;
    p->backlog_ms = INT64_MIN;
}
