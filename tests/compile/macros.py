#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Unlicense
# macros.py - finds short capital names in a header that a user's -DN=1024 or #define TILE 32 would replace.
#   python3 tests/compile/macros.py HEADER       prints "LINE NAME TIMES" for each name, LINE being its first line
#   python3 tests/compile/macros.py -w HEADER    prints the words of the X-macro KB_FLAGS, which are exempt (see ROWS)
import re
import sys

TOKEN = re.compile(
    r"""(?P<comment>//(?:\\\n|[^\n])*|/\*.*?\*/)
      | (?P<text>(?:u8|[uUL])?R"(?P<mark>[^()\\\s]*)\(.*?\)(?P=mark)"
               | (?:u8|[uUL])?"(?:\\.|[^"\\\n])*" | (?:u8|[uUL])?'(?:\\.|[^'\\\n])+')
      | (?P<number>\.?[0-9](?:[eEpP][+-]|'[0-9a-zA-Z]|[.\w])*)
      | (?P<name>[A-Za-z_]\w*)""",
    re.S | re.X,
)
# names of this project, and names that are reserved for the compiler and the C library: _X and __x
OWN = r"(?:KB|KBI|KBK|KBKI|KBENCH)_\w*|KBENCH"
RESERVED = r"_[A-Z_]\w*"
# names of element types in templates; CUDA's own headers also use the names T and U in templates
TEMPLATES = r"T|U"
# names that included headers define: a macro with such a name would break those headers first
C_LIBRARY = """NULL NAN INFINITY HUGE_VAL FILE SEEK_SET SEEK_CUR SEEK_END INT32_MAX INT64_MAX INT64_MIN UINT64_MAX
               SIZE_MAX EACCES EAGAIN EBUSY EEXIST EINTR EINVAL EIO EISDIR ELOOP ENODEV ENOENT ENOEXEC ENOSPC
               ENOTDIR ENOTSUP ENXIO EOPNOTSUPP EPERM EROFS ESPIPE ESRCH ESTALE EWOULDBLOCK LC_ALL"""
POSIX = """POLLIN POLLOUT FD_CLOEXEC S_ISBLK S_ISCHR S_ISDIR S_ISFIFO S_ISREG W_OK X_OK WNOHANG WIFEXITED WIFSIGNALED
           WIFSTOPPED WTERMSIG WEXITSTATUS WSTOPSIG ITIMER_REAL ITIMER_VIRTUAL ITIMER_PROF PRIO_PROCESS TIOCGWINSZ
           LC_GLOBAL_LOCALE PR_SET_PDEATHSIG AT_PHDR DIR"""
ELF = "ELFMAG SELFMAG EI_CLASS ELFCLASS32 ELFCLASS64 SHT_SYMTAB SHT_DYNSYM"  # elf.h, through link.h
# prefixes of all constants of signal, sigaction, fcntl, open, mmap, dlopen, regcomp, setrlimit and clock_gettime
POSIX_PREFIXES = "SIG SA F O MAP MADV PROT RTLD REG RLIMIT CLOCK LOCK"
CUDA = "CUDART_VERSION CUDA_R_32F CUDA_R_16F CUDA_R_16BF CUDA_R_8F_E4M3 GCC"  # GCC: #pragma GCC
CUDA_PREFIXES = "CUBLAS CUBLASLT"
PREFIXES = [r"SIG_?[A-Z]+" if p == "SIG" else p + r"_\w+" for p in (POSIX_PREFIXES + " " + CUDA_PREFIXES).split()]
ALLOWED = re.compile("|".join([OWN, RESERVED, TEMPLATES] + " ".join([C_LIBRARY, POSIX, ELF, CUDA]).split() + PREFIXES))
# The rows of KB_FLAGS are exempt: their names are pasted to KB_FLAG_ or stringified, which does not expand macros.
# macros.sh defines all names of the rows of KB_FLAGS as macros and compiles the header.
ROWS = re.compile(r"^#define KB_FLAGS\(\w+\)(?P<rows>(?:\\\n|[^\n])*)", re.M)


def capitals(text):
    for token in TOKEN.finditer(text):
        name = token.group("name")
        if name and re.search("[A-Z]", name) and not re.search("[a-z]", name):
            yield token.start(), name


def main(arguments):
    words_only = arguments[:1] == ["-w"]
    with open(arguments[-1], encoding="utf-8") as file:
        text = file.read()
    rows = ROWS.search(text)
    begin, end = rows.span("rows") if rows else (0, 0)
    parameter = rows.group(0).split("(", 1)[1].split(")", 1)[0] if rows else ""
    words, found = set(), {}  # found: name to [first line, times]
    for at, name in capitals(text):
        if begin <= at < end and name != parameter:
            words.add(name)
        elif not ALLOWED.fullmatch(name):
            found.setdefault(name, [text.count("\n", 0, at) + 1, 0])[1] += 1
    if words_only:
        print("\n".join(sorted(words)))
    else:
        for name, (line, times) in sorted(found.items(), key=lambda entry: entry[1]):
            print(line, name, times)


main(sys.argv[1:])
