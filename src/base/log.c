#include "base/log.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h> /* gb-exception: the logger stamps lines of threads that have no reactor */
#include <unistd.h>

#include "base/assert.h"
#include "base/bytes.h"
#include "base/duration.h"

/* At most PIPE_BUF, so that a pipe takes a line whole and lines of two threads never mix. */
enum { LINE_MAX_BYTES = 4096, INSTANCE_MAX_BYTES = 255, NUMBER_MAX = 20 };
/* How long a full pipe may hold up the process, once until its reader reads again. */
enum { STALL_MAX_MS = 200 };

static const char cut_tail[] = ",\"log_cut\":true}\n";
/* What every line keeps free: a closing quote and the longer of the two ends. */
enum { BODY_MAX = LINE_MAX_BYTES - (int)sizeof cut_tail - 1 };

struct line {
    size_t size;
    bool cut;
    char text[LINE_MAX_BYTES];
};

/* The sink and the instance are set before a second thread starts (log.h). */
static struct {
    atomic_int level;
    gb_log_sink_fn *sink;
    void *sink_arg;
    char instance[INSTANCE_MAX_BYTES + 1];
    pthread_mutex_t output; /* guards what follows, and the room that poll() found */
    bool stalled;           /* the reader of stderr did not read in time */
    bool torn;              /* the last text lacks its end */
    uint64_t lost;          /* texts that were not written since the reader stalled */
} logger = {.level = GB_LOG_INFO, .output = PTHREAD_MUTEX_INITIALIZER};

static const char *const level_names[] = {
    [GB_LOG_DEBUG] = "DEBUG",
    [GB_LOG_INFO] = "INFO",
    [GB_LOG_WARN] = "WARN",
    [GB_LOG_ERROR] = "ERROR",
};
enum { LEVEL_COUNT = sizeof level_names / sizeof level_names[0] };

/* --- the line --- */

static bool fits(struct line *line, size_t size)
{
    bool fit = line->size + size <= BODY_MAX;
    if (!fit) line->cut = true;
    return fit;
}

static void put_raw(struct line *line, const char *text, size_t size)
{
    GB_ASSERT(size <= LINE_MAX_BYTES - line->size);
    memcpy(line->text + line->size, text, size);
    line->size += size;
}

/* Length of the UTF-8 sequence at `p`; 0 when it is malformed or cut by the end of the text. */
static size_t sequence_length(const char *p)
{
    unsigned char lead = (unsigned char)*p;
    size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC0 ? 2 : 1;
    if (strnlen(p, length) < length) return 0;
    return gb_utf8_valid(gb_bytes(p, length)) ? length : 0;
}

/* One character of `*p` as JSON: itself, or an escape in `escape`; moves `*p` on. */
static struct gb_bytes next_escaped(const char **p, char escape[8])
{
    unsigned char c = (unsigned char)**p;
    size_t length = sequence_length(*p);
    struct gb_bytes piece = gb_bytes(*p, length);
    if (length == 0) {
        piece = gb_bytes_c("\\ufffd");
    } else if (c == '"' || c == '\\') {
        escape[0] = '\\';
        escape[1] = (char)c;
        piece = gb_bytes(escape, 2);
    } else if (c < 0x20 || c == 0x7F) {
        piece = gb_bytes(escape, (size_t)snprintf(escape, 8, "\\u%04x", c));
    }
    *p += length == 0 ? 1 : length;
    return piece;
}

/* A JSON string; what does not fit is left out, the closing quote always fits. */
static void put_string(struct line *line, const char *text)
{
    char escape[8];
    put_raw(line, "\"", 1);
    for (const char *p = text; *p != '\0';) {
        struct gb_bytes piece = next_escaped(&p, escape);
        if (!fits(line, piece.size)) break;
        put_raw(line, (const char *)piece.data, piece.size);
    }
    put_raw(line, "\"", 1);
}

/* Writes `,"key":` when it and the start of a value fit. */
static bool put_key(struct line *line, const char *key)
{
    size_t size = strlen(key);
    if (!fits(line, size + 4 + NUMBER_MAX)) return false;
    put_raw(line, line->size == 0 ? "{\"" : ",\"", 2);
    put_raw(line, key, size);
    put_raw(line, "\":", 2);
    return true;
}

static void put_text(struct line *line, const char *key, const char *text)
{
    if (!put_key(line, key)) return;
    if (text == NULL) {
        put_raw(line, "null", 4);
    } else {
        put_string(line, text);
    }
}

static void put_number(struct line *line, const char *key, int64_t number)
{
    char digits[NUMBER_MAX + 1];
    int size = snprintf(digits, sizeof digits, "%lld", (long long)number);
    if (put_key(line, key)) put_raw(line, digits, (size_t)size);
}

static void put_bool(struct line *line, const char *key, bool value)
{
    if (put_key(line, key)) put_raw(line, value ? "true" : "false", value ? 4 : 5);
}

