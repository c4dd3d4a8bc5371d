#include "app/source.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/assert.h"
#include "io/file.h"
#include "io/worker.h"

static const uint64_t look_interval_ns = 1000000000ull; /* notify */
/* Between two readings, whatever is written: a shorter pace would only keep a processor busy. */
static const uint64_t shortest_ns = 10000000ull;

/* A change of it means that a file was written or replaced; its bytes decide. */
struct signature {
    uint64_t device, inode, size, seconds, nanoseconds;
};
struct reading { /* a copy of all the worker needs, and what it found */
    struct gb_job job;
    const char *const *paths;
    size_t count;
    bool all; /* else only if a signature differs from `before` */
    struct signature before[GB_BLUEPRINT_LAYERS_MAX], now[GB_BLUEPRINT_LAYERS_MAX];
    bool unchanged;
    enum gb_observation what;
    struct gb_str bytes[GB_BLUEPRINT_LAYERS_MAX];
    struct gb_source_texts texts; /* of `bytes` */
    struct gb_err err;
};
struct gb_source {
    struct gb_source_cfg cfg;
    struct gb_worker *worker;
    struct reading reading;
    bool busy, wanted; /* reading; once more behind it */
    struct gb_timer timer;
    uint64_t next_all_ns;
    bool settling; /* what was seen waits for its second reading */
    enum gb_observation seen;
    char seen_digest[GB_SHA256_HEX];
    char loaded[GB_SHA256_HEX]; /* "": none */
    enum gb_observation told;
    struct gb_op *close_op, worker_op;
};

void gb_source_digest(const struct gb_bytes *layers, size_t count, char out[GB_SHA256_HEX])
{
    uint8_t digest[GB_SHA256_SIZE];
    gb_sha256_parts(layers, count, 8, digest);
    gb_hex(gb_bytes(digest, sizeof digest), out);
}

/* --- on the worker --- */

/* Only a folder that can be read proves that a name is not in it (spec 07 §2.1). A link to nowhere
 * is a name: its target may sit on a file system that is not mounted right now. */
static bool is_missing(const char *path)
{
    struct gb_str folder = {0};
    const char *slash = strrchr(path, '/');
    if (slash == NULL) {
        gb_str_append_c(&folder, ".");
    } else {
        gb_str_append(&folder, gb_bytes(path, slash == path ? 1 : (size_t)(slash - path)));
    }
    struct stat st;
    bool missing = !folder.failed && access(folder.data, R_OK | X_OK) == 0 &&
                   lstat(path, &st) != 0 && errno == ENOENT;
    gb_str_deinit(&folder);
    return missing;
}

static bool signatures_differ(struct reading *r)
{
    memset(r->now, 0, sizeof r->now);
    for (size_t i = 0; i < r->count; i++) {
        struct stat st;
        if (stat(r->paths[i], &st) != 0) continue; /* all zero */
        r->now[i] = (struct signature){st.st_dev, st.st_ino, (uint64_t)st.st_size,
                                       (uint64_t)st.st_mtim.tv_sec, (uint64_t)st.st_mtim.tv_nsec};
    }
    return memcmp(r->now, r->before, sizeof r->now) != 0;
}

static void read_layers(struct gb_job *job)
{
    struct reading *r = GB_CONTAINER_OF(job, struct reading, job);
    struct gb_source_texts *t = &r->texts;
    *t = (struct gb_source_texts){.count = r->count};
    r->unchanged = !signatures_differ(r) && !r->all;
    r->err = gb_ok();
    r->what = GB_SOURCE_PRESENT;
    for (size_t i = 0; i < r->count && !r->unchanged && !gb_failed(r->err); i++) {
        r->err = gb_file_read(r->paths[i], GB_BLUEPRINT_SIZE_MAX, &r->bytes[i]);
        t->layers[i] = gb_str_bytes(&r->bytes[i]);
        t->too_large[i] = r->err.code == GB_PAYLOAD_TOO_LARGE;
        if (t->too_large[i]) r->err = gb_ok(); /* present, and refused later */
        if (!gb_failed(r->err)) continue;
        bool missing = i == 0 && r->err.code == GB_NOT_FOUND && is_missing(r->paths[i]);
        r->what = missing ? GB_SOURCE_MISSING : GB_SOURCE_READ_ERROR;
    }
    if (!r->unchanged && !gb_failed(r->err)) gb_source_digest(t->layers, t->count, t->digest);
}

/* --- on the loop --- */

static void start_reading(struct gb_source *s, bool all);

static uint64_t now_of(const struct gb_source *s)
{
    return gb_reactor_now_ns(gb_loop_reactor(s->cfg.loop));
}

static void wait_next(struct gb_source *s)
{
    uint64_t due_ns = s->next_all_ns;
    if (s->settling) {
        due_ns = now_of(s) + (uint64_t)s->cfg.debounce_ns;
    } else if (s->cfg.notify && now_of(s) + look_interval_ns < due_ns) {
        due_ns = now_of(s) + look_interval_ns;
    }
    uint64_t soonest_ns = now_of(s) + shortest_ns;
    gb_timer_start(&s->timer, due_ns < soonest_ns ? soonest_ns : due_ns);
}

static void on_timer(struct gb_timer *timer)
{
    struct gb_source *s = GB_CONTAINER_OF(timer, struct gb_source, timer);
    start_reading(s, s->settling || now_of(s) >= s->next_all_ns);
}

