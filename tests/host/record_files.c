// SPDX-License-Identifier: MIT OR Unlicense
// Tests record files when writes fail. Records that cannot be written yet are kept, then written later or reported
// as lost.
// a program of its own: this test replaces functions of the C library.
#include "test.h"
#include "guarded.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

// Simulates a disk with `room` free bytes (-1: unlimited) that accepts at most `piece` bytes per call. If
// `refused` is 0, a write to the full disk returns 0 without an error.
static struct {
    long room;
    size_t piece;
    int refused, interruptions;
} disk = { -1, 0, ENOSPC, 0 };
static ssize_t played_write(int file, const void* from, size_t n) {
    if (disk.interruptions-- > 0) return errno = EINTR, -1;
    if (disk.piece && n > disk.piece) n = disk.piece;
    if (disk.room == 0) return disk.refused ? (errno = disk.refused, -1) : (errno = EBADF, 0);
    if (disk.room > 0 && n > (size_t)disk.room) n = (size_t)disk.room;
    if (disk.room > 0) disk.room -= (long)n;
    return write(file, from, n);
}
static int sync_error;
static int played_fsync(int file) { return sync_error ? (errno = sync_error, -1) : fsync(file); }
static int read_good, read_error; // read_error: errno after `read_good` successful reads; 0: no error
static ssize_t played_read(int file, void* to, size_t n) {
    if (read_error && read_good-- <= 0) return errno = read_error, -1;
    return read(file, to, read_error && n > 100 ? 100 : n);
}
static int waited; // simulated waiting time in ms
static int played_poll(struct pollfd* p, nfds_t n, int milliseconds) {
    return p->fd < 0 ? (waited += milliseconds, 0) : poll(p, n, milliseconds);
}
#define poll played_poll
#define write played_write
#define fsync(file) played_fsync(file)
#define read played_read
#define KIT_WITHOUT_ADDONS
#include "kit.h"
#undef write
#undef read
#undef fsync
#undef poll

#define ONE "{\"name\": \"old\", \"operation\": \"old\"}"
#define OLD "[\n" ONE "\n]\n"
static char folder[200], told[4000];
static int told_kept = -1;
static FILE* told_in;

static void hear(void) {
    fflush(stderr);
    told_in = tmpfile(), told_kept = dup(2);
    dup2(fileno(told_in), 2);
}
static const char* heard(void) {
    fflush(stderr);
    dup2(told_kept, 2), close(told_kept);
    rewind(told_in);
    told[fread(told, 1, sizeof told - 1, told_in)] = 0;
    fclose(told_in);
    return told;
}

static const char* in(const char* name) {
    static char paths[32][500];
    static int at;
    char* path = paths[at++ % 32];
    snprintf(path, sizeof paths[0], "%.199s/%.290s", folder, name);
    return path;
}
static void put(const char* name, const char* text) {
    FILE* f = fopen(in(name), "w");
    if (CHECK(f != NULL)) fputs(text, f), fclose(f);
}
static const char* text_of(const char* name) {
    static char text[400000];
    FILE* f = fopen(in(name), "r");
    text[f ? fread(text, 1, sizeof text - 1, f) : 0] = 0;
    if (f) fclose(f);
    return text;
}
static bool there(const char* name) {
    struct stat about;
    return lstat(in(name), &about) == 0;
}
static int files(void) {
    int n = 0;
    DIR* d = opendir(folder);
    for (struct dirent* e; d && (e = readdir(d)) != NULL;) n += e->d_name[0] != '.';
    if (d) closedir(d);
    return n;
}
static int count(const char* text, const char* part) {
    int n = 0;
    for (; (text = strstr(text, part)) != NULL; text++) n++;
    return n;
}
static kb_result record(const char* name) {
    kb_result r;
    kbi_result_clear(&r);
    r.name = r.operation = name;
    return r;
}

// --- delayed writes ---

