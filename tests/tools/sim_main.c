#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/sim_cluster.h"

/* gobridge-sim: runs seeds of the simulator and stops at the first violation. */

static const char help[] =
    "usage: gobridge-sim [-seed N] [-count N] [-fault NAME] [-trace]\n"
    "       gobridge-sim -cluster [-hours H] [-failovers N] [-seed N] [-count N] [-fault NAME]\n"
    "                    [-trace]\n"
    "\n"
    "Runs the bridge's core in a simulated world, one seed after the other, and stops at the\n"
    "first broken invariant. One seed is always the same run.\n"
    "\n"
    "  -seed N       the first seed (1)\n"
    "  -count N      how many seeds (1)\n"
    "  -cluster      two or three instances that fail over, instead of one bridge alone\n"
    "  -hours H      simulated hours of faults in each seed of a cluster, such as 0.5 (1)\n"
    "  -failovers N  go on from seed to seed until N failovers were counted\n"
    "  -fault NAME   plants a mistake that must be seen; an unknown name lists them\n"
    "  -help         this text\n"
    "  -trace        one line for each event; the default with -cluster and a single seed\n"
    "\n"
    "Exit status: 0 no violation, 1 a violation (the line to replay it is printed), 2 usage.\n";

static int usage(void)
{
    (void)fputs(help, stderr);
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
    for (int f = 0; f < SIM_FAULTS; f++)
        (void)fprintf(stderr, "%s\n", sim_fault_name((enum sim_fault)f));
    return false;
}

struct options {
    uint64_t seed, count, failovers;
    double hours;
    enum sim_fault fault;
    bool trace, cluster, help;
};

static bool parse_hours(const char *text, double *out)
{
    char *end = NULL;
    *out = strtod(text, &end);
    return end != text && *end == '\0' && *out >= 0.01 && *out <= 1000;
}

/* One option with its value; false: unknown or bad. */
static bool parse_option(struct options *o, const char *name, const char *value)
{
    if (strcmp(name, "-seed") == 0) return number(value, &o->seed);
    if (strcmp(name, "-count") == 0) return number(value, &o->count);
    if (strcmp(name, "-failovers") == 0) return number(value, &o->failovers);
    if (strcmp(name, "-hours") == 0) return parse_hours(value, &o->hours);
    if (strcmp(name, "-fault") == 0) return parse_fault(value, &o->fault);
    return false;
}

static bool parse(struct options *o, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "-help") == 0) {
            o->help = true;
        } else if (strcmp(argv[i], "-trace") == 0) {
            o->trace = true;
        } else if (strcmp(argv[i], "-cluster") == 0) {
            o->cluster = true;
        } else {
            if (i + 1 == argc || !parse_option(o, argv[i], argv[i + 1])) return false;
            i++;
        }
    }
    return true;
}

static int run_alone(const struct options *o)
{
    uint64_t events = 0, messages = 0, crashes = 0;
    double sim_s = 0;
    for (uint64_t seed = o->seed; seed - o->seed < o->count; seed++) {
        struct sim_report r;
        sim_run(seed, o->fault, o->trace, &r);
        events += r.events;
        messages += r.messages;
        crashes += r.crashes;
        sim_s += (double)r.sim_ns / 1e9;
        if (r.violation[0] == '\0') continue;
        (void)printf("seed %" PRIu64 ": %s\nreplay: gobridge-sim -seed %" PRIu64
                     " -fault %s -trace\n",
                     seed, r.violation, seed, sim_fault_name(o->fault));
        return 1;
    }
    (void)printf("%" PRIu64 " seeds, 0 violations: %" PRIu64 " messages, %" PRIu64
                 " crashes, %" PRIu64 " steps, %.0f simulated seconds\n",
                 o->count, messages, crashes, events, sim_s);
    return 0;
}

static int run_cluster(const struct options *o)
{
    uint64_t seeds = 0, messages = 0, arrivals = 0, crashes = 0, failovers = 0;
    double sim_s = 0;
    bool trace = o->trace || (o->count == 1 && o->failovers == 0);
    for (; o->failovers > 0 ? failovers < o->failovers : seeds < o->count; seeds++) {
        const struct sim_cluster_run run = {.seed = o->seed + seeds,
                                            .fault = o->fault,
                                            .trace = trace,
                                            .duration_ns = (int64_t)(o->hours * 3600e9)};
        struct sim_cluster_report r;
        sim_cluster_run(&run, &r);
        messages += r.run.messages;
        arrivals += r.run.accepted;
        crashes += r.run.crashes;
        failovers += r.failovers;
        sim_s += (double)r.run.sim_ns / 1e9;
        if (r.run.violation[0] == '\0') continue;
        (void)printf("seed %" PRIu64 ": %s\nreplay: gobridge-sim -cluster -seed %" PRIu64
                     " -hours %g -fault %s\n",
                     run.seed, r.run.violation, run.seed, o->hours, sim_fault_name(o->fault));
        return 1;
    }
    (void)printf("%" PRIu64 " seeds from %" PRIu64 ", 0 violations: %" PRIu64 " failovers, %" PRIu64
                 " crashes, %" PRIu64 " messages, %" PRIu64 " arrivals, %.1f simulated hours\n",
                 seeds, o->seed, failovers, crashes, messages, arrivals, sim_s / 3600);
    return 0;
}

int main(int argc, char **argv)
{
    struct options o = {.seed = 1, .count = 1, .hours = 1};
    if (!parse(&o, argc, argv)) return usage();
    if (o.help) return fputs(help, stdout) < 0;
    return o.cluster ? run_cluster(&o) : run_alone(&o);
}
