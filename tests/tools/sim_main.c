#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/sim_world.h"

/* gobridge-sim [-seed N] [-count N] [-fault NAME] [-trace]: runs seeds of the simulator and stops
 * at the first violation; -trace prints one readable line for each event. */

static int usage(void)
{
    (void)fprintf(stderr, "usage: gobridge-sim [-seed N] [-count N] [-fault NAME] [-trace]\n");
    return 2;
}

static bool number(const char *text, uint64_t *out)
{
    char *end = NULL;
    errno = 0;
    *out = strtoull(text, &end, 0);
    return errno == 0 && end != text && *end == '\0';
}

static bool parse_fault(const char *text, enum sim_fault *out)
{
    for (int f = 0; f < SIM_FAULTS; f++) {
        if (strcmp(text, sim_fault_name((enum sim_fault)f)) != 0) continue;
        *out = (enum sim_fault)f;
        return true;
    }
    return false;
}

struct options {
    uint64_t seed, count;
    enum sim_fault fault;
    bool trace;
};

/* One option with its value; false: unknown or bad. */
static bool parse_option(struct options *o, const char *name, const char *value)
{
    if (strcmp(name, "-seed") == 0) return number(value, &o->seed);
    if (strcmp(name, "-count") == 0) return number(value, &o->count);
    if (strcmp(name, "-fault") == 0) return parse_fault(value, &o->fault);
    return false;
}

static bool parse(struct options *o, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "-trace") == 0) {
            o->trace = true;
        } else {
            if (i + 1 == argc || !parse_option(o, argv[i], argv[i + 1])) return false;
            i++;
        }
    }
    return true;
}

int main(int argc, char **argv)
{
    struct options o = {.seed = 1, .count = 1};
    if (!parse(&o, argc, argv)) return usage();
    uint64_t events = 0, messages = 0, crashes = 0;
    double sim_s = 0;
    for (uint64_t seed = o.seed; seed - o.seed < o.count; seed++) {
        struct sim_report r;
        sim_run(seed, o.fault, o.trace, &r);
        events += r.events;
        messages += r.messages;
        crashes += r.crashes;
        sim_s += (double)r.sim_ns / 1e9;
        if (r.violation[0] == '\0') continue;
        (void)printf("seed %" PRIu64 ": %s\nreplay: gobridge-sim -seed %" PRIu64
                     " -fault %s -trace\n",
                     seed, r.violation, seed, sim_fault_name(o.fault));
        return 1;
    }
    (void)printf("%" PRIu64 " seeds, 0 violations: %" PRIu64 " messages, %" PRIu64
                 " crashes, %" PRIu64 " steps, %.0f simulated seconds\n",
                 o.count, messages, crashes, events, sim_s);
    return 0;
}