// Two records are added while the disk is full. In round 0 the disk stays full; in round 1 it has room again
// before the file is closed.
static void test_full(void) {
    kb_result a = record("first"), b = record("second");
    for (int room = 0; room < 2; room++) {
        kbi_store s;
        char said[600];
        put("r.json", OLD), put("r.jsonl", "");
        CHECK(kbi_store_open(&s, in("r.json"), in("r.jsonl")));
        hear();
        disk.room = 100, disk.piece = 30;
        kbi_store_add(&s, &a, 1, true), kbi_store_add(&s, &b, 1, true);
        const char* text = heard();
        // the failure is reported once, not for each record; the JSON array is written at the end
        CHECK_INT(count(text, "\n"), 1);
        snprintf(said, sizeof said, "writing --jsonl %s failed: No space left on device\n", in("r.jsonl"));
        CHECK_HAS(text, said);
        CHECK_STR(text_of("r.json"), OLD);
        size_t waiting = s.lines.waiting.n;
        hear();
        disk.room = room ? -1 : 0;
        CHECK_INT(kbi_store_close(&s), room);
        text = heard();
        CHECK_INT(count(text, "\n"), room ? 1 : 2), CHECK_INT(files(), 2);
        if (room) {
            snprintf(said, sizeof said, "--jsonl %s: a later attempt wrote all of it\n", in("r.jsonl"));
            CHECK_HAS(text, said);
            CHECK(!strncmp(text_of("r.json"), "[\n{", 3) && strstr(text_of("r.json"), "},\n{"));
            CHECK_STR(strrchr(text_of("r.json"), '}'), "}\n]\n"),
                CHECK_INT(count(text_of("r.json"), "\"run_id\""), 2);
            CHECK_INT(count(text_of("r.jsonl"), "\n{") + (text_of("r.jsonl")[0] == '{'), 2);
        } else {
            snprintf(said, sizeof said, "--jsonl %s: %zu bytes could not be written: No space left", in("r.jsonl"),
                     waiting);
            CHECK_HAS(text, said);
            snprintf(said, sizeof said, "writing --json %s failed: No space left on device\n", in("r.json"));
            CHECK_HAS(text, said), CHECK_STR(text_of("r.json"), OLD);
        }
        disk.room = -1, disk.piece = 0;
    }
    // failures at the end of the run; how = 0: the last bytes cannot be written; 1: fsync fails; 2: fsync is not
    // supported (as on a pipe)
    for (int how = 0; how < 3; how++) {
        kbi_store s;
        char said[600];
        unlink(in("r.json"));
        CHECK(kbi_store_open(&s, in("r.json"), NULL));
        kbi_store_add(&s, &a, 1, true);
        hear();
        disk.room = how == 0 ? 0 : -1, sync_error = how == 1 ? EIO : how == 2 ? EINVAL : 0;
        CHECK_INT(kbi_store_close(&s), how == 2);
        snprintf(said, sizeof said, "writing --json %s failed: %s", in("r.json"), strerror(how ? EIO : ENOSPC));
        CHECK_INT(count(heard(), said), how < 2), CHECK_INT(there("r.json"), how == 2),
            CHECK_INT(files(), 1 + (how == 2));
        disk.room = -1, sync_error = 0;
    }
    unlink(in("r.json")), unlink(in("r.jsonl"));
    kb_result_free(&a), kb_result_free(&b);
}

