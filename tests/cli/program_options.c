// SPDX-License-Identifier: MIT OR Unlicense
// A program with its own options, for program_options.sh. ABSENT names an option of a missing add-on; the program
// prints kbench's message about this option.
#define KBENCH_IMPLEMENTATION
#include "kbench.h"
#include "examples/addons/kbench_inspect.h"
#include "examples/addons/kbench_report.h"

static struct {
    const char* file;
    int64_t level;
} values;
static bool given[3];

static bool take_file(const kb_option* option, void* to, const char* value) {
    *(const char**)((char*)to + option->offset) = value;
    return true;
}

static bool take_level(const kb_option* option, void* to, const char* value) {
    int64_t level = strtoll(value, NULL, 10);
    if (level < (int64_t)option->low || level > option->high) {
        fprintf(stderr, "--%s takes 1 to 9\n", option->name);
        return false;
    }
    *(int64_t*)((char*)to + option->offset) = level;
    return true;
}

static const kb_option options[] = {
    { "tsv", "FILE", "out", "records as TSV", take_file, 0, 0, 0, NULL, 0 },
    { "level", "N", "of this program", "how much", take_level, sizeof(const char*), 1, 9, NULL, 0 },
    { "loud", NULL, "of this program", "says more", NULL, 0, 0, 0, NULL, 0 },
};
static bool agree(void) {
    if (!given[1] || !given[2]) return true;
    return fprintf(stderr, "--level and --loud exclude each other\n"), false;
}

static kb_option_set set = { options, 3, &values, given, NULL, agree, false, NULL };

KBENCH(nothing) {
    KB_TIME(kb) { kb_keep(1); }
}

int main(int argc, char** argv) {
    if (getenv("ABSENT")) {
        char word[80];
        snprintf(word, sizeof word, "--%s", getenv("ABSENT"));
        return kbi_option_unknown(word, word + 2), 2;
    }
    kb_add_options(&set);
    kb_add_options(&set);
    int code = kb_main(argc, argv);
    if (getenv("TELL"))
        printf("tsv %s level %d loud %d\n", values.file ? values.file : "-", (int)values.level, (int)given[2]);
    return code;
}
