// SPDX-License-Identifier: MIT OR Unlicense
// What the kernel says of the processor, read from folders that are laid out as its own, and what is said where it says
// nothing.
#include "test.h"
#include <stdlib.h>
#define KBENCH_IMPLEMENTATION
#include "kbench.h"

static char root[200]; // beside this program

static void put(const char* path, const char* text) {
    char whole[300];
    snprintf(whole, sizeof whole, "%s/%s", root, path);
    for (char* p = whole + strlen(root) + 1; (p = strchr(p, '/')) != NULL; p++) {
        *p = 0;
        mkdir(whole, 0777);
        *p = '/';
    }
    FILE* f = fopen(whole, "w");
    if (!CHECK(f != NULL)) return;
    fprintf(f, "%s\n", text);
    fclose(f);
}

static void check_cores(int most, int cores, int threads) {
    int c = -1, t = -1;
    kbi_host_cores(root, most, &c, &t);
    CHECK_INT(c, cores);
    CHECK_INT(t, threads);
}

int main(int argc, char** argv) {
    kbi_text caches = { NULL, 0, 0 };
    snprintf(root, sizeof root, "%.180s.XXXXXX", argc > 0 ? argv[0] : "sysfs");
    if (!mkdtemp(root)) return SKIP("no folder of one's own"), test_end();
    check_cores(4, 0, 0);
    kbi_host_caches(root, &caches);
    CHECK_INT(caches.n, 0);
    // four threads on two cores, numbered as on x86, and one that is offline
    put("cpu0/topology/thread_siblings_list", "0,2");
    put("cpu1/topology/thread_siblings_list", "1,3");
    put("cpu2/topology/thread_siblings_list", "0,2");
    put("cpu3/topology/thread_siblings_list", "1,3");
    put("cpu4/online", "0");
    check_cores(5, 2, 4);
    put("cpu4/topology/thread_siblings_list", "4-5"); // and as on POWER
    put("cpu5/topology/thread_siblings_list", "4-5");
    check_cores(6, 3, 6);
    static const char* const cache[][3] = { { "1", "Data", "48K" },
                                            { "1", "Instruction", "32K" },
                                            { "2", "Unified", "2048K" },
                                            { "3", "Unified", "107520K" } };
    for (int i = 0; i < 4; i++) {
        static const char* const key[] = { "level", "type", "size" };
        for (int k = 0; k < 3; k++) {
            char path[80];
            snprintf(path, sizeof path, "cpu0/cache/index%d/%s", i, key[k]);
            put(path, cache[i][k]);
        }
    }
    kbi_host_caches(root, &caches);
    CHECK_STR(caches.s, "L1d 48K, L2 2048K, L3 107520K");
    kbi_text_free(&caches);
    char command[300];
    snprintf(command, sizeof command, "rm -r '%s'", root);
    CHECK(system(command) == 0);
    return test_end();
}
