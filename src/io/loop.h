#ifndef GB_IO_LOOP_H
#define GB_IO_LOOP_H

#include "base/reactor.h"

/* The process's event loop: libuv drives the reactor. One uv timer follows the reactor's next
 * deadline. After the I/O callbacks of one poll phase there is one reactor turn, so what they made
 * is handled as one batch.
 * Owns:   the uv loop and the reactor. gb_loop_free asserts that every handle was closed.
 *         SIGPIPE is ignored from gb_loop_new on: a write to a closed connection is an error value.
 * Thread: gb_loop_new, run and everything else on one thread; gb_loop_stop from that thread only.
 * Errors: gb_loop_new: GB_UNAVAILABLE (out of descriptors or memory). */
struct gb_loop;
struct uv_loop_s;

struct gb_err gb_loop_new(struct gb_loop **out); /* seeds the reactor from getrandom */
void gb_loop_free(struct gb_loop *l);
void gb_loop_run(struct gb_loop *l);  /* until gb_loop_stop */
void gb_loop_stop(struct gb_loop *l); /* the current turn ends normally */
/* Runs turns until every closed handle and every request (a look-up in the DNS can't be called
 * back) is gone; after shutdown, before gb_loop_free. */
void gb_loop_drain_closing(struct gb_loop *l);
struct gb_reactor *gb_loop_reactor(struct gb_loop *l);
struct uv_loop_s *gb_loop_uv(struct gb_loop *l); /* for io/ only */
/* Every uv callback that calls a user starts with this: the loop may have slept since the reactor's
 * clock was set. */
void gb_loop_refresh_clock(struct gb_loop *l);

/* Signals: `fn` runs on the loop for each delivery of `signum`. */
struct gb_signal;
struct gb_err gb_signal_new(struct gb_loop *l, int signum, void (*fn)(void *arg, int signum),
                            void *arg, struct gb_signal **out);
void gb_signal_free(struct gb_signal *s);

#endif
