#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# Tests a page of --html in a browser: no console messages, no network requests, no overlapping text; sorting and
# filtering work. The page is shown in dark and light mode, 1200 and 360 pixels wide, and in print. Skipped without
# Chromium.
. tests/lib.sh
. tests/cli/kit.lib

browser=
for b in chromium chromium-browser google-chrome chrome; do [ -z "$browser" ] && have $b && browser=$b; done
[ -n "$browser" ] || { skip "no Chromium: pages are not tested in a browser"; finish; }
program prog tests/cli/html_pages.c
here=$(cd "$tmp" && pwd)
run "$tmp/prog" --iters 40 --warmup 1 --no-progress --html "$tmp/page.html"
check_rc "a page is made" 1

# show NAME OPTIONS... URL: writes $tmp/NAME.out and .err
show() {
    name=$1
    shift
    timeout 60 "$browser" --headless --no-sandbox --hide-scrollbars --disable-gpu --disable-dev-shm-usage --no-first-run --disable-extensions \
        --user-data-dir="$here/profile" --enable-logging=stderr --v=0 "$@" > "$tmp/$name.out" 2> "$tmp/$name.err" < /dev/null
}
show probe --dump-dom "data:text/html,<p>up" || { skip "$browser does not start here: $(head -n 1 "$tmp/probe.err")"; finish; }

{ sed 's,</body>.*,,; /^<\/html>/d' "$tmp/page.html" && echo '<script>' && cat tests/cli/html_in_browser.js && echo '</script></body></html>'; } > "$tmp/checked.html"
cat > "$tmp/frames.html" << end
<!DOCTYPE html><body><pre id="said"></pre><script>
addEventListener('message', function (e) { document.getElementById('said').textContent += e.data + '\n'; });
</script><iframe src="checked.html" width="1200" height="900"></iframe><iframe src="checked.html" width="360" height="700"></iframe>
end
show frames --window-size=1300,1700 --virtual-time-budget=10000 --dump-dom "file://$here/frames.html"
for width in 1200 360; do
    check_same "at $width px" "$(grep -o "$width px: .*" "$tmp/frames.out" | sed 's/<.*//')" "$width px: all is well"
done
show page --window-size=1200,900 --screenshot="$here/page.png" "file://$here/page.html"
check_same "nothing on the console" "$(cat "$tmp/frames.err" "$tmp/page.err" | grep CONSOLE | head -n 3)" ""
show paper --no-pdf-header-footer --print-to-pdf="$here/page.pdf" "file://$here/page.html"
if [ -s "$tmp/page.png" ] && [ "$(head -c 4 "$tmp/page.pdf")" = %PDF ]; then pass; else fail "the screenshot or the print is empty"; fi
finish
