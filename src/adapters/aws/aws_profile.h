#ifndef GB_ADAPTERS_AWS_AWS_PROFILE_H
#define GB_ADAPTERS_AWS_AWS_PROFILE_H

#include "adapters/aws/aws_credentials.h"

/* The shared files ~/.aws/credentials and ~/.aws/config (spec 04 A4.5): a pure parser and a loader.
 * Owns:   a profile's views point into the texts that were parsed.
 * Thread: any; the loader reads files (blocking).
 * Errors: GB_INVALID_CONFIG with the line; loader: what read_file gives, but a missing file is an
 *         empty one. */
struct gb_aws_profile {
    bool found;
    struct gb_bytes access_key_id, secret_access_key, session_token;
    struct gb_bytes region;
    struct gb_bytes role_arn, source_profile, credential_source, external_id, role_session_name;
    struct gb_bytes web_identity_token_file;
    struct gb_bytes credential_process, sso_session, sso_start_url;
};

enum gb_aws_file_kind { GB_AWS_FILE_CREDENTIALS, GB_AWS_FILE_CONFIG };

/* Adds what `text` says of profile `name`; values already in `out` stay (the credentials file comes
 * first). In a config file the section is [profile name], or [default]. */
struct gb_err gb_aws_profile_parse(struct gb_bytes text, enum gb_aws_file_kind kind,
                                   struct gb_bytes name, struct gb_aws_profile *out);

/* Both files as text. Hold secrets: gb_aws_files_deinit wipes. */
struct gb_aws_files {
    struct gb_str credentials, config;
};
struct gb_err gb_aws_files_load(const struct gb_aws_env *env, struct gb_aws_files *out);
void gb_aws_files_deinit(struct gb_aws_files *f); /* accepts zeroed memory */
struct gb_err gb_aws_files_profile(const struct gb_aws_files *f, struct gb_bytes name,
                                   struct gb_aws_profile *out);

#endif
