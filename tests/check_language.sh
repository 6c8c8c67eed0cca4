#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# The language of everything that people read: words of our own for which the field has a term do not come back, and
# sentences.py finds the sentences.
. tests/lib.sh

if ! have "${PYTHON:=python3}"; then skip "no python3" && finish; fi
# words, and the term to write instead
cat > "$tmp/words" << 'EOF'
wings,swapped out and in:saved and restored copies of the buffers
rival,rivals:implementation, implementations
contest,contests:comparison
handed:passed
lap,laps:batch
toll,tolls:launch gate, or regression gate
lot,lots:subset, set of buffers
trait,traits:grouping key
remark,remarks,remarked:note
hang together:are autocorrelated
on their way:in flight
lies oddly,lie oddly:is not aligned to 16 bytes
deals out:schedules
mend,mends,mended:fix
EOF
run "$PYTHON" tests/sentences.py --words "$(cut -d : -f 1 "$tmp/words" | paste -sd , -)"
cp "$out" "$tmp/found"
while IFS=: read -r words term; do
    grep -iwE "$(echo "$words" | tr , '|')" "$tmp/found" > "$tmp/these"
    if [ ! -s "$tmp/these" ]; then pass; else fail "write '$term' in $(wc -l < "$tmp/these" | tr -d ' ') sentences, as $(head -n 1 "$tmp/these")"; fi
done < "$tmp/words"

# what it finds
cat > "$tmp/text.c" << 'EOF'
// Each rival of this comment is found, also
// when the sentence goes on.
int x; // a short one
/* The second sentence stands here. And the third one is in this block. */
const char* text = "this message is read by people, too";
char other[] = "%d\n";
EOF
run "$PYTHON" tests/sentences.py --count 100 "$tmp/text.c"
check_same "sentences of a C file" "$(sed 's/^[^:]*:[0-9]*.//' "$out" | sort)" "$(
    printf '%s\n' "And the third one is in this block." "Each rival of this comment is found, also when the sentence goes on." \
        "The second sentence stands here." "this message is read by people, too" | sort
)"
run "$PYTHON" tests/sentences.py --words rival "$tmp/text.c"
check_rc "a word is found" 1
check_same "a word is found" "$(cat "$out")" "$tmp/text.c:1	Each rival of this comment is found, also when the sentence goes on."
run "$PYTHON" tests/sentences.py --words contest "$tmp/text.c"
check_rc "a word that is not there" 0
printf '#!/bin/sh\n# A comment of a script is read.\nx="and a text that is not"\n' > "$tmp/text.sh"
printf '"""What the module does for its user."""\nx = 1  # bits of it are explained here\n' > "$tmp/text.py"
printf '# Title\n\nA paragraph that goes on\nover two lines.\n\n    code that is not read at all\n' > "$tmp/text.md"
run "$PYTHON" tests/sentences.py "$tmp/text.sh" "$tmp/text.py" "$tmp/text.md"
check_same "sentences of other files" "$(sed 's/^[^:]*:[0-9]*.//' "$out" | sort)" "$(
    printf '%s\n' "A comment of a script is read." "A paragraph that goes on over two lines." "What the module does for its user." "bits of it are explained here" | sort
)"
finish
