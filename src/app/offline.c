#include "app/offline.h"

#include <stdio.h>

#include "app/document.h"
#include "blueprint/identity.h"
#include "blueprint/inspect.h"
#include "io/file.h"

static int complain(const char *path, struct gb_err err)
{
    (void)fprintf(stderr, "%s: error: %s\n", path, err.message);
    return 1;
}

/* NULL after saying why; findings are printed where they are found. */
static struct gb_blueprint *load(const char *path)
{
    struct gb_blueprint *b = NULL;
    struct gb_err err = gb_document_load(path, GB_DOCUMENT_VALIDATE, &b);
    if (!gb_failed(err)) return b;
    if (err.code != GB_INVALID_CONFIG) (void)complain(path, err);
    return NULL;
}

static bool print(struct gb_bytes text)
{
    bool ok = fwrite(text.data, 1, text.size, stdout) == text.size && fflush(stdout) == 0;
    if (!ok) (void)fputs("gobridge: error: the answer could not be written to stdout\n", stderr);
    return ok;
}

static int print_hash(const char *path,
                      struct gb_err (*hash)(const struct gb_blueprint *b, char out[GB_SHA256_HEX]))
{
    char line[GB_SHA256_HEX + 1];
    struct gb_blueprint *b = load(path);
    if (b == NULL) return 1;
    struct gb_err err = hash(b, line);
    gb_blueprint_free(b);
    if (gb_failed(err)) return complain(path, err);
    line[GB_SHA256_HEX - 1] = '\n';
    return print(gb_bytes(line, GB_SHA256_HEX)) ? 0 : 1;
}

int gb_offline_digest(const struct gb_options *o)
{
    return print_hash(o->files[0], gb_blueprint_digest);
}

int gb_offline_fingerprint(const struct gb_options *o)
{
    return print_hash(o->files[0], gb_blueprint_fingerprint);
}

static int print_inspection(const char *path, struct gb_bytes bytes)
{
    struct gb_findings findings = {0};
    struct gb_blueprint *b = NULL;
    struct gb_str text = {0};
    int code = 1;
    struct gb_err loaded =
        gb_blueprint_load(bytes, path, gb_blueprint_format_of(path), &findings, &b);
    struct gb_err err = loaded.code == GB_INVALID_CONFIG ? gb_ok() : loaded;
    if (!gb_failed(err)) {
        struct gb_inspection of = {bytes, &findings, &path, b};
        err = gb_inspect(&of, &text);
    }
    if (gb_failed(err)) {
        (void)complain(path, err);
    } else if (print(gb_str_bytes(&text)) && b != NULL) {
        code = 0;
    }
    gb_str_deinit(&text);
    gb_blueprint_free(b);
    gb_findings_deinit(&findings);
    return code;
}

int gb_offline_inspect(const struct gb_options *o)
{
    const char *path = o->files[0];
    struct gb_str bytes = {0};
    struct gb_err err = gb_file_read_wait(path, GB_BLUEPRINT_SIZE_MAX, GB_DOCUMENT_WAIT_MS, &bytes);
    int code = gb_failed(err) ? complain(path, err) : print_inspection(path, gb_str_bytes(&bytes));
    gb_wipe(bytes.data, bytes.size);
    gb_str_deinit(&bytes);
    return code;
}

static int print_diff(const char *path, const struct gb_blueprint *before,
                      const struct gb_blueprint *after)
{
    struct gb_diff diff = {0};
    struct gb_str text = {0};
    int code = 1;
    struct gb_err err = gb_diff_init(&diff, before, after);
    if (!gb_failed(err)) err = gb_diff_print(&diff, &text);
    if (gb_failed(err)) {
        (void)complain(path, err);
    } else if (print(gb_str_bytes(&text)) && diff.equal) {
        code = 0;
    }
    gb_str_deinit(&text);
    gb_diff_deinit(&diff);
    return code;
}

int gb_offline_diff(const struct gb_options *o)
{
    struct gb_blueprint *before = load(o->files[0]);
    struct gb_blueprint *after = load(o->files[1]);
    int code = 1;
    if (before != NULL && after != NULL) code = print_diff(o->files[1], before, after);
    gb_blueprint_free(before);
    gb_blueprint_free(after);
    return code;
}