// kbench waits for a slow reader as long as the reader accepts data. Otherwise the wait times out.
static void test_slow(void) {
    enum { SIZE = 300000 };
    static char some[SIZE];
    int ends[2], status = 1;
    for (int i = 0; i < SIZE; i++) some[i] = (char)('a' + i % 23);
    for (int reads = 0; reads < 2; reads++) {
        if (!CHECK(pipe(ends) == 0)) return;
        fcntl(ends[1], F_SETFL, O_NONBLOCK);
        kbi_text waiting = KBI_BLANK;
        kbi_put(&waiting, some, SIZE);
        pid_t child = reads ? fork() : 0;
        if (reads && !child) {
            char got[4000];
            long n = 0, same = 0;
            close(ends[1]);
            for (ssize_t k; (k = read(ends[0], got, sizeof got)) > 0; n += k) {
                same += memcmp(got, some + n, (size_t)k) == 0 ? k : 0;
                if (n % 40000 < 4000) usleep(2000);
            }
            _exit(n == SIZE && same == SIZE ? 0 : 3);
        }
        int64_t began = kbi_now();
        bool all = kbi_flush(ends[1], &waiting, reads ? 10000 : 50);
        int why = errno;
        double took = kbi_seconds_since(began);
        CHECK_INT(all, reads);
        if (reads) {
            CHECK_INT(waiting.n, 0);
        } else {
            CHECK_INT(why, EAGAIN), CHECK_INT(waiting.n, SIZE - 65536);
            CHECK(memcmp(waiting.s, some + 65536, SIZE - 65536) == 0);
            CHECK_THAT(took > 0.045 && took < 5, "%g s", took);
        }
        close(ends[0]), close(ends[1]);
        if (reads) CHECK(waitpid(child, &status, 0) == child && status == 0);
        kbi_text_free(&waiting);
    }
    // an interrupted write is repeated; a write of 0 bytes without an error means a full disk
    put("o", "");
    kbi_text waiting = KBI_BLANK;
    int file = open(in("o"), O_WRONLY);
    kbi_puts(&waiting, "interrupted"), disk.interruptions = 3;
    CHECK(kbi_flush(file, &waiting, 0) && !waiting.n), CHECK_STR(text_of("o"), "interrupted");
    kbi_puts(&waiting, " and full"), disk.interruptions = 0, disk.room = 4, disk.refused = 0;
    CHECK(!kbi_flush(file, &waiting, 0)), CHECK_INT(errno, ENOSPC);
    CHECK_STR(text_of("o"), "interrupted and"), CHECK_INT(waiting.n, 5), CHECK(!strncmp(waiting.s, " full", 5));
    disk.room = -1, disk.refused = ENOSPC;
    CHECK(kbi_flush(file, &waiting, 0)), CHECK_STR(text_of("o"), "interrupted and full");
    close(file), kbi_text_free(&waiting), unlink(in("o"));
}

// --- names of files beside a file ---

static void test_beside(void) {
    char name[260];
    for (int length = 219; length <= 222; length++)
        for (int below = 0; below < 2; below++) {
            kbi_text path = KBI_BLANK, want = KBI_BLANK;
            memset(name, 'n', sizeof name), name[length] = 0;
            kbi_putf(&path, "%s%s", below ? "a/b/" : "", name);
            char* beside = kbi_name_beside(path.s, ".tmp");
            kbi_putf(&want, "%s%.220s.%ld.tmp", below ? "a/b/" : "", name, (long)getpid());
            CHECK_STR(beside, want.s);
            KBENCH_FREE(beside), kbi_text_free(&path), kbi_text_free(&want);
        }
}

// --- opening and replacing files ---

static void opens(const char* json, const char* jsonl, const char* says) {
    kbi_store s;
    hear();
    bool good = kbi_store_open(&s, json, jsonl);
    const char* text = heard();
    CHECK_THAT(good == !says, "%s, %s: %s", json ? json : "-", jsonl ? jsonl : "-", text);
    CHECK_HAS(text, says ? says : "");
    if (!says) CHECK_STR(text, "");
    if (good) CHECK(kbi_store_close(&s));
    if (!good) CHECK(s.array.file == -1 && s.lines.file == -1 && !s.array.path && !s.lines.path);
}

