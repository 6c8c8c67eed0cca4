// SPDX-License-Identifier: MIT OR Unlicense
// Shared by the fuzz targets: includes kbench.h and captures its stderr in memory. For compilers without libFuzzer
// (-fsanitize=fuzzer -DFUZZER) fuzz.h has a main function with the arguments SECONDS and FILES: for SECONDS, it
// runs the target with random mutations of the files, into which it also inserts words of the tested format.
#include <stdio.h>
static FILE* said_to;
#undef stderr
#define stderr said_to
#include "kit.h"
#undef stderr

static char said[1 << 16];

// Returns the number of lines written since the last call, as far as they fitted into the buffer.
static inline int fuzz_said(void) {
    int n = 0;
    if (!said_to) said_to = fmemopen(said, sizeof said, "w");
    if (!said_to) abort();
    fflush(said_to);
    for (long i = KBI_MIN(ftell(said_to), (long)sizeof said) - 1; i >= 0; --i) n += said[i] == '\n';
    clearerr(said_to);
    rewind(said_to);
    return n;
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

#ifdef FUZZER
#define FUZZ_MAIN(...) int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size)
#else
#define FUZZ_MAIN(...)                                            \
    static const char* const fuzz_words[] = { __VA_ARGS__ };      \
    int main(int argc, char** argv) {                             \
        fuzz_main(argc, argv, fuzz_words, KBI_COUNT(fuzz_words)); \
        return 0;                                                 \
    }                                                             \
    int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size)

static uint64_t fuzz_state = 1;
static size_t fuzz_any(size_t n) {
    fuzz_state ^= fuzz_state << 13, fuzz_state ^= fuzz_state >> 7, fuzz_state ^= fuzz_state << 17;
    return n ? (size_t)(fuzz_state % n) : 0;
}

static void fuzz_change(kbi_text* t, const char* const* words, size_t n_words) {
    size_t at = fuzz_any(t->n), length = fuzz_any(KBI_MIN(t->n - at, (size_t)200));
    const char* word = words[fuzz_any(n_words)];
    size_t what = fuzz_any(5), w = KBI_MIN(strlen(word), t->n - at);
    if (what == 0) t->s[at] = (char)fuzz_any(256);
    if (what == 1) memcpy(t->s + at, word, w);
    if (what == 2) memmove(t->s + at, t->s + at + length, t->n - at - length), t->n -= length;
    if (what == 3) t->n = at;
    if (what == 4) { // put between
        kbi_text rest = { NULL, 0, 0 };
        kbi_put(&rest, t->s + at, t->n - at);
        t->n = at;
        kbi_puts(t, word);
        kbi_put(t, rest.s, rest.n);
        kbi_text_free(&rest);
    }
}

static void fuzz_main(int argc, char** argv, const char* const* words, size_t n_words) {
    double until = argc > 1 ? strtod(argv[1], NULL) : 1;
    int64_t start = kbi_now(), runs = 0;
    for (; argc > 2 && kbi_seconds_since(start) < until; ++runs) {
        kbi_text t = { NULL, 0, 0 };
        char buffer[4096];
        FILE* f = fopen(argv[2 + fuzz_any((size_t)argc - 2)], "rb");
        size_t n;
        while (f && t.n < 65536 && (n = fread(buffer, 1, sizeof buffer, f)) > 0) kbi_put(&t, buffer, n);
        if (f) fclose(f);
        for (size_t k = 1 + fuzz_any(4); k && t.n > 4; --k) fuzz_change(&t, words, n_words);
        LLVMFuzzerTestOneInput((const uint8_t*)t.s, t.n);
        kbi_text_free(&t);
    }
    printf("%lld runs\n", (long long)runs);
}
#endif
