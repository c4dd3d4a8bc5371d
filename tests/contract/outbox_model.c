#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "contract/outbox_contract.h"

/* The outbox as spec 05 §2 words it, over a plain array and without any cleverness; each answer of
 * the store must be the model's. */

enum { MODEL_ROWS = 800, PARTITIONS = 2, KEYS = 3, OWNERS = 2, LIMIT_MAX = 6, CLOCK_MAX_MS = 40 };

struct row {
    char envelope_id[16], id[40];
    int partition, key; /* key 0: keyless */
    int64_t created_ms, expires_ms, first_ms, claimed_ms;
    uint64_t seq, version;
    uint32_t replays;
    int owner; /* -1: none */
    enum gb_outbox_status status;
};
struct model {
    struct outbox_backend *b;
    uint64_t random;
    struct row rows[MODEL_ROWS];
    size_t count;
    uint64_t mark[PARTITIONS];
};

static const char *const partitions[PARTITIONS] = {"SESSION#s0", "SESSION#s1"};
static const char *const sessions[PARTITIONS] = {"s0", "s1"};
static const char *const keys[KEYS] = {"", "red", "green"};
static const char *const owners[OWNERS] = {"left", "right"};

static uint64_t draw(struct model *m, uint64_t bound)
{
    m->random ^= m->random << 13; /* xorshift64 */
    m->random ^= m->random >> 7;
    m->random ^= m->random << 17;
    return m->random % bound;
}

static bool live(const struct row *r)
{
    return r->status == GB_OUTBOX_PENDING || r->status == GB_OUTBOX_CLAIMED;
}

static bool older(const struct row *a, const struct row *b)
{
    if (a->created_ms != b->created_ms) return a->created_ms < b->created_ms;
    return a->seq < b->seq;
}

static void do_persist(struct model *m)
{
    if (m->count == MODEL_ROWS) return;
    struct row *r = &m->rows[m->count];
    bool again = m->count > 0 && draw(m, 5) == 0;
    struct row known = again ? m->rows[draw(m, m->count)] : (struct row){0};
    if (again) {
        *r = known;
    } else {
        *r = (struct row){.partition = (int)draw(m, PARTITIONS), .key = (int)draw(m, KEYS)};
        (void)snprintf(r->envelope_id, sizeof r->envelope_id, "e%zu", m->count);
        r->created_ms = m->b->driver.wall_ms - (draw(m, 4) == 0 ? (int64_t)draw(m, 50) : 0);
        r->expires_ms = draw(m, 4) == 0 ? m->b->driver.wall_ms + (int64_t)draw(m, 200) : 0;
    }
    r->owner = -1;
    r->seq = m->count + 1;
    struct gb_outbox_record record =
        outbox_record(&(struct outbox_spec){.envelope_id = r->envelope_id,
                                            .binding_id = "b",
                                            .session_id = sessions[r->partition],
                                            .key = keys[r->key],
                                            .created_at_ms = r->created_ms,
                                            .expires_at_ms = r->expires_ms});
    (void)snprintf(r->id, sizeof r->id, "%.*s", (int)record.id.size, (const char *)record.id.data);
    enum gb_code code = outbox_persist(m->b, &record, 1, NULL);
    assert_int_equal(code, again ? GB_DUPLICATE_RECORD : GB_OK);
    if (!again) m->count++;
}

static bool claimable(const struct model *m, const struct row *r, uint64_t version)
{
    if (r->status == GB_OUTBOX_PENDING) return true;
    if (r->version < version) return true;
    return m->b->stale_ms > 0 && m->b->driver.wall_ms - r->claimed_ms >= m->b->stale_ms;
}

/* The oldest row that may follow those taken: no older live row of its key is left out. */
static struct row *next_to_claim(struct model *m, int partition, uint64_t version,
                                 const bool *taken)
{
    struct row *best = NULL;
    for (size_t i = 0; i < m->count; i++) {
        struct row *r = &m->rows[i];
        if (r->partition != partition || !live(r) || taken[i] || !claimable(m, r, version))
            continue;
        bool blocked = false;
        for (size_t j = 0; j < m->count && r->key != 0; j++) {
            const struct row *other = &m->rows[j];
            if (other->partition == partition && other->key == r->key && live(other) && !taken[j] &&
                older(other, r))
                blocked = true;
        }
        if (!blocked && (best == NULL || older(r, best))) best = r;
    }
    return best;
}

static bool fence(struct model *m, int partition, uint64_t version)
{
    if (version == 0 || version < m->mark[partition]) return false;
    m->mark[partition] = version;
    return true;
}

static uint64_t draw_version(struct model *m, int partition)
{
    uint64_t mark = m->mark[partition];
    uint64_t kind = draw(m, 20);
    if (kind == 0) return mark + 1;
    if (kind == 1) return mark > 0 ? mark - 1 : 0;
    return mark > 0 ? mark : 1;
}