static void put_field(struct line *line, const struct gb_log_field *field)
{
    switch (field->kind) {
    case GB_LOG_FIELD_STR:
        put_text(line, field->key, field->text);
        break;
    case GB_LOG_FIELD_INT:
        put_number(line, field->key, field->number);
        break;
    case GB_LOG_FIELD_BOOL:
        put_bool(line, field->key, field->number != 0);
        break;
    case GB_LOG_FIELD_ERR:
        put_text(line, "error", field->err->message);
        put_text(line, "error_code", gb_code_name(field->err->code));
        break;
    }
}

static void put_time(struct line *line)
{
    char text[GB_TIME_TEXT_MAX];
    struct timespec now;
    /* gb-exception: as for time.h above; it can't fail for CLOCK_REALTIME. */
    (void)clock_gettime(CLOCK_REALTIME, &now);
    gb_time_print((int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000, text);
    put_text(line, "time", text);
}

/* --- stderr --- */

/* stderr may be a pipe whose reader hangs. A blocking write would stop the loop for good, and with
 * it the shutdown budget (spec 08 §3): a pipe that poll() calls writable takes PIPE_BUF bytes. */
static bool has_room(void)
{
    struct pollfd fd = {.fd = STDERR_FILENO, .events = POLLOUT};
    int rc;
    do {
        rc = poll(&fd, 1, logger.stalled ? 0 : STALL_MAX_MS);
    } while (rc < 0 && errno == EINTR);
    logger.stalled = rc == 0;
    return !logger.stalled;
}

static bool write_pieces(const char *text, size_t size)
{
    while (size > 0) {
        if (!has_room()) return false;
        ssize_t n = write(STDERR_FILENO, text, size < LINE_MAX_BYTES ? size : LINE_MAX_BYTES);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return n == 0 || errno != EAGAIN; /* gone: nothing will ever be written */
        logger.torn = text[n - 1] != '\n';
        text += n;
        size -= (size_t)n;
    }
    return true;
}

/* Says first what was lost while nobody read. */
static bool write_notice(void)
{
    char text[128];
    int size = snprintf(text, sizeof text,
                        "%s{\"level\":\"WARN\",\"msg\":\"stderr was not read: lines are lost\","
                        "\"lines\":%llu}\n",
                        logger.torn ? "\n" : "", (unsigned long long)logger.lost);
    if (!write_pieces(text, (size_t)size)) return false;
    logger.lost = 0;
    return true;
}

void gb_log_write_text(const char *text, size_t size)
{
    (void)pthread_mutex_lock(&logger.output); /* can't fail for a default mutex */
    bool written = (logger.lost == 0 || write_notice()) && write_pieces(text, size);
    if (!written) logger.lost++;
    (void)pthread_mutex_unlock(&logger.output);
}

static void emit(enum gb_log_level level, const struct line *line)
{
    if (logger.sink != NULL) {
        logger.sink(logger.sink_arg, level, line->text, line->size);
    } else {
        gb_log_write_text(line->text, line->size);
    }
}

void gb_log_write(enum gb_log_level level, const char *msg, const struct gb_log_field *fields,
                  size_t count)
{
    GB_ASSERT((unsigned)level < LEVEL_COUNT);
    if (!gb_log_enabled(level)) return;
    struct line line;
    line.size = 0;
    line.cut = false;
    put_time(&line);
    put_text(&line, "level", level_names[level]);
    put_text(&line, "msg", msg);
    if (logger.instance[0] != '\0') put_text(&line, "instance_id", logger.instance);
    for (size_t i = 0; i < count; i++) put_field(&line, &fields[i]);
    if (line.cut) {
        put_raw(&line, cut_tail, sizeof cut_tail - 1);
    } else {
        put_raw(&line, "}\n", 2);
    }
    emit(level, &line);
}

/* --- settings --- */

bool gb_log_enabled(enum gb_log_level level)
{
    return (int)level >= atomic_load_explicit(&logger.level, memory_order_relaxed);
}

void gb_log_set_level(enum gb_log_level level)
{
    atomic_store_explicit(&logger.level, (int)level, memory_order_relaxed);
}

bool gb_log_parse_level(const char *text, enum gb_log_level *out)
{
    if (strcasecmp(text, "warning") == 0) text = "warn";
    for (unsigned level = 0; level < LEVEL_COUNT; level++) {
        if (strcasecmp(text, level_names[level]) != 0) continue;
        *out = (enum gb_log_level)level;
        return true;
    }
    return false;
}

void gb_log_set_instance(const char *instance_id)
{
    size_t size = strnlen(instance_id, INSTANCE_MAX_BYTES);
    memcpy(logger.instance, instance_id, size);
    logger.instance[size] = '\0';
}

void gb_log_set_sink(gb_log_sink_fn *sink, void *arg)
{
    logger.sink = sink;
    logger.sink_arg = arg;
}

bool gb_log_allow(struct gb_log_limit *limit, uint64_t now_ns, uint64_t every_ns,
                  uint64_t *suppressed)
{
    *suppressed = limit->suppressed;
    if (limit->used && now_ns < limit->next_ns) {
        limit->suppressed++;
        return false;
    }
    limit->used = true;
    limit->suppressed = 0;
    limit->next_ns = every_ns > UINT64_MAX - now_ns ? UINT64_MAX : now_ns + every_ns;
    return true;
}
