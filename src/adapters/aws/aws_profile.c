#include "adapters/aws/aws_profile.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static const struct field {
    const char *key;
    size_t offset;
} fields[] = {
    {"aws_access_key_id", offsetof(struct gb_aws_profile, access_key_id)},
    {"aws_secret_access_key", offsetof(struct gb_aws_profile, secret_access_key)},
    {"aws_session_token", offsetof(struct gb_aws_profile, session_token)},
    {"region", offsetof(struct gb_aws_profile, region)},
    {"role_arn", offsetof(struct gb_aws_profile, role_arn)},
    {"source_profile", offsetof(struct gb_aws_profile, source_profile)},
    {"credential_source", offsetof(struct gb_aws_profile, credential_source)},
    {"external_id", offsetof(struct gb_aws_profile, external_id)},
    {"role_session_name", offsetof(struct gb_aws_profile, role_session_name)},
    {"web_identity_token_file", offsetof(struct gb_aws_profile, web_identity_token_file)},
    {"credential_process", offsetof(struct gb_aws_profile, credential_process)},
    {"sso_session", offsetof(struct gb_aws_profile, sso_session)},
    {"sso_start_url", offsetof(struct gb_aws_profile, sso_start_url)},
};
enum { FIELDS = sizeof fields / sizeof fields[0] };

static struct gb_bytes *field_at(struct gb_aws_profile *p, size_t i)
{
    return (struct gb_bytes *)(void *)((char *)p + fields[i].offset);
}