static void test_open(void) {
    put("source.c", "int main(void) {}\n"), put("blank", " \t\r\n"), put("array", "[]\n"), put("lines", ONE "\n");
    opens(in("source.c"), NULL, "source.c: another program wrote this file, so it is not replaced");
    opens(NULL, in("source.c"), "source.c: another program wrote this file");
    opens(in("a"), in("source.c"), "source.c: another program wrote this file"), CHECK(!there("a"));
    CHECK_STR(text_of("source.c"), "int main(void) {}\n");
    opens(in("array"), in("lines"), NULL), CHECK_STR(text_of("array"), "[]\n"), CHECK_STR(text_of("lines"), ONE "\n");
    opens(in("lines"), NULL, "another program wrote this file"), opens(NULL, in("array"), "another program wrote this file");
    opens("", NULL, "--json needs the name of a file, and this name is empty"), opens(NULL, "", "--jsonl needs the name of a file");
    opens(in("a"), "", "--jsonl needs the name of a file"), opens("-", "-", "would mix on stdout");
    opens(in("no/a"), NULL, "No such file or directory"), opens(NULL, in("no/a"), "No such file or directory");
    CHECK_INT(files(), 4);
    // the target of a symbolic link is replaced and keeps its mode, even if a benchmark function changes the
    // working directory
    char here[500];
    kbi_store s;
    struct stat about;
    CHECK(symlink("array", in("link")) == 0 && chmod(in("array"), 0640) == 0 && getcwd(here, sizeof here) != NULL);
    CHECK(chdir(folder) == 0 && kbi_store_open(&s, "link", "lines") && chdir(here) == 0);
    kb_result r = record("one");
    kbi_store_add(&s, &r, 1, true), CHECK(kbi_store_close(&s));
    CHECK(lstat(in("link"), &about) == 0 && S_ISLNK(about.st_mode) && stat(in("array"), &about) == 0);
    CHECK_INT(about.st_mode & 07777, 0640), CHECK_HAS(text_of("array"), "\"one\"");
    CHECK_INT(count(text_of("lines"), "\n"), 2);
    CHECK(chdir(folder) == 0 && kbi_store_open(&s, "new", NULL) && chdir(here) == 0 && kbi_store_close(&s));
    CHECK_STR(text_of("new"), "[]\n");
    // an empty array replaces no earlier results
    for (int keep = 0; keep < 3; keep++) {
        put("new", OLD);
        CHECK(kbi_store_open(&s, in("new"), NULL)), s.keep = keep > 0;
        if (keep == 2) kbi_store_add(&s, &r, 1, true);
        CHECK(kbi_store_close(&s)), CHECK_INT(strcmp(text_of("new"), OLD) == 0, keep == 1);
    }
    CHECK_INT(files(), 6);
    const char* all[] = { "source.c", "blank", "array", "lines", "link", "new" };
    for (int i = 0; i < KBI_COUNT(all); i++) unlink(in(all[i]));
    kb_result_free(&r);
}

// An incomplete last line of a killed run gets a newline.
static void test_lines(void) {
    static const char* const before[] = { "", ONE "\n", ONE };
    kb_result r = record("one");
    kbi_store s;
    struct stat about;
    for (int i = 0; i < 3; i++) {
        put("l", before[i]);
        CHECK(kbi_store_open(&s, NULL, in("l")));
        kbi_store_add(&s, &r, 1, true), CHECK(kbi_store_close(&s));
        const char* text = text_of("l");
        CHECK(strncmp(text, before[i], strlen(before[i])) == 0);
        text += strlen(before[i]);
        CHECK(*text == (i == 2 ? '\n' : '{') && text[strlen(text) - 1] == '\n');
    }
    // --resume replaces a file whose name is a symbolic link in three cases: one line is kept, no line is kept, or
    // another process replaces the file at the same time
    for (int how = 0; how < 3; how++) {
        kbi_text lines = KBI_BLANK;
        put("l", ONE "\n{\"name\": \"torn"), chmod(in("l"), 0604), unlink(in("k"));
        CHECK(symlink("l", in("k")) == 0);
        CHECK(kbi_store_open(&s, NULL, in("k")));
        int file = kbi_lines_lock(&s.lines);
        CHECK(file >= 0 && fstat(file, &about) == 0);
        if (how != 1) kbi_puts(&lines, ONE "\n");
        CHECK(kbi_replace(s.lines.path, &lines, &about)), close(file);
        if (how == 2) put("n", ONE "\n"), chmod(in("n"), 0604), rename(in("n"), in("l"));
        kbi_store_add(&s, &r, 1, true), CHECK(kbi_store_close(&s));
        const char* text = text_of("l");
        CHECK(lstat(in("k"), &about) == 0 && S_ISLNK(about.st_mode) && stat(in("l"), &about) == 0);
        CHECK_INT(about.st_mode & 07777, 0604), CHECK_HAS(text, "\"one\""), CHECK(!strstr(text, "torn"));
        CHECK_INT(count(text, "\n"), how == 1 ? 1 : 2), kbi_text_free(&lines);
    }
    kb_result_free(&r), unlink(in("l")), unlink(in("k"));
    CHECK_INT(files(), 0);
}