static void forget_texts(struct reading *r)
{
    for (size_t i = 0; i < r->count; i++) { /* a document holds secrets */
        if (r->bytes[i].data != NULL) gb_wipe(r->bytes[i].data, r->bytes[i].size);
        gb_str_deinit(&r->bytes[i]);
    }
}

static void tell(struct gb_source *s)
{
    const struct reading *r = &s->reading;
    enum gb_observation what = s->seen;
    if (what == GB_SOURCE_PRESENT && strcmp(s->seen_digest, s->loaded) == 0) {
        if (s->told == GB_SOURCE_SAME) return;
        what = GB_SOURCE_SAME;
    }
    if (what == GB_SOURCE_MISSING && s->told == GB_SOURCE_MISSING) return;
    s->told = what == GB_SOURCE_PRESENT ? GB_SOURCE_SAME : what;
    s->cfg.observed(s->cfg.arg, what, &r->texts, &r->err);
}

static bool agrees(const struct gb_source *s, const struct reading *r)
{
    if (s->seen != r->what) return false;
    return r->what != GB_SOURCE_PRESENT || strcmp(s->seen_digest, r->texts.digest) == 0;
}

/* Nothing new needs no second reading, and an error none either. */
static bool needs_none(const struct gb_source *s, const struct reading *r)
{
    if (r->what == GB_SOURCE_READ_ERROR) return true;
    if (r->what == GB_SOURCE_MISSING) return s->told == GB_SOURCE_MISSING;
    return strcmp(r->texts.digest, s->loaded) == 0;
}

/* True: it is to be told. */
static bool take(struct gb_source *s)
{
    struct reading *r = &s->reading;
    if (r->unchanged) return false;
    memcpy(r->before, r->now, sizeof r->before);
    bool told = needs_none(s, r) || (s->settling && agrees(s, r));
    s->settling = !told;
    s->seen = r->what;
    memcpy(s->seen_digest, r->texts.digest, sizeof s->seen_digest);
    s->next_all_ns = now_of(s) + (uint64_t)s->cfg.poll_interval_ns;
    return told;
}

static void read_done(struct gb_job *job)
{
    struct gb_source *s = GB_CONTAINER_OF(job, struct gb_source, reading.job);
    if (s->close_op == NULL && take(s)) tell(s);
    forget_texts(&s->reading);
    s->busy = false;
    if (s->close_op != NULL) return; /* the worker's end completes it */
    bool again = s->wanted && !s->settling;
    s->wanted = false;
    if (again) {
        start_reading(s, true);
    } else {
        wait_next(s);
    }
}

static void start_reading(struct gb_source *s, bool all)
{
    if (s->busy) {
        s->wanted = true;
        return;
    }
    s->busy = true;
    s->reading.job = (struct gb_job){.run = read_layers, .done = read_done};
    s->reading.paths = s->cfg.paths;
    s->reading.count = s->cfg.path_count;
    s->reading.all = all;
    gb_worker_submit(s->worker, &s->reading.job);
}

/* --- life --- */

struct gb_err gb_source_new(const struct gb_source_cfg *cfg, struct gb_source **out)
{
    GB_ASSERT(cfg->path_count <= GB_BLUEPRINT_LAYERS_MAX);
    struct gb_source *s = calloc(1, sizeof *s);
    if (s == NULL) return gb_err_no_memory("configuration source");
    s->cfg = *cfg;
    s->told = GB_SOURCE_SAME;
    struct gb_err err = gb_timer_init(&s->timer, gb_loop_reactor(cfg->loop), on_timer);
    if (!gb_failed(err)) err = gb_worker_new(cfg->loop, "config", &s->worker);
    if (gb_failed(err)) {
        gb_timer_deinit(&s->timer);
        free(s);
        return err;
    }
    start_reading(s, true); /* what happened since the document was read */
    *out = s;
    return gb_ok();
}

void gb_source_loaded(struct gb_source *s, const char digest[GB_SHA256_HEX])
{
    if (digest == NULL) {
        s->loaded[0] = '\0';
        if (s->told == GB_SOURCE_MISSING) s->told = GB_SOURCE_SAME;
    } else {
        memcpy(s->loaded, digest, sizeof s->loaded);
    }
}

void gb_source_check(struct gb_source *s)
{
    if (s->settling && !s->busy) return; /* its second reading is due within a debounce */
    gb_timer_stop(&s->timer);
    start_reading(s, true);
}

void gb_source_pace(struct gb_source *s, int64_t poll_interval_ns, int64_t debounce_ns, bool notify)
{
    s->cfg.poll_interval_ns = poll_interval_ns;
    s->cfg.debounce_ns = debounce_ns;
    s->cfg.notify = notify;
    s->next_all_ns = now_of(s) + (uint64_t)poll_interval_ns;
    if (!s->busy && !s->settling) wait_next(s);
}

static void worker_closed(struct gb_op *op, void *arg)
{
    struct gb_source *s = arg;
    struct gb_op *caller = s->close_op;
    struct gb_err result = op->result;
    gb_timer_deinit(&s->timer);
    free(s);
    gb_op_finish(caller, result);
}

void gb_source_close(struct gb_source *s, struct gb_op *op, gb_done_fn *done, void *arg)
{
    gb_op_start(op, gb_loop_reactor(s->cfg.loop), done, arg, NULL, s);
    s->close_op = op;
    gb_timer_stop(&s->timer);
    gb_worker_close(s->worker, &s->worker_op, worker_closed, s);
}
