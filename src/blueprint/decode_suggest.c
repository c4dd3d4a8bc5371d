#include <string.h>

#include "blueprint/decode.h"

enum { KEY_MAX = 48 };

static size_t smallest(size_t a, size_t b, size_t c)
{
    size_t least = a < b ? a : b;
    return least < c ? least : c;
}

/* Edits that turn one key into the other; a swap of neighbours counts as two. */
static size_t distance(const char *a, size_t a_size, const char *b, size_t b_size)
{
    size_t row[KEY_MAX + 1];
    for (size_t j = 0; j <= b_size; j++) row[j] = j;
    for (size_t i = 1; i <= a_size; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b_size; j++) {
            size_t above = row[j];
            size_t replace = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
            row[j] = smallest(replace, above + 1, row[j - 1] + 1);
            diagonal = above;
        }
    }
    return row[b_size];
}

void gb_suggest(struct gb_suggestion *s, const char *wanted, const char *known)
{
    size_t size = strlen(wanted);
    size_t known_size = strlen(known);
    if (size == 0 || size > KEY_MAX || known_size > KEY_MAX) return;
    size_t limit = size < 4 ? 1 : 1 + size / 4;
    size_t d = distance(wanted, size, known, known_size);
    if (s->best == NULL ? d <= limit : d < s->distance)
        *s = (struct gb_suggestion){.best = known, .distance = d};
}

const char *gb_decode_suggest(const struct gb_block *block, const char *key)
{
    struct gb_suggestion s = {0};
    for (size_t i = 0; i < block->count; i++) gb_suggest(&s, key, block->fields[i].key);
    return s.best;
}
