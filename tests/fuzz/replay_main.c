/* Stands in for libFuzzer where a fuzz target is an ordinary test: runs the target once on the
 * empty input and once on each file of the folders or files in argv, in order of name. */

#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned inputs;

static void fail(const char *path)
{
    (void)fprintf(stderr, "%s: %s\n", path, strerror(errno));
    exit(1);
}

/* An exact heap block for each input, so that a read past its end is seen by AddressSanitizer. */
static void replay_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    struct stat st;
    if (file == NULL || fstat(fileno(file), &st) != 0) fail(path);
    size_t size = (size_t)st.st_size;
    uint8_t *data = malloc(size == 0 ? 1 : size);
    if (data == NULL || fread(data, 1, size, file) != size) fail(path);
    (void)fclose(file);
    (void)fprintf(stderr, "replay %s\n", path); /* the last line names the input of a crash */
    (void)LLVMFuzzerTestOneInput(data, size);
    free(data);
    inputs++;
}

static int visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static void replay_folder(const char *folder)
{
    struct dirent **entries = NULL;
    int count = scandir(folder, &entries, visible, alphasort);
    if (count < 0) fail(folder);
    for (int i = 0; i < count; i++) {
        char path[4096];
        (void)snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        replay_file(path);
        free(entries[i]);
    }
    free(entries);
}

int main(int argc, char **argv)
{
    const uint8_t nothing[1] = {0};
    (void)LLVMFuzzerTestOneInput(nothing, 0);
    for (int i = 1; i < argc; i++) {
        struct stat st;
        if (stat(argv[i], &st) != 0) fail(argv[i]);
        if (S_ISDIR(st.st_mode)) {
            replay_folder(argv[i]);
        } else {
            replay_file(argv[i]);
        }
    }
    if (inputs == 0) {
        (void)fprintf(stderr, "no input: a fuzz target needs seeds in its corpus folder\n");
        return 1;
    }
    return 0;
}
