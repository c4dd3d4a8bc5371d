#ifndef GB_TESTS_SUPPORT_FAKE_SCRIPT_H
#define GB_TESTS_SUPPORT_FAKE_SCRIPT_H

#include "base/op.h"

/* What a fake port does with the calls to come: a queue of answers, then a standing one.
 * Owns:   nothing; held operations belong to their callers.
 * Thread: loop thread only.
 * Errors: asserts when more than FAKE_SCRIPT_MAX answers are queued. */

enum { FAKE_SCRIPT_MAX = 64 };
enum fake_action {
    FAKE_DO = 0,       /* do it and answer GB_OK */
    FAKE_FAIL,         /* answer the error, do nothing */
    FAKE_HOLD,         /* stay pending until the test answers */
    FAKE_DO_THEN_FAIL, /* do it and answer the error: applied, answer lost */
};
struct fake_answer {
    enum fake_action action;
    struct gb_err err;
};
struct fake_script {
    struct fake_answer queue[FAKE_SCRIPT_MAX];
    size_t next, count;
    struct fake_answer standing;
};

void fake_script_add(struct fake_script *s, enum fake_action action, enum gb_code code);
void fake_script_always(struct fake_script *s, enum fake_action action, enum gb_code code);
struct fake_answer fake_script_take(struct fake_script *s);

#endif
