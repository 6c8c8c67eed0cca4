// SPDX-License-Identifier: MIT OR Unlicense
/* Tests the file of tuned choices (kbk_tune of kbench_kernels.cuh) without a GPU. Some lines of the file are
   truncated, or were written by another program, by another version, or for another GPU. Several processes append
   to one file at the same time. */
// a program of its own: it includes kbench_kernels.cuh instead of kit.h
#include "test.h"
#include "kbench_kernels.cuh"
#include <sys/wait.h>
#include <unistd.h>

#define H100 "NVIDIA H100 80GB HBM3"
static char path[] = "/tmp/kbk_tuned_XXXXXX", note[256];

static void put(const char* text) {
    FILE* f = fopen(path, "w");
    CHECK(f && fputs(text, f) >= 0 && fclose(f) == 0);
}
static kbki_tuned entry(int64_t m, int64_t n, int64_t k, const char* gpu) {
    kbk_shape s;
    memset(&s, 0, sizeof s);
    s.rows = m, s.cols = n, s.k = k, s.layout = KBK_NT;
    return kbki_tuned_key(&s, 2, 1, kbki_tuned_gpu(gpu));
}
static kbki_tuned_list list;
static const char* read_all(void) {
    free(list.of);
    memset(&list, 0, sizeof list);
    return kbki_tuned_read(&list, path, note, sizeof note);
}

static void test_round_trip(void) {
    char text[256] = "";
    kbki_tuned t = entry(1024, 512, 4096, H100), other = entry(1024, 512, 4096, "NVIDIA H200");
    put("");
    for (int way = 0; way < KBKI_WG_WAYS; way++)
        for (int i = 0; i < 18; i++) {
            kbki_tuned each = t;
            each.elem = kbki_wg_way_of(way).elem, each.by.way = way, each.by.clocks = 1000 + way;
            each.by.split = i % 9, each.by.along_n = i / 9;
            each.s.rows = 1000 + way * 18 + i;
            if (!(kbki_wg_clocks(&each.s, each.elem, 1, KBKI_WG_SMS, each.by) < (double)INFINITY)) continue;
            CHECK(!kbki_tuned_write(path, &each, H100));
            CHECK_THAT(!read_all(), "%s", note);
            const kbki_tuned* got = kbki_tuned_find(&list, &each);
            CHECK_THAT(got && got->by.way == way && got->by.split == i % 9 && got->by.along_n == i / 9, "way %d, choice %d", way, i);
        }
    CHECK(list.count > KBKI_WG_WAYS);
    t.by.way = KBKI_WG_wide, t.by.clocks = 5000;
    put("# shipped with a program\n\n");
    CHECK(!kbki_tuned_write(path, &t, H100));
    t.by.way = KBKI_WG_small, t.by.clocks = 4000;
    CHECK(!kbki_tuned_write(path, &t, H100));
    CHECK(!read_all());
    CHECK_INT(list.count, 1);
    // if several lines of the file have the same key, the last one is valid
    CHECK(kbki_tuned_find(&list, &t) && kbki_tuned_find(&list, &t)->by.way == KBKI_WG_small);
    CHECK(!kbki_tuned_find(&list, &other));
    for (int i = 0; i < 5; i++) {
        kbki_tuned near = t;
        *(i == 0 ? &near.s.rows : i == 1 ? &near.s.cols : i == 2 ? &near.s.k : &near.s.batch) += 8;
        if (i == 4) near = t, near.elem = 1;
        CHECK(!kbki_tuned_find(&list, &near));
    }
    FILE* f = fopen(path, "r");
    CHECK(f && fgets(text, sizeof text, f) && fgets(text, sizeof text, f) && fgets(text, sizeof text, f));
    fclose(f);
    CHECK(strcmp(text, "kbk_tuned 1 2 NT 1024 512 4096 1 128x256x2 0 5000 " H100 "\n") == 0);
}

static void test_bad_lines(void) {
    static const struct {
        const char *line, *why;
    } bad[] = {
        { "kbk_tuned 1 2 NT 1024 512 4096 1 128x256x2 0 50", "incomplete" },
        { "kbk_tuned 1 2 NT 1024 512\n", "a field is missing" },
        { "kbk_tuned 1 2 NT 1024 512 4096 1 128x256x2 0 5000\n", "a field is missing" },
        { "kbk_tuned 1 2 NT 1024 x 4096 1 128x256x2 0 5000 " H100 "\n", "a field is missing" },
        { "kbk_tuned 2 2 NT 1024 512 4096 1 128x256x2 0 5000 " H100 "\n", "another version" },
        { "kbk_tuned\n", "kbk_tune did not write this line" },
        { "hello\n", "kbk_tune did not write this line" },
        { "\001\002\003\n", "kbk_tune did not write this line" },
        { "kbk_tuned 1 2 XX 1024 512 4096 1 128x256x2 0 5000 " H100 "\n", "invalid value" },
        { "kbk_tuned 1 3 NT 1024 512 4096 1 128x256x2 0 5000 " H100 "\n", "invalid value" },
        { "kbk_tuned 1 2 NT 1024 512 4096 1 96x96x9 0 5000 " H100 "\n", "invalid value" },
        { "kbk_tuned 1 2 NT -1024 512 4096 1 128x256x2 0 5000 " H100 "\n", "invalid value" },
        { "kbk_tuned 1 2 NT 1024 512 0 1 128x256x2 0 5000 " H100 "\n", "invalid value" },
        { "kbk_tuned 1 2 NT 1024 512 8 1 128x256x2 1 5000 " H100 "\n", "cannot compute" },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        put(bad[i].line);
        const char* why = read_all();
        CHECK_THAT(why && strstr(why, bad[i].why) && strstr(why, "line 1"), "%s: %s", bad[i].line, why ? why : "-");
        CHECK_INT(list.count, 0);
    }
    char text[2000] = "kbk_tuned 1 2 NT 8 8 8 1 64x64x2 0 5000 " H100 "\n";
    for (size_t i = strlen(text); i < sizeof text - 1; i++) text[i] = 'x', text[i + 1] = '\0';
    put(text); // a long line without a newline at its end
    CHECK(read_all() && list.count == 1 && strstr(note, "line 2"));
    kbki_tuned t = entry(16, 16, 16, H100);
    t.by.way = KBKI_WG_small, t.by.clocks = 7000;
    // the new entry starts a new line and is not joined to the incomplete line
    CHECK(!kbki_tuned_write(path, &t, H100));
    CHECK(read_all() && list.count == 2 && kbki_tuned_find(&list, &t));
    unlink(path);
    CHECK(read_all() && strstr(note, "cannot be read"));
    CHECK(kbki_tuned_write("/nowhere/at/all", &t, H100) != NULL);
}

static void test_many_writers(void) {
    enum { WRITERS = 8, LINES = 200 };
    put("");
    for (int w = 0; w < WRITERS; w++)
        if (fork() == 0) {
            for (int i = 0; i < LINES; i++) {
                kbki_tuned t = entry(8 + w, 8 + i, 64, H100);
                t.by.way = KBKI_WG_small, t.by.clocks = 1000;
                if (kbki_tuned_write(path, &t, H100)) _exit(1);
            }
            _exit(0);
        }
    for (int w = 0, status = 0; w < WRITERS; w++) CHECK(wait(&status) > 0 && status == 0);
    CHECK_THAT(!read_all(), "%s", note);
    CHECK_INT(list.count, WRITERS * LINES);
}

int main(void) {
    close(mkstemp(path));
    test_round_trip();
    test_bad_lines();
    test_many_writers();
    unlink(path);
    free(list.of);
    return test_end();
}
