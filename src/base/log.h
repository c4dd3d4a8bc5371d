#ifndef GB_BASE_LOG_H
#define GB_BASE_LOG_H

#include <stddef.h>

#include "base/err.h"

/* The process's logger, the one global besides build info (design §7): one JSON object a line on
 * stderr with `time`, `level`, `msg`, `instance_id` and fields (spec 08 §7). Never payloads or
 * secrets. A line ends at 4 KiB: what does not fit is left out and it gets `"log_cut":true`.
 * Owns:   nothing of the caller's; fields are borrowed for the call.
 * Thread: any (lines are written whole, one write each); the sink and the instance are set before
 *         a second thread starts.
 * Errors: none reported; a line that can't be written is lost (stderr is gone). A stderr that
 *         nobody reads holds the process up once, for 200 ms; lines are then lost and counted until
 *         it is read again. */

enum gb_log_level { GB_LOG_DEBUG = 0, GB_LOG_INFO, GB_LOG_WARN, GB_LOG_ERROR };

enum gb_log_kind { GB_LOG_FIELD_STR, GB_LOG_FIELD_INT, GB_LOG_FIELD_BOOL, GB_LOG_FIELD_ERR };
struct gb_log_field {
    const char *key;
    enum gb_log_kind kind;
    const char *text;
    int64_t number;
    const struct gb_err *err; /* prints as `error` and `error_code`; key ignored */
};

static inline struct gb_log_field gb_lf_str(const char *key, const char *text)
{
    return (struct gb_log_field){.key = key, .kind = GB_LOG_FIELD_STR, .text = text};
}
static inline struct gb_log_field gb_lf_int(const char *key, int64_t number)
{
    return (struct gb_log_field){.key = key, .kind = GB_LOG_FIELD_INT, .number = number};
}
static inline struct gb_log_field gb_lf_bool(const char *key, bool value)
{
    return (struct gb_log_field){.key = key, .kind = GB_LOG_FIELD_BOOL, .number = value};
}
static inline struct gb_log_field gb_lf_err(const struct gb_err *err)
{
    return (struct gb_log_field){.key = "error", .kind = GB_LOG_FIELD_ERR, .err = err};
}

void gb_log_write(enum gb_log_level level, const char *msg, const struct gb_log_field *fields,
                  size_t count);
/* Finished lines of any size to stderr, such as the metrics, under the same rule. */
void gb_log_write_text(const char *text, size_t size);
bool gb_log_enabled(enum gb_log_level level);
void gb_log_set_level(enum gb_log_level level);
bool gb_log_parse_level(const char *text, enum gb_log_level *out); /* any case; warn = warning */
void gb_log_set_instance(const char *instance_id);                 /* copied, cut at 255 bytes */
/* Replaces stderr: tests and the simulator; NULL restores. `line` ends with a newline and is not
 * terminated. */
typedef void gb_log_sink_fn(void *arg, enum gb_log_level level, const char *line, size_t size);
void gb_log_set_sink(gb_log_sink_fn *sink, void *arg);

/* GB_LOG(GB_LOG_INFO, "mqtt connected", gb_lf_str("session_id", id), gb_lf_int("epoch", n)); */
#define GB_LOG(level, msg, ...)                                                                    \
    (gb_log_enabled(level)                                                                         \
         ? gb_log_write((level), (msg), (const struct gb_log_field[]){__VA_ARGS__},                \
                        sizeof((const struct gb_log_field[]){__VA_ARGS__}) /                       \
                            sizeof(struct gb_log_field))                                           \
         : (void)0)

/* Limits a repeated line: true when it may be printed now (first, then once per `every_ns`);
 * `*suppressed` gets the number left out since. Zeroed memory is ready. */
struct gb_log_limit {
    uint64_t next_ns;
    uint64_t suppressed;
    bool used;
};
bool gb_log_allow(struct gb_log_limit *limit, uint64_t now_ns, uint64_t every_ns,
                  uint64_t *suppressed);

#endif
