#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# Checks the language of everything that people read: a word with a meaning only in this project must not replace a
# standard term. Also checks that sentences.py finds the sentences in source files.
. tests/lib.sh

if ! have "${PYTHON:=python3}"; then skip "no python3" && finish; fi
# words with a meaning only in this project, and after the colon the standard term to write instead
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

# finds WHAT FILE: sentences.py must print exactly the lines of stdin, apart from FILE:LINE
finds() {
    run "$PYTHON" tests/sentences.py "$2"
    check_same "$1" "$(cut -f 2- "$out" | sort)" "$(sort)"
}
cat > "$tmp/text.c" << 'EOF'
// Each rival of this comment is found, also
// when the sentence goes on.
//
// The next paragraph is another piece
// name     a row of a table is none
int x; // a short one
int y; // the comment of a field has its line of code
/* The second sentence stands here. And the third one is in this block. */
const char* text = "This message is read "
                   "by people, too.";
char other[] = "%d\n", name[] = "cuModuleGetFunctionOfThis";
EOF
finds "sentences of a C file" "$tmp/text.c" << 'EOF'
Each rival of this comment is found, also when the sentence goes on.
The next paragraph is another piece
the comment of a field has its line of code    [int y; // the comment of a field has its line of code]
The second sentence stands here.
And the third one is in this block.
This message is read by people, too.
EOF
run "$PYTHON" tests/sentences.py --words rival "$tmp/text.c"
check_rc "a word is found" 1
check_same "a word is found" "$(cat "$out")" "$tmp/text.c:1	Each rival of this comment is found, also when the sentence goes on."
run "$PYTHON" tests/sentences.py --words contest,int "$tmp/text.c"
check_rc "a word that is not there" 0
printf '#!/bin/sh\n# SPDX-License-Identifier: MIT\n# A comment of a script is read.\nx="and a text that is not"\n' > "$tmp/text.sh"
finds "sentences of a script" "$tmp/text.sh" << 'EOF'
A comment of a script is read.
EOF
printf '"""What the module does for its user."""\n# A comment of two lines\n# is one sentence.\nx = f("This message has "\n      "two parts here.")\n' > "$tmp/text.py"
finds "sentences of a Python file" "$tmp/text.py" << 'EOF'
What the module does for its user.
A comment of two lines is one sentence.
This message has two parts here.
EOF
printf '# A title is not drawn\n\nA paragraph that goes on\nover two lines.\n\n- An item of a list.\n- The next item of it.\n\n    code that is not read at all\n' > "$tmp/text.md"
finds "sentences of a document" "$tmp/text.md" << 'EOF'
A paragraph that goes on over two lines.
- An item of a list.
- The next item of it.
EOF
# placed WHAT LINE FILE: sentences.py --context must print the sentence of LINE in FILE as stdin shows it
placed() {
    run "$PYTHON" tests/sentences.py --context --count 100 "$3"
    check_same "$1" "$(sed -n "\\,^$3:$2\$,,/^\$/p" "$out")" "$3:$2
$(cat)"
}
printf '// The first sentence of two. This is the second one.\n//\n// A later paragraph of it.\nint a;\n\n/* One more comment here. */\nint b;\nint c; // the last of the three\nint d;\n' > "$tmp/place.c"
placed "a sentence in its paragraph" 3 "$tmp/place.c" << 'EOF'
    [[A later paragraph of it.]]
    | int a;
    | int b;
    | int c; // the last of the three
EOF
check_out "the sentence is marked in its paragraph" '^    The first sentence of two\. \[\[This is the second one\.\]\]$'
placed "the comment of a field in its place" 8 "$tmp/place.c" << 'EOF'
    [[the last of the three]]
    | int c; // the last of the three
    | int d;
EOF
printf 'def f(x):\n    """Returns what it is given.\n\n    This text explains it further."""\n    # a comment is no code\n    return x\n' > "$tmp/place.py"
placed "a docstring has its function" 2 "$tmp/place.py" << 'EOF'
    [[Returns what it is given.]]
    | def f(x):
    |     return x
EOF
placed "a later paragraph of a docstring" 4 "$tmp/place.py" << 'EOF'
    [[This text explains it further.]]
    |     return x
EOF
placed "a document has no code" 3 "$tmp/text.md" << 'EOF'
    [[A paragraph that goes on over two lines.]]
EOF
finish
