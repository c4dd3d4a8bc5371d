#include "bench_counter.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bench_process.h"

_Atomic uint64_t *gb_bench_counter_open(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, sizeof(uint64_t)) != 0)
        gb_bench_die("counter %s: %s", path, strerror(errno));
    void *memory = mmap(NULL, sizeof(uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED) gb_bench_die("counter %s: %s", path, strerror(errno));
    (void)close(fd); /* the mapping stays */
    return memory;
}
