# SPDX-License-Identifier: MIT OR Unlicense
"""Runs a program on a pseudoterminal and prints its final screen:

    python3 tests/cli/terminal.py COLUMNS VARIABLE=VALUE... -- PROGRAM...

The exit code is 2, with the reason on stderr, if the program sends control sequences that neither set a colour nor
update the current line, if a line is wider than the window, or if a progress line is left at the end. The texts of
the progress line go to stderr, one per line."""
import fcntl, os, pty, re, struct, sys, termios, unicodedata



def output(columns, variables, command):
    child, master = pty.fork()
    if child == 0:
        for v in variables:
            os.environ[v.split("=", 1)[0]] = v.split("=", 1)[1]
        fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
        os.execvp(command[0], command)
    out = b""
    while True:
        try:
            part = os.read(master, 65536)
        except OSError:
            part = b""
        if not part:
            break
        out += part
    os.waitpid(child, 0)
    return out.decode("utf-8", "replace")


def wide(text):
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 0 if unicodedata.combining(c) else 1 for c in text)


def main(arguments):
    cut = arguments.index("--")
    columns = int(arguments[0])
    text = output(columns, arguments[1:cut], arguments[cut + 1 :])
    for unknown in re.findall(r"\x1b(?!\[[0-9;]*[mK]).{0,8}|[\x00-\x09\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f-\x9f]", text):
        refuse("it sent %r" % unknown)
    screen = []
    for line in re.sub(r"\x1b\[[0-9;]*m", "", text).replace("\r\n", "\n").split("\n"):
        shown = ""
        for state in line.split("\r"):
            plain = state.replace("\x1b[K", "")
            if wide(plain) > columns:
                refuse("a line of %d columns is wider than the window: %s" % (wide(plain), plain))
            if re.match(r"\[(\d+/\d+|round \d+)\]", plain):
                print(plain, file=sys.stderr)
            shown = plain if plain or "\x1b[K" in state else shown
        screen.append(shown)
    if any(re.match(r"\[(\d+/\d+|round \d+)\]", line) for line in screen):
        refuse("a progress line was left behind")
    print("\n".join(screen))


def refuse(why):
    print("terminal.py:", why, file=sys.stderr)
    sys.exit(2)


if __name__ == "__main__":
    main(sys.argv[1:])
