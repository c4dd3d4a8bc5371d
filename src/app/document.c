#include "app/document.h"

#include <stdio.h>

#include "app/process.h"
#include "base/digest.h"
#include "io/file.h"

static void print_findings(const struct gb_findings *findings, const char *path)
{
    struct gb_str text = {0};
    gb_findings_print(findings, &path, &text);
    if (text.size > 0) (void)fwrite(text.data, 1, text.size, stderr);
    gb_str_deinit(&text);
}

struct gb_err gb_document_load(const char *path, enum gb_document_use use,
                               struct gb_blueprint **out)
{
    struct gb_str bytes = {0};
    struct gb_findings findings = {0};
    struct gb_blueprint *blueprint = NULL;
    struct gb_err err = gb_file_read_wait(path, GB_BLUEPRINT_SIZE_MAX, GB_DOCUMENT_WAIT_MS, &bytes);
    if (!gb_failed(err)) {
        err = gb_blueprint_load(gb_str_bytes(&bytes), path, gb_blueprint_format_of(path), &findings,
                                &blueprint);
        if (!gb_failed(err) && use == GB_DOCUMENT_RUN)
            err = gb_blueprint_supported(blueprint, &findings);
        print_findings(&findings, path);
    }
    if (!gb_failed(err) && use == GB_DOCUMENT_VALIDATE_STRICT && findings.warning_count > 0)
        err = gb_err(GB_INVALID_CONFIG, "%zu warnings under -strict", findings.warning_count);
    if (gb_failed(err)) {
        gb_blueprint_free(blueprint);
    } else {
        *out = blueprint;
    }
    gb_findings_deinit(&findings);
    gb_wipe(bytes.data, bytes.size);
    gb_str_deinit(&bytes);
    return err;
}

/* A valid document may be ahead of this release: no problem of the document, so not on stderr. */
static void print_unsupported(const struct gb_blueprint *blueprint, const char *path)
{
    struct gb_findings findings = {0};
    if (gb_failed(gb_blueprint_supported(blueprint, &findings)) && !findings.failed) {
        (void)printf("%s: valid, but this release can't run it:\n", path);
        for (size_t i = 0; i < findings.count; i++) {
            (void)printf("  %u:%u: %s\n", findings.items[i].line, findings.items[i].column,
                         findings.items[i].text);
        }
    }
    gb_findings_deinit(&findings);
}

int gb_process_validate(const struct gb_options *o)
{
    struct gb_blueprint *blueprint = NULL;
    enum gb_document_use use = o->strict ? GB_DOCUMENT_VALIDATE_STRICT : GB_DOCUMENT_VALIDATE;
    struct gb_err err = gb_document_load(o->config, use, &blueprint);
    if (!gb_failed(err)) print_unsupported(blueprint, o->config);
    gb_blueprint_free(gb_failed(err) ? NULL : blueprint);
    if (!gb_failed(err)) return 0;
    if (err.code != GB_INVALID_CONFIG)
        (void)fprintf(stderr, "%s: error: %s\n", o->config, err.message);
    return 1;
}