static void do_claim(struct model *m)
{
    int partition = (int)draw(m, PARTITIONS);
    int owner = (int)draw(m, OWNERS);
    uint64_t version = draw_version(m, partition);
    uint32_t limit = (uint32_t)draw(m, LIMIT_MAX);
    enum gb_code code = GB_OK;
    struct gb_outbox_batch *batch =
        outbox_claim(m->b, partitions[partition], owners[owner], version, limit, &code);
    bool accepted = fence(m, partition, version);
    assert_int_equal(code, accepted ? GB_OK : GB_STALE_FENCING_TOKEN);
    bool taken[MODEL_ROWS] = {false};
    size_t count = 0;
    while (accepted && count < limit) {
        struct row *r = next_to_claim(m, partition, version, taken);
        if (r == NULL) break;
        taken[r - m->rows] = true;
        r->replays++;
        if (r->first_ms == 0) r->first_ms = m->b->driver.wall_ms;
        assert_true(batch != NULL && count < batch->count);
        const struct gb_outbox_record *got = &batch->records[count++];
        assert_string_equal(outbox_envelope_id(got), r->envelope_id);
        assert_int_equal(got->replay_count, r->replays);
        assert_int_equal(got->first_attempted_at_ms, r->first_ms);
        assert_int_equal(got->claim_version, version);
    }
    assert_int_equal(batch == NULL ? 0 : batch->count, count);
    for (size_t i = 0; i < m->count; i++) {
        if (!taken[i]) continue;
        m->rows[i].status = GB_OUTBOX_CLAIMED;
        m->rows[i].owner = owner;
        m->rows[i].version = version;
        m->rows[i].claimed_ms = m->b->driver.wall_ms;
    }
    gb_outbox_batch_free(batch);
}

/* Mostly a claim that is held, by its owner; now and then anything at all. */
static void do_settle(struct model *m)
{
    if (m->count == 0) return;
    struct row *r = &m->rows[draw(m, m->count)];
    for (int i = 0; i < 200 && r->status != GB_OUTBOX_CLAIMED && draw(m, 100) != 0; i++)
        r = &m->rows[draw(m, m->count)];
    int owner = r->owner >= 0 && draw(m, 10) != 0 ? r->owner : (int)draw(m, OWNERS);
    uint64_t version = draw(m, 10) != 0 ? r->version : draw_version(m, r->partition);
    enum gb_outbox_settle_kind kind = draw(m, 3) == 0 ? GB_OUTBOX_RELEASE : GB_OUTBOX_COMPLETE;
    enum gb_code code = outbox_settle(m->b, kind, partitions[r->partition], gb_bytes_c(r->id),
                                      owners[owner], version);
    bool held =
        r->status == GB_OUTBOX_CLAIMED && r->owner == owner && r->version == version && version > 0;
    assert_int_equal(code, held ? GB_OK : GB_STALE_FENCING_TOKEN);
    if (!held) return;
    r->status = kind == GB_OUTBOX_COMPLETE ? GB_OUTBOX_COMPLETED : GB_OUTBOX_PENDING;
    r->owner = -1;
}

static void do_expire(struct model *m)
{
    int partition = (int)draw(m, PARTITIONS);
    uint64_t version = draw_version(m, partition);
    uint64_t expired = 0;
    uint64_t want = 0;
    int64_t cutoff_ms = m->b->driver.wall_ms;
    enum gb_code code =
        outbox_expire(m->b, partitions[partition], "left", version, cutoff_ms, &expired);
    bool accepted = fence(m, partition, version);
    assert_int_equal(code, accepted ? GB_OK : GB_STALE_FENCING_TOKEN);
    for (size_t i = 0; i < m->count && accepted; i++) {
        struct row *r = &m->rows[i];
        if (r->partition != partition || r->status != GB_OUTBOX_PENDING) continue;
        if (r->expires_ms == 0 || r->expires_ms >= cutoff_ms) continue;
        r->status = GB_OUTBOX_EXPIRED;
        want++;
    }
    assert_int_equal(expired, want);
}

static void check_counts(struct model *m)
{
    for (int p = 0; p < PARTITIONS; p++) {
        struct gb_outbox_stats want = {.mark = m->mark[p]};
        for (size_t i = 0; i < m->count; i++) {
            const struct row *r = &m->rows[i];
            if (r->partition != p) continue;
            if (r->status == GB_OUTBOX_CLAIMED) want.claimed++;
            if (r->status != GB_OUTBOX_PENDING) continue;
            want.pending++;
            if (want.oldest_pending_ms == 0 || r->created_ms < want.oldest_pending_ms)
                want.oldest_pending_ms = r->created_ms;
        }
        struct gb_outbox_stats got = outbox_stats(m->b, partitions[p]);
        assert_int_equal(got.pending, want.pending);
        assert_int_equal(got.claimed, want.claimed);
        assert_int_equal(got.oldest_pending_ms, want.oldest_pending_ms);
        assert_int_equal(got.mark, want.mark);
    }
}

void outbox_model_run(struct outbox_backend *b, uint64_t seed, size_t steps)
{
    static struct model m;
    m = (struct model){.b = b, .random = seed * 2 + 1};
    print_message("seed %llu, %zu steps; again with GB_TEST_SEED=%llu\n", (unsigned long long)seed,
                  steps, (unsigned long long)seed);
    for (size_t i = 0; i < steps; i++) {
        uint64_t kind = draw(&m, 100);
        if (kind < 25) {
            do_persist(&m);
        } else if (kind < 50) {
            do_claim(&m);
        } else if (kind < 90) {
            do_settle(&m);
        } else if (kind < 93) {
            do_expire(&m);
        } else if (kind < 96) {
            check_counts(&m);
        } else if (kind == 99 && b->durable && draw(&m, 4) == 0) {
            b->reopen(b);
        }
        b->driver.wall_ms += (int64_t)draw(&m, CLOCK_MAX_MS);
    }
    check_counts(&m);
    assert_true(m.count > steps / 20);
}
