// SPDX-License-Identifier: MIT OR Unlicense
// Appended to a copy of a page in a frame of a certain width. Reports each visible error to the frame's parent,
// one per line.
(function () {
  'use strict';
  var wrong = [], all = function (s, e) { return [].slice.call((e || document).querySelectorAll(s)); };
  window.addEventListener('error', function (e) { wrong.push('script: ' + e.message); });
  document.addEventListener('securitypolicyviolation', function (e) { wrong.push('fetches ' + e.blockedURI); });
  function seen(e) { var r = e.getBoundingClientRect(); return r.width > 0 && r.height > 0; }
  function name(e) { return '"' + e.textContent.slice(0, 40) + '"'; }

  function label(svg) { return svg.getAttribute('aria-label').slice(0, 50); }

  // No text overlaps another, leaves its picture, or is too small to be read.
  function pictures() {
    all('svg[role=img]').filter(seen).forEach(function (svg) {
      var box = svg.getBoundingClientRect(), scale = box.width / svg.viewBox.baseVal.width;
      var texts = all('text', svg).map(function (t) { return [t, t.getBoundingClientRect()]; });
      texts.forEach(function (a, i) {
        var r = a[1], size = parseFloat(getComputedStyle(a[0]).fontSize) * scale;
        if (size < 10.9) wrong.push('small text ' + name(a[0]) + ', ' + size.toFixed(1) + ' px, in ' + label(svg));
        if (r.left < box.left - 2 || r.right > box.right + 2 || r.top < box.top - 2 || r.bottom > box.bottom + 2)
          wrong.push('text ' + name(a[0]) + ' leaves ' + label(svg));
        texts.slice(i + 1).forEach(function (b) {
          var s = b[1], x = Math.min(r.right, s.right) - Math.max(r.left, s.left);
          if (a[0].hasAttribute('transform') || b[0].hasAttribute('transform')) return; // slanted: the box is larger
          if (x > 2 && Math.min(r.bottom, s.bottom) - Math.max(r.top, s.top) > 4)
            wrong.push('text upon text: ' + name(a[0]) + ' and ' + name(b[0]) + ' in ' + label(svg));
        });
      });
    });
  }

  function contrast(e) {
    var parts = function (c) { return c.match(/[\d.]+/g).slice(0, 3).map(function (v) { v /= 255; return v <= 0.03928 ? v / 12.92 : Math.pow((v + 0.055) / 1.055, 2.4); }); };
    var light = function (c) { var p = parts(c); return 0.2126 * p[0] + 0.7152 * p[1] + 0.0722 * p[2]; };
    var a = light(getComputedStyle(e).color), b = light(getComputedStyle(document.body).backgroundColor);
    return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  }
  function colours(theme) {
    document.documentElement.dataset.theme = theme;
    ['h1', '.dim', 'nav a', '.chip', 'td', 'thead th', 'summary'].forEach(function (s) {
      var e = document.querySelector(s);
      if (e && contrast(e) < 4.5) wrong.push(theme + ': ' + s + ' has a contrast of ' + contrast(e).toFixed(2));
    });
    var backs = { light: 'rgb(255, 255, 255)', dark: 'rgb(20, 23, 28)' };
    if (getComputedStyle(document.body).backgroundColor !== backs[theme]) wrong.push(theme + ' does not show');
  }

  function table() {
    var head = all('#cases th[aria-sort]'), time = head.filter(function (h) { return /^time/.test(h.textContent); })[0];
    var rows = document.querySelector('#cases tbody').rows, n = rows.length;
    var value = function (r) { return r.cells[time.cellIndex].getAttribute('data-v'); };
    ['ascending', 'descending'].forEach(function (order) {
      time.click();
      var v = [].map.call(rows, value), numbers = v.filter(Boolean).map(Number), sorted = numbers.slice().sort(function (a, b) { return a - b; });
      if (order === 'descending') sorted.reverse();
      if (time.getAttribute('aria-sort') !== order || numbers.join() !== sorted.join()) wrong.push('sorting ' + order + ': ' + v.join());
      if (v.slice(0, numbers.length).indexOf('') >= 0) wrong.push('cases without a time do not stand last');
    });
    head[0].click();
    if (rows.length !== n) wrong.push('sorting loses rows');
    var find = document.getElementById('find');
    var words = rows[0].cells[1].textContent.trim() + ' ' + rows[0].cells[0].textContent.trim().split(' ').pop();
    find.value = words.toUpperCase();
    find.dispatchEvent(new Event('input'));
    var left = [].filter.call(rows, function (r) { return !r.hidden; });
    var fits = function (r) { return words.split(' ').every(function (w) { return r.textContent.indexOf(w) >= 0; }); };
    if (left.length !== [].filter.call(rows, fits).length || !left.every(fits)) wrong.push('the filter leaves ' + left.length + ' of ' + n);
    find.value = '';
    find.dispatchEvent(new Event('input'));
    var box = document.querySelector('.tools input[data-g]');
    if (!box) return;
    box.click();
    if (seen(document.querySelector('#cases th.' + box.dataset.g))) wrong.push('hidden columns show');
    box.click();
  }
  function metrics() {
    all('.switch > label').forEach(function (label) {
      label.click();
      var panes = all('.pane').filter(seen);
      if (panes.length !== 1) wrong.push(panes.length + ' metrics show at once');
      pictures();
    });
  }
  window.addEventListener('load', function () {
    setTimeout(function () {
      var root = document.documentElement;
      if (root.scrollWidth > innerWidth) wrong.push('the page is ' + root.scrollWidth + ' px wide in ' + innerWidth);
      all('details').forEach(function (d) { d.open = true; });
      pictures();
      metrics();
      colours('dark');
      colours('light');
      table();
      if (JSON.parse(document.getElementById('kbench-data').textContent).records.length !== document.querySelector('#cases tbody').rows.length)
        wrong.push('records and rows differ');
      var once = wrong.filter(function (w, i) { return wrong.indexOf(w) === i; });
      parent.postMessage(innerWidth + ' px: ' + (once.length ? once.slice(0, 12).join('; ') : 'all is well'), '*');
    }, 100);
  });
})();
