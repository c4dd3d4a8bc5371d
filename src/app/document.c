#include "app/document.h"

#include <stdio.h>

#include "app/process.h"
#include "base/digest.h"
#include "io/file.h"

/* For a document that another program writes into a pipe. */
enum { DOCUMENT_WAIT_MS = 60000 };

static void print_findings(const struct gb_findings *findings, const char *path)
{
    struct gb_str text = {0};
    gb_findings_print(findings, path, &text);
    if (text.size > 0) (void)fwrite(text.data, 1, text.size, stderr);
    gb_str_deinit(&text);
}

struct gb_err gb_document_load(const char *path, bool warnings_fail, struct gb_blueprint **out)
{
    struct gb_str bytes = {0};
    struct gb_findings findings = {0};
    struct gb_blueprint *blueprint = NULL;
    struct gb_err err = gb_file_read_wait(path, GB_BLUEPRINT_SIZE_MAX, DOCUMENT_WAIT_MS, &bytes);
    if (!gb_failed(err)) {
        err = gb_blueprint_load(gb_str_bytes(&bytes), path, gb_blueprint_format_of(path), &findings,
                                &blueprint);
        print_findings(&findings, path);
    }
    if (!gb_failed(err) && warnings_fail && findings.warning_count > 0)
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

int gb_process_validate(const struct gb_options *o)
{
    struct gb_blueprint *blueprint = NULL;
    struct gb_err err = gb_document_load(o->config, o->strict, &blueprint);
    gb_blueprint_free(gb_failed(err) ? NULL : blueprint);
    if (!gb_failed(err)) return 0;
    if (err.code != GB_INVALID_CONFIG)
        (void)fprintf(stderr, "%s: error: %s\n", o->config, err.message);
    return 1;
}
