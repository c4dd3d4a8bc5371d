#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/sim_world.h"

/* gobridge-sim [-seed N] [-count N] [-fault NAME] [-trace]: runs seeds of the simulator and stops at
 * the first violation; -trace prints one readable line for each event. */

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

int main(int argc, char **argv)
{
    uint64_t seed = 1, count = 1;
    enum sim_fault fault = SIM_FAULT_NONE;
    bool trace = false;
    for (int i = 1; i < argc; i++) {
        bool more = i + 1 < argc;
        if (strcmp(argv[i], "-trace") == 0)
            trace = true;
        else if (more && strcmp(argv[i], "-seed") == 0 && number(argv[i + 1], &seed))
            i++;
        else if (more && strcmp(argv[i], "-count") == 0 && number(argv[i + 1], &count))
            i++;
        else if (more && strcmp(argv[i], "-fault") == 0 && parse_fault(argv[i + 1], &fault))
            i++;
        else
            return usage();
    }
    uint64_t events = 0, messages = 0, crashes = 0;
    double sim_s = 0;
    for (uint64_t k = 0; k < count; k++) {
        struct sim_report r;
        sim_run(seed + k, fault, trace, &r);
        events += r.events;
        messages += r.messages;
        crashes += r.crashes;
        sim_s += (double)r.sim_ns / 1e9;
        if (r.violation[0] == '\0') continue;
        (void)printf("seed %llu: %s\nreplay: gobridge-sim -seed %llu -fault %s -trace\n",
                     (unsigned long long)(seed + k), r.violation, (unsigned long long)(seed + k),
                     sim_fault_name(fault));
        return 1;
    }
    (void)printf(
        "%llu seeds, 0 violations: %llu messages, %llu crashes, %llu steps, %.0f simulated "
        "seconds\n",
        (unsigned long long)count, (unsigned long long)messages, (unsigned long long)crashes,
        (unsigned long long)events, sim_s);
    return 0;
}
