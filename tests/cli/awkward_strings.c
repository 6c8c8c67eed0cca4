// SPDX-License-Identifier: MIT OR Unlicense
// Benchmarks with names, values and messages whose characters JSON must escape and tables must escape or align.
#include <locale.h>
#include <stdlib.h>
#include "kbench.h"

KBENCH_IMPL(odd, text,
            KB_AXIS_STR("what", "plain", "quote\"d", "back\\slash", "tab\there", "\xc3\xa9", "bad\xff\xfe",
                        "cut\xe2\x82", "100%s%n", "</script>", "")) {
    KB_TIME(kb) { for (int kept = 0; kept < 20; kept++) kb_keep(kb); }
    kb_note(kb, "line\nbreak \"quoted\" \\ \x01\x1f\x7f \xc3\xa9 \xff %s", kb_str(kb, "what"));
}
KBENCH_IMPL(odd, numbers, KB_AXIS_REAL("p", 0.1, 1e-300, 1e300, 3.0, -0.5, 1.0 / 3),
            KB_AXIS("n", 0, -1, 9007199254740993)) {
    KB_TIME(kb) { for (int kept = 0; kept < 20; kept++) kb_keep(kb); }
    kb_bytes(kb, 1e9 / 3);
}
int main(int argc, char** argv) {
    if (getenv("ODD_LOCALE")) setlocale(LC_ALL, getenv("ODD_LOCALE"));
    return kb_main(argc, argv);
}
