#ifndef GB_IO_FILE_H
#define GB_IO_FILE_H

#include "base/str.h"

/* Small blocking file reads for start-up and credential refresh (documents, PEM, token files),
 * environment and random numbers of the system.
 * Owns:   gb_file_read appends to the caller's buffer.
 * Thread: any; blocking: not on the message path.
 * Errors: GB_NOT_FOUND, GB_NOT_AUTHORIZED (access denied), GB_PAYLOAD_TOO_LARGE (above size_max),
 *         GB_UNAVAILABLE; each names the path and the cause. */
struct gb_err gb_file_read(const char *path, size_t size_max, struct gb_str *out);
/* As gb_file_read, which takes from a pipe only what is there: waits for its writer, at most
 * `wait_ms` for each piece. Not on the loop thread. */
struct gb_err gb_file_read_wait(const char *path, size_t size_max, int wait_ms, struct gb_str *out);
/* NULL when unset or empty. The pointer is the process's own: copy what you keep. */
const char *gb_env(const char *name);
/* 16 bytes of the kernel as 32 lower-case hex digits: what two processes must never share. */
enum { GB_NONCE_SIZE = 33 };
struct gb_err gb_nonce(char out[GB_NONCE_SIZE]);

#endif