static void test_ours(void) {
    static const struct {
        const char* text;
        bool array, lines;
    } rows[] = { { "", true, true },
                 { " \r\n\t", true, true },
                 { "[]\n", true, false },
                 { " [ ]", true, false },
                 { OLD, true, false },
                 { "[\n" ONE ",\n{\"name\": \"cut", true, false },
                 { "[1, 2]\n", false, false },
                 { "[package]\nname = \"x\"\n", false, false },
                 { "[core]\n\tbare = false\n", false, false },
                 { "[] and more", false, false },
                 { "[{\"name\": \"x\", \"operation\": \"y\"}]", true, false },
                 { "[\n  {\n    \"name\":\"x\",\n    \"operation\":\"y\"\n  }\n]", true, false },
                 { " [ ] ", true, false },
                 { "[\n{\"name\": \"x\"}\n]\n", false, false },
                 { "[a link](x) to a page\n", false, false },
                 { ONE "\n", false, true },
                 { ONE, false, true },
                 { "# a line of another tool\n" ONE "\n", false, true },
                 { "{\"name\": \"cut\n" ONE "\n", false, true },
                 { "{\"name\": \"cut", false, true },
                 { "{\"na", false, true },
                 { "{\"name\": \"x\", \"operation\": \"y", false, true },
                 { "{\n  \"name\": \"x\",\n  \"version\": \"1.0\"\n}\n", false, false },
                 { "{\"name\": \"x\", \"version\": \"1.0\"}\n", false, false },
                 { "{}\n", false, false },
                 { "# Notes\n", false, false } };
    for (int i = 0; i < KBI_COUNT(rows); i++) {
        put("h", rows[i].text);
        int file = open(in("h"), O_RDONLY);
        CHECK_THAT(kbi_file_ours(file, &kbi_array_mark) == rows[i].array && errno == 0, "an array: %s", rows[i].text);
        CHECK_THAT(kbi_file_ours(file, &kbi_line_mark) == rows[i].lines && errno == 0, "lines: %s", rows[i].text);
        close(file);
    }
    // first a file that begins with zero bytes (as after a power failure), then one with more blanks at the start
    // than the check reads
    int file = open(in("h"), O_RDWR);
    CHECK(ftruncate(file, 0) == 0 && ftruncate(file, 100) == 0);
    CHECK(!kbi_file_ours(file, &kbi_array_mark) && !kbi_file_ours(file, &kbi_line_mark)), close(file);
    FILE* f = fopen(in("h"), "w");
    for (int i = 0; f && i < 300000; i++) fputc(' ', f);
    if (f) fputs("notes", f), fclose(f);
    file = open(in("h"), O_RDONLY), CHECK(!kbi_file_ours(file, &kbi_array_mark)), close(file);
    unlink(in("h"));
}

