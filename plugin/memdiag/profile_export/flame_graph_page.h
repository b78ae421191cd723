/* The constant parts of a flame graph: style and script. Nothing of a profile
is ever inserted into them. */

#ifndef MEMDIAG_FLAME_GRAPH_PAGE_H
#define MEMDIAG_FLAME_GRAPH_PAGE_H

namespace memdiag::profile {

/** The style sets lightness and saturation for the colours of all pools, once
for each colour scheme. */
inline constexpr char flame_graph_style[] = R"(
svg { --ink: #1d1d1f; --soft: #62666d; --paper: #fff; --s: 62%; --l: 76%;
  --other: #c9ccd1; --mixed: #dfe1e5; --match: #c400c4;
  background: var(--paper); font: 11px ui-monospace, Menlo, Consolas,
  "DejaVu Sans Mono", monospace; }
text { fill: var(--ink); }
.title { font: 600 16px system-ui, sans-serif; }
.soft { font: 12px system-ui, sans-serif; fill: var(--soft); }
.key { font: 12px system-ui, sans-serif; }
.f { cursor: pointer; }
.f rect { stroke: var(--paper); stroke-width: 0.4; }
.f:hover rect { stroke: var(--ink); stroke-width: 2; }
.mixed { fill: var(--mixed); }
.other { fill: var(--other); }
.above { opacity: 0.55; }
.match rect { fill: var(--match); }
.match text { fill: #fff; }
foreignObject input { box-sizing: border-box; width: 100%; padding: 2px 6px;
  font: 12px system-ui, sans-serif; color: var(--ink);
  background: var(--paper); border: 1px solid var(--soft); border-radius: 4px; }
@media (prefers-color-scheme: dark) {
  svg { --ink: #ececee; --soft: #a0a4ab; --paper: #16171a; --s: 42%; --l: 34%;
    --other: #4a4d53; --mixed: #33363b; --match: #d944d9; }
}
)";

inline constexpr char flame_graph_script[] = R"((() => {
  'use strict';
  const svg = document.currentScript.parentNode;
  const all = [...svg.querySelectorAll('.f')].map((box) => {
    const text = box.querySelector('title').textContent;
    return {
      box,
      x: parseFloat(box.getAttribute('x')),
      width: parseFloat(box.getAttribute('width')),
      y: Number(box.getAttribute('y')),
      name: text.split('\n')[0],
      about: text.replaceAll('\n', ' · '),
      bytes: Number(box.dataset.b),
    };
  });
  if (!all.length) return;
  const root = all[0];
  const status = svg.querySelector('.status');
  const found = svg.querySelector('.found');
  const hint = status.textContent;
  // Half of the last digit of a position.
  const tiny = 0.0006;
  const contains = (outer, inner) => inner.x >= outer.x - tiny &&
      inner.x + inner.width <= outer.x + outer.width + tiny;
  let shown = root;

  function label(frame, width, pixels) {
    const letters = Math.floor((width / 100 * pixels - 6) / 6.65);
    let text = frame.box.querySelector('text');
    if (!text) {
      text = document.createElementNS(svg.namespaceURI, 'text');
      text.setAttribute('x', 3);
      text.setAttribute('y', 12);
      frame.box.append(text);
    }
    text.textContent = letters < 3 ? '' : letters >= frame.name.length ?
        frame.name : frame.name.slice(0, letters - 1) + '…';
  }

  function draw() {
    const pixels = svg.getBoundingClientRect().width;
    for (const frame of all) {
      const above = frame.y < shown.y && contains(frame, shown);
      const visible = above || frame.y >= shown.y && contains(shown, frame);
      frame.box.style.display = visible ? '' : 'none';
      if (!visible) continue;
      frame.box.classList.toggle('above', above);
      const x = above ? 0 : (frame.x - shown.x) / shown.width * 100;
      const width = above ? 100 : frame.width / shown.width * 100;
      frame.box.setAttribute('x', x + '%');
      frame.box.setAttribute('width', width + '%');
      label(frame, width, pixels);
    }
    if (field) field.setAttribute('x', Math.max(pixels - 290, 300));
  }

  function size(bytes) {
    const units = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB'];
    let unit = 0;
    let amount = Math.abs(bytes);
    for (; amount >= 1024 && unit < 4; ++unit) amount /= 1024;
    const sign = bytes < 0 ? '−' : '';
    return sign + amount.toFixed(unit && amount < 100 ? 1 : 0) + ' ' +
        units[unit];
  }

  function search(expression) {
    let matches = () => false;
    found.textContent = '';
    try {
      if (expression) {
        const wanted = new RegExp(expression, 'i');
        matches = (frame) => wanted.test(frame.name);
      }
    } catch {
      found.textContent = 'This is no regular expression.';
    }
    let bytes = 0;
    let count = 0;
    let last;
    for (const frame of all) {
      const match = matches(frame);
      frame.box.classList.toggle('match', match);
      if (!match) continue;
      ++count;
      // A match counts with all that lies within it.
      if (last && frame.y > last.y && contains(last, frame)) continue;
      last = frame;
      bytes += frame.bytes;
    }
    if (expression && !found.textContent)
      found.textContent = count + (count == 1 ? ' frame, ' : ' frames, ') +
          size(bytes) + (root.bytes > 0 && !svg.dataset.change ? ', ' +
          (bytes / root.bytes * 100).toFixed(1) + '%' : '');
  }

  for (const frame of all) {
    frame.box.addEventListener('click', () => { shown = frame; draw(); });
    frame.box.addEventListener('mouseenter',
        () => { status.textContent = frame.about; });
    frame.box.addEventListener('mouseleave',
        () => { status.textContent = hint; });
  }

  const field = document.createElementNS(svg.namespaceURI, 'foreignObject');
  const input = document.createElementNS('http://www.w3.org/1999/xhtml',
      'input');
  field.setAttribute('y', 8);
  field.setAttribute('width', 280);
  field.setAttribute('height', 26);
  input.setAttribute('type', 'search');
  input.setAttribute('placeholder', 'Search: regular expression');
  input.addEventListener('input', () => search(input.value));
  field.append(input);
  svg.append(field);

  document.addEventListener('keydown', (event) => {
    if (event.key == 'Escape') {
      shown = root;
      draw();
    } else if (event.key == '/' && document.activeElement != input) {
      event.preventDefault();
      input.focus();
    }
  });
  window.addEventListener('resize', draw);

  svg.setAttribute('width', '100%');
  draw();
  const asked = /^#s=(.*)/.exec(window.location.hash);
  if (asked) {
    try {
      input.value = decodeURIComponent(asked[1]);
    } catch {
      input.value = asked[1];
    }
    search(input.value);
  }
})();
)";

}  // namespace memdiag::profile

#endif  // MEMDIAG_FLAME_GRAPH_PAGE_H
