#include "domain/regex.h"

#include <stdlib.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

struct gb_regex {
    pcre2_code *code;
    pcre2_match_context *limits;
};

static size_t characters(struct gb_bytes text)
{
    size_t count = 0;
    for (size_t i = 0; i < text.size; i++) count += (text.data[i] & 0xC0) != 0x80;
    return count;
}

static struct gb_err compile(struct gb_bytes pattern, pcre2_code **out)
{
    static const uint8_t nothing[1] = {0};
    int number;
    PCRE2_SIZE at;
    /* \C would cut a character in two. */
    *out = pcre2_compile(pattern.size == 0 ? nothing : pattern.data, pattern.size,
                         PCRE2_UTF | PCRE2_NEVER_BACKSLASH_C, &number, &at, NULL);
    if (*out != NULL) return gb_ok();
    if (number == PCRE2_ERROR_HEAP_FAILED) return gb_err_no_memory("a regular expression");
    PCRE2_UCHAR why[128];
    (void)pcre2_get_error_message(number, why, sizeof why);
    return gb_err(GB_INVALID_CONFIG, "%s at byte %zu", (const char *)why, (size_t)at);
}

struct gb_err gb_regex_new(struct gb_bytes pattern, struct gb_regex **out)
{
    size_t count = characters(pattern);
    if (count > GB_REGEX_CHARACTERS_MAX) {
        return gb_err(GB_INVALID_CONFIG, "it has %zu characters, and at most %d are accepted",
                      count, GB_REGEX_CHARACTERS_MAX);
    }
    struct gb_regex *r = calloc(1, sizeof *r);
    if (r == NULL) return gb_err_no_memory("a regular expression");
    struct gb_err err = compile(pattern, &r->code);
    if (gb_failed(err)) goto fail;
    r->limits = pcre2_match_context_create(NULL);
    if (r->limits == NULL) {
        err = gb_err_no_memory("a regular expression");
        goto fail;
    }
    (void)pcre2_set_match_limit(r->limits, GB_REGEX_STEPS_MAX);
    (void)pcre2_set_heap_limit(r->limits, GB_REGEX_HEAP_KIB_MAX);
    *out = r;
    return err;
fail:
    gb_regex_free(r);
    return err;
}

void gb_regex_free(struct gb_regex *regex)
{
    if (regex == NULL) return;
    pcre2_match_context_free(regex->limits);
    pcre2_code_free(regex->code);
    free(regex);
}

bool gb_regex_matches(const struct gb_regex *regex, struct gb_bytes value)
{
    static const uint8_t nothing[1] = {0};
    if (value.size > GB_REGEX_VALUE_MAX) return false;
    pcre2_match_data *match = pcre2_match_data_create(1, NULL);
    if (match == NULL) return false;
    int found = pcre2_match(regex->code, value.size == 0 ? nothing : value.data, value.size, 0, 0,
                            match, regex->limits);
    pcre2_match_data_free(match);
    return found >= 0;
}