// Another program changes a JSON Lines file while a run writes to this file.
static void test_changed(void) {
    enum { NOTHING, REPLACED, REMOVED, CUT, OTHERS, GROWN, REWRITTEN, FOLDER, HOWS };
    kb_result a = record("one"), b = record("two");
    char beside[60], said[100];
    snprintf(beside, sizeof beside, "l.%ld.jsonl", (long)getpid());
    for (int how = 0; how < HOWS; how++)
        for (int late = 0; late < 2; late++) {
            kbi_store s;
            bool lost = how == REPLACED || how == REMOVED || how == CUT || how == FOLDER;
            put("l", ONE "\n");
            CHECK(kbi_store_open(&s, NULL, in("l")));
            kbi_store_add(&s, &a, 1, true);
            hear();
            if (late) kbi_store_add(&s, &b, 1, true);
            char was[20000];
            snprintf(was, sizeof was, "%s", text_of("l"));
            switch (how) {
            case REPLACED: put("n", ONE "\n"), rename(in("n"), in("l")); break;
            case REMOVED: unlink(in("l")); break;
            case CUT: put("l", ONE "\n"); break;
            case OTHERS: put("n", "another tool\n"), rename(in("n"), in("l")); lost = true; break;
            case GROWN: CHECK(truncate(in("l"), (off_t)strlen(was)) == 0); break;
            case REWRITTEN: put("n", was), rename(in("n"), in("l")); break;
            case FOLDER: unlink(in("l")), mkdir(in("l"), 0777); break;
            }
            if (!late) kbi_store_add(&s, &b, 1, true);
            CHECK_INT(kbi_store_close(&s), !lost);
            const char* text = heard();
            snprintf(said, sizeof said, "was changed by another process during this run");
            CHECK_THAT((strstr(text, said) != NULL) == lost, "%d: %s", how, text);
            CHECK_INT(there(beside), lost);
            text = text_of(lost ? beside : "l");
            CHECK_THAT(count(text, "\"name\": \"one\"") == 1 && count(text, "\"name\": \"two\"") == 1, "%d: %s", how, text);
            if (how == OTHERS) CHECK_STR(text_of("l"), "another tool\n");
            if (how == REPLACED || how == CUT) CHECK_STR(text_of("l"), ONE "\n");
            unlink(in("l")), rmdir(in("l")), unlink(in(beside));
            CHECK_INT(files(), 0);
        }
    kb_result_free(&a), kb_result_free(&b);
}

// Only one process at a time writes to a file. A second process waits for the first, and after some time writes to
// another file in the same folder.
static void test_locked(void) {
    int ends[2];
    char byte = 0;
    kb_result r = record("one");
    kbi_store s;
    put("l", "");
    if (!CHECK(pipe(ends) == 0)) return;
    pid_t child = fork();
    if (!child) {
        struct flock lock;
        memset(&lock, 0, sizeof lock), lock.l_type = F_WRLCK;
        int file = open(in("l"), O_RDWR);
        byte = fcntl(file, F_SETLK, &lock) == 0;
        if (write(ends[1], &byte, 1) != 1) _exit(1);
        pause(), _exit(0);
    }
    CHECK(read(ends[0], &byte, 1) == 1 && byte == 1);
    waited = 0, opens(NULL, in("l"), "another process has locked it"), CHECK_THAT(waited >= 10000 && waited < 10100, "%d ms", waited);
    kill(child, SIGKILL), waitpid(child, NULL, 0);
    char beside[60];
    CHECK(kbi_store_open(&s, NULL, in("l")));
    child = fork();
    if (!child) {
        struct flock lock;
        memset(&lock, 0, sizeof lock), lock.l_type = F_WRLCK;
        int file = open(in("l"), O_RDWR);
        byte = fcntl(file, F_SETLK, &lock) == 0;
        if (write(ends[1], &byte, 1) != 1) _exit(1);
        pause(), _exit(0);
    }
    CHECK(read(ends[0], &byte, 1) == 1 && byte == 1), hear();
    kbi_store_add(&s, &r, 1, true), kbi_store_add(&s, &r, 1, true), CHECK(!kbi_store_close(&s));
    const char* text = heard();
    CHECK_INT(count(text, "is locked by another process"), 1), CHECK_INT(count(text, "\n"), 1);
    snprintf(beside, sizeof beside, "l.%ld.jsonl", (long)getpid());
    CHECK_INT(count(text_of(beside), "\n"), 2), unlink(in(beside));
    kill(child, SIGKILL), waitpid(child, NULL, 0), close(ends[0]), close(ends[1]);
    CHECK(kbi_store_open(&s, NULL, in("l")));
    kbi_store_add(&s, &r, 1, true), CHECK(kbi_store_close(&s)), CHECK_INT(count(text_of("l"), "\n"), 1);
    unlink(in("l")), kb_result_free(&r);
}

