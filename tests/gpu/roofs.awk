# SPDX-License-Identifier: MIT OR Unlicense
# Reads the output of --env: prints, one per line, those peaks of the device and of a core whose measurement took
# longer than 0.3 s. Then it prints the number of all peaks. awk -f tests/gpu/roofs.awk FILE
match($0, /measured in [0-9.]+ [a-z]+\)/) {
    split(substr($0, RSTART + 12, RLENGTH - 13), took, " ")
    seconds = took[1] * (took[2] == "s" ? 1 : took[2] == "ms" ? 1e-3 : took[2] == "us" ? 1e-6 : took[2] == "ns" ? 1e-9 : 1e9)
    name = $1 ($0 ~ /, one core/ ? ", one core" : "")
    n++
    if (seconds > 0.3) print name ": " took[1] " " took[2]
}
END { print n + 0 " roofs" }