static bool is_blank(uint8_t c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static struct gb_bytes trim(struct gb_bytes text)
{
    while (text.size > 0 && is_blank(text.data[0])) text = gb_bytes(text.data + 1, text.size - 1);
    while (text.size > 0 && is_blank(text.data[text.size - 1])) text.size--;
    return text;
}

static bool next_line(struct gb_bytes *rest, struct gb_bytes *line)
{
    if (rest->size == 0) return false;
    const uint8_t *end = memchr(rest->data, '\n', rest->size);
    size_t size = end == NULL ? rest->size : (size_t)(end - rest->data);
    *line = gb_bytes(rest->data, size);
    size_t used = end == NULL ? size : size + 1;
    *rest = gb_bytes(rest->data + used, rest->size - used);
    return true;
}

/* A comment after a value begins with white space and '#' or ';'. */
static struct gb_bytes without_comment(struct gb_bytes text)
{
    for (size_t i = 1; i < text.size; i++) {
        if ((text.data[i] == '#' || text.data[i] == ';') && is_blank(text.data[i - 1]))
            return trim(gb_bytes(text.data, i));
    }
    return text;
}

static struct gb_bytes unquoted(struct gb_bytes text)
{
    bool quoted = text.size >= 2 && text.data[0] == '"' && text.data[text.size - 1] == '"';
    return quoted ? gb_bytes(text.data + 1, text.size - 2) : text;
}

/* The profile a section header names; empty for other sections of a config file ([sso-session
 * x]). */
static struct gb_bytes section_profile(struct gb_bytes header, enum gb_aws_file_kind kind)
{
    static const char word[] = "profile";
    size_t word_size = sizeof word - 1;
    if (kind == GB_AWS_FILE_CREDENTIALS || gb_bytes_equal_c(header, "default")) return header;
    if (header.size <= word_size || memcmp(header.data, word, word_size) != 0 ||
        !is_blank(header.data[word_size]))
        return gb_bytes(NULL, 0);
    return unquoted(trim(gb_bytes(header.data + word_size, header.size - word_size)));
}

struct section {
    bool any, wanted;
};

static struct gb_err parse_section(struct gb_bytes line, size_t number, enum gb_aws_file_kind kind,
                                   struct gb_bytes name, struct section *section)
{
    const uint8_t *end = memchr(line.data, ']', line.size);
    struct gb_bytes header = end == NULL
                                 ? gb_bytes(NULL, 0)
                                 : trim(gb_bytes(line.data + 1, (size_t)(end - line.data) - 1));
    if (header.size == 0) return gb_err(GB_INVALID_CONFIG, "line %zu: a section is [name]", number);
    section->any = true;
    section->wanted = gb_bytes_equal(section_profile(header, kind), name);
    return gb_ok();
}

static struct gb_err parse_entry(struct gb_bytes line, size_t number, const struct section *section,
                                 struct gb_aws_profile *out)
{
    const uint8_t *equals = memchr(line.data, '=', line.size);
    if (!section->any || equals == NULL || equals == line.data)
        return gb_err(GB_INVALID_CONFIG, "line %zu: expected [section] or key = value", number);
    if (!section->wanted) return gb_ok();
    size_t key_size = (size_t)(equals - line.data);
    struct gb_bytes key = trim(gb_bytes(line.data, key_size));
    struct gb_bytes value = trim(gb_bytes(equals + 1, line.size - key_size - 1));
    for (size_t i = 0; i < FIELDS; i++) {
        if (gb_bytes_equal_nocase(key, gb_bytes_c(fields[i].key)))
            *field_at(out, i) = without_comment(value);
    }
    return gb_ok();
}

struct gb_err gb_aws_profile_parse(struct gb_bytes text, enum gb_aws_file_kind kind,
                                   struct gb_bytes name, struct gb_aws_profile *out)
{
    struct gb_aws_profile fresh = {0};
    struct section section = {0};
    struct gb_bytes line;
    for (size_t number = 1; next_line(&text, &line); number++) {
        struct gb_bytes content = trim(line);
        if (content.size == 0 || content.data[0] == '#' || content.data[0] == ';') continue;
        struct gb_err err = gb_ok();
        if (content.data[0] == '[') {
            err = parse_section(content, number, kind, name, &section);
            fresh.found = fresh.found || (section.wanted && !gb_failed(err));
        } else if (!section.any || !is_blank(line.data[0])) {
            err = parse_entry(content, number, &section, &fresh);
        } /* else: an indented line belongs to a nested setting (s3 =), which is not ours */
        if (gb_failed(err)) return err;
    }
    out->found = out->found || fresh.found;
    for (size_t i = 0; i < FIELDS; i++) {
        if (field_at(out, i)->size == 0) *field_at(out, i) = *field_at(&fresh, i);
    }
    return gb_ok();
}

/* --- files --- */

static struct gb_err load_one(const struct gb_aws_env *env, const char *variable, const char *file,
                              struct gb_str *out)
{
    const char *path = env->get(env->ctx, variable);
    const char *home = env->get(env->ctx, "HOME");
    char *made = NULL;
    if (path == NULL && home == NULL) return gb_ok();
    if (path == NULL) {
        made = gb_asprintf("%s/.aws/%s", home, file);
        if (made == NULL) return gb_err_no_memory("path of the shared file");
        path = made;
    }
    struct gb_err err = env->read_file(env->ctx, path, out);
    free(made);
    return err.code == GB_NOT_FOUND ? gb_ok() : err;
}

struct gb_err gb_aws_files_load(const struct gb_aws_env *env, struct gb_aws_files *out)
{
    struct gb_err err =
        load_one(env, "AWS_SHARED_CREDENTIALS_FILE", "credentials", &out->credentials);
    if (gb_failed(err)) return err;
    return load_one(env, "AWS_CONFIG_FILE", "config", &out->config);
}

static void wipe(struct gb_str *s)
{
    if (s->data != NULL) gb_wipe(s->data, s->capacity);
    gb_str_deinit(s);
    *s = (struct gb_str){0};
}

void gb_aws_files_deinit(struct gb_aws_files *f)
{
    wipe(&f->credentials);
    wipe(&f->config);
}

struct gb_err gb_aws_files_profile(const struct gb_aws_files *f, struct gb_bytes name,
                                   struct gb_aws_profile *out)
{
    *out = (struct gb_aws_profile){0};
    struct gb_err err =
        gb_aws_profile_parse(gb_str_bytes(&f->credentials), GB_AWS_FILE_CREDENTIALS, name, out);
    if (gb_failed(err)) return gb_err_in(err, "shared credentials file");
    err = gb_aws_profile_parse(gb_str_bytes(&f->config), GB_AWS_FILE_CONFIG, name, out);
    return gb_failed(err) ? gb_err_in(err, "AWS config file") : err;
}
