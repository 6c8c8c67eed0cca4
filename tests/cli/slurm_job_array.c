// SPDX-License-Identifier: MIT OR Unlicense
// A sweep with scripted times, which are the same on every machine.
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "kbench.h"
#include "hooks.h"

// In the task $HELD_TASK of the job array, with records in the file $HELD, the first run waits here until it is
// killed.
static void held(void) {
    const char *task = getenv("SLURM_ARRAY_TASK_ID"), *of = getenv("HELD_TASK"), *path = getenv("HELD");
    struct stat file;
    if (!task || !of || !path || strcmp(task, of) || getenv("SLURM_RESTART_COUNT")) return;
    if (!stat(path, &file) && file.st_size) sleep(120);
}
static void body(kb_state* kb) {
    held();
    kb_bytes(kb, 1e4 * (double)kb_int(kb, "n"));
    KB_TIME(kb) { kb_keep(kb); }
}
KBENCH_IMPL(copy, naive, KB_AXIS("n", 1, 2, 3, 4, 5, 6, 7, 8)) { body(kb); }
KBENCH_IMPL(copy, wide, KB_AXIS("n", 1, 2, 3, 4, 5, 6, 7, 8)) { body(kb); }
KBENCH_IMPL(scan, only, KB_AXIS_STR("dir", "up", "down"), KB_AXIS("n", 1, 2, 3, 4, 5)) { body(kb); }
KBENCH_IMPL(alone, only, KB_AXIS("n", 1)) { body(kb); }

static double script(const char* name, int64_t sample, uint64_t* flags) {
    (void)flags;
    double of = 5000 + (double)(hook_hash(14695981039346656037u, name) >> 40) / 1e4;
    return of * (1 + 0.001 * (double)((sample + 1) * 7 % 5 - 2));
}
int main(int argc, char** argv) {
    hook_script(script);
    return kb_main(argc, argv);
}