static void test_unreadable(void) {
    kbi_text all = KBI_BLANK;
    put("l", ONE "\n" ONE "\n" ONE "\n" ONE "\n" ONE "\n"), put("a", OLD);
    for (read_good = 0; read_good < 2; read_good++) {
        int good = read_good;
        read_error = EIO, opens(NULL, in("l"), strerror(EIO)), read_good = 0;
        opens(in("a"), NULL, strerror(EIO)), read_good = good;
        int file = open(in("l"), O_RDONLY);
        CHECK(!kbi_read_file(file, &all, SIZE_MAX)), CHECK_INT(errno, EIO), close(file);
        read_good = good;
        uint64_t h = 1;
        CHECK(!kbi_hash_file(&h, open(in("l"), O_RDONLY))), CHECK_INT(errno, EIO);
        read_good = good;
    }
    kbi_store s;
    kb_result r = record("one");
    read_error = 0;
    CHECK(kbi_store_open(&s, NULL, in("l")));
    read_error = EIO, read_good = 0;
    kbi_store_add(&s, &r, 1, true), read_error = 0, CHECK(kbi_store_close(&s));
    CHECK_HAS(text_of("l"), ONE "\n\n{\"name\": \"one\"");
    kbi_text_free(&all), unlink(in("l")), unlink(in("a")), kb_result_free(&r);
}

// A file that another program changed during the run is not overwritten. Of two runs with one output file, the run
// that ends last writes to another file next to it.
static void test_two(void) {
    kbi_store s;
    kb_result r = record("one");
    char name[60];
    for (int old = 0; old < 2; old++) {
        if (old) put("r.json", OLD);
        CHECK(kbi_store_open(&s, in("r.json"), NULL));
        kbi_store_add(&s, &r, 1, true), put("r.json", "somebody's"), hear();
        CHECK(!kbi_store_close(&s));
        CHECK_HAS(heard(), "was changed by another process during this run");
        CHECK_STR(text_of("r.json"), "somebody's");
        snprintf(name, sizeof name, "r.json.%ld.json", (long)getpid());
        CHECK_HAS(text_of(name), "\"one\""), unlink(in(name)), unlink(in("r.json"));
    }
    CHECK_INT(files(), 0), kb_result_free(&r);
}

// kbench waits up to two seconds for a reader of a pipe. If the pipe has a reader, each record is written
// immediately.
static void test_pipe(void) {
    char got[8000];
    kb_result r = record("one");
    kbi_store s;
    if (!CHECK(mkfifo(in("p"), 0666) == 0)) return;
    waited = 0, opens(in("p"), NULL, "no process reads this pipe"), CHECK_INT(waited, 2000);
    for (int lines = 0; lines < 2; lines++) {
        int reader = open(in("p"), O_RDONLY | O_NONBLOCK);
        CHECK(kbi_store_open(&s, lines ? NULL : in("p"), lines ? in("p") : NULL));
        for (int i = 0; i < 2; i++) {
            kbi_store_add(&s, &r, 1, true);
            ssize_t n = read(reader, got, sizeof got - 1);
            got[KBI_MAX(n, 0)] = 0;
            CHECK_INT(count(got, "\"one\""), 2);
        }
        CHECK(kbi_store_close(&s)), close(reader);
    }
    unlink(in("p")), kb_result_free(&r);
}

int main(int argc, char** argv) {
    snprintf(folder, sizeof folder, "%.180s.XXXXXX", argc > 0 ? argv[0] : "store");
    char* whole = mkdtemp(folder) ? realpath(folder, NULL) : NULL;
    if (!whole || strlen(whole) >= sizeof folder) return SKIP("cannot create a temporary folder"), test_end();
    strcpy(folder, whole), free(whole);
    signal(SIGPIPE, SIG_IGN);
    umask(022);
    test_full();
    test_slow();
    test_beside();
    test_open();
    test_lines();
    test_ours();
    test_changed();
    test_locked();
    test_unreadable();
    test_two();
    test_pipe();
    CHECK(rmdir(folder) == 0);
    return test_end();
}
