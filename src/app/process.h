#ifndef GB_APP_PROCESS_H
#define GB_APP_PROCESS_H

#include "app/options.h"

/* The modes of the program (spec 08 §2, §3). Each returns the exit code.
 * Owns:   all it opens, closed on return.
 * Thread: the main thread.
 * Errors: printed on stderr; 1 for failures, 2 for usage errors. */
int gb_process_run(const struct gb_options *o);      /* process.c */
int gb_process_validate(const struct gb_options *o); /* document.c */
int gb_process_explain(const struct gb_options *o);  /* explain.c */
int gb_process_seed(const struct gb_options *o);     /* seed.c */
int gb_process_tables(const struct gb_options *o);   /* tables.c */

#endif
