"use strict";
(function () {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  function size(value) {
    if (value === null || value === undefined) return "unknown";
    let step = 0;
    let amount = Math.abs(value);
    while (amount >= 1023.5 && step < units.length - 1) { amount /= 1024; step++; }
    const digits = step === 0 || amount >= 99.95 ? 0 : amount >= 9.995 ? 1 : 2;
    return (value < 0 ? "-" : "") + amount.toFixed(digits) + " " + units[step];
  }
  function tick(value) { return size(value).replace(/\.0+ /, " "); }
  function two(number) { return String(number).padStart(2, "0"); }

  // Hours of 24, and the date where it changes.
  function moments(plot, splits) {
    let day = "";
    const span = plot.scales.x.max - plot.scales.x.min;
    return splits.map((seconds) => {
      const at = new Date(seconds * 1000);
      const today = at.toISOString().slice(0, 10);
      const clock = two(at.getUTCHours()) + ":" + two(at.getUTCMinutes())
        + (span < 600 ? ":" + two(at.getUTCSeconds()) : "");
      if (today === day) return clock;
      day = today;
      return clock + "\n" + today;
    });
  }

  function colour(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  }

  // Steps of 1, 2 or 5 times a power of two's unit, so that the axis reads 512 MiB and not 488 MiB.
  function ticks(plot, axis, low, high, increment) {
    const found = [];
    const wanted = Math.max(3, Math.floor(plot.bbox.height / devicePixelRatio / 56));
    let step = 1;
    while ((high - low) / step > wanted) step *= 2;
    for (let at = Math.ceil(low / step) * step; at <= high; at += step) found.push(at);
    return found;
  }

  function draw(box) {
    const data = JSON.parse(box.querySelector("script").textContent);
    const old = box.querySelector(".uplot");
    if (old) old.remove();
    const tip = box.querySelector(".tip") || box.appendChild(document.createElement("div"));
    tip.className = "tip";
    const ink = colour("--soft");
    const line = colour("--line");
    const grid = { stroke: line, width: 1 };
    const events = data.events;
    const plot = new uPlot({
      width: box.clientWidth,
      height: Math.min(320, Math.max(220, box.clientWidth * 0.32)),
      tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC"),
      legend: { show: false },
      cursor: { drag: { x: false, y: false }, y: false },
      scales: { y: { range: (u, low, high) => [Math.min(0, low * 1.06), Math.max(high * 1.06, 1)] } },
      axes: [
        { stroke: ink, grid: { show: false }, ticks: grid, values: moments, space: 80 },
        { stroke: ink, grid: grid, ticks: { show: false }, size: 74, splits: ticks,
          values: (u, splits) => splits.map(tick) },
      ],
      series: [{}].concat(data.lines.map((one, number) => ({
        label: one.label,
        stroke: colour("--s-" + number % 7),
        width: number === 0 ? 2.25 : 1.5,
        fill: number === 0 && data.lines.length < 6 ? colour("--s-0") + "14" : undefined,
        points: { show: data.times.length < 2 },
      }))),
      hooks: {
        draw: [(u) => {
          const at = u.ctx;
          at.save();
          at.strokeStyle = ink;
          at.setLineDash([3, 4]);
          at.lineWidth = devicePixelRatio;
          for (const event of events) {
            const x = Math.round(u.valToPos(event.time, "x", true));
            at.beginPath();
            at.moveTo(x, u.bbox.top);
            at.lineTo(x, u.bbox.top + u.bbox.height);
            at.stroke();
          }
          at.restore();
        }],
        setCursor: [(u) => {
          const place = u.cursor.idx;
          if (place === null || place === undefined || u.cursor.left < 0) { tip.style.display = "none"; return; }
          tip.replaceChildren();
          const add = (text, strong) => {
            const row = document.createElement("div");
            row.textContent = text;
            if (strong) row.style.fontWeight = "600";
            tip.appendChild(row);
          };
          add(new Date(data.times[place] * 1000).toISOString().slice(0, 19).replace("T", " ") + " UTC", true);
          for (const one of data.lines) add(one.label + ": " + size(one.values[place]));
          const span = data.times[data.times.length - 1] - data.times[0];
          for (const event of events)
            if (Math.abs(event.time - data.times[place]) < span / 100) add(event.label);
          tip.style.display = "block";
          const over = u.over.getBoundingClientRect();
          const own = box.getBoundingClientRect();
          const left = over.left - own.left + u.cursor.left;
          tip.style.left = Math.min(left + 14, box.clientWidth - tip.offsetWidth) + "px";
          tip.style.top = "12px";
        }],
      },
    }, [data.times].concat(data.lines.map((one) => one.values)), box);
    plot.root.setAttribute("aria-hidden", "true");
  }

  const charts = Array.from(document.querySelectorAll(".chart"));
  const drawAll = () => charts.forEach(draw);
  drawAll();
  let waiting = 0;
  addEventListener("resize", () => { clearTimeout(waiting); waiting = setTimeout(drawAll, 150); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
  // Paper is white, and nobody can open what is folded on it.
  const folded = [];
  addEventListener("beforeprint", () => {
    document.documentElement.dataset.print = "";
    for (const one of document.querySelectorAll("details:not([open])")) { folded.push(one); one.open = true; }
    drawAll();
  });
  addEventListener("afterprint", () => {
    delete document.documentElement.dataset.print;
    while (folded.length) folded.pop().open = false;
    drawAll();
  });

  for (const button of document.querySelectorAll("button[data-copy]")) {
    button.addEventListener("click", () => {
      const text = button.parentElement.querySelector("pre").textContent;
      const done = () => {
        button.textContent = "copied";
        setTimeout(() => { button.textContent = "copy"; }, 1500);
      };
      const byHand = () => {
        const range = document.createRange();
        range.selectNodeContents(button.parentElement.querySelector("pre"));
        const selection = getSelection();
        selection.removeAllRanges();
        selection.addRange(range);
        if (document.execCommand("copy")) done();
      };
      if (navigator.clipboard) navigator.clipboard.writeText(text).then(done, byHand);
      else byHand();
    });
  }
})();
