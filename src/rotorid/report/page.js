"use strict";
(() => {
  document.documentElement.classList.toggle("embedded", self !== top);
  const specs = JSON.parse(document.getElementById("figures").textContent);
  const drawn = new Set();
  const root = getComputedStyle(document.documentElement);
  const touch = matchMedia("(pointer: coarse)").matches;
  const options = { responsive: true, displayModeBar: false, doubleClick: "reset" };

  // "@ekf:0.2" is the page's colour --ekf at a fifth of its strength
  function colour(token) {
    const [name, strength] = token.slice(1).split(":");
    const value = root.getPropertyValue("--" + name).trim();
    if (!strength) return value;
    const [r, g, b] = [1, 3, 5].map((i) => parseInt(value.slice(i, i + 2), 16));
    return `rgba(${r},${g},${b},${strength})`;
  }

  function dressed(thing) {
    if (typeof thing === "string") {
      return thing[0] === "@" ? colour(thing) : thing === "inherit" ? getComputedStyle(document.body).fontFamily : thing;
    }
    if (Array.isArray(thing)) return thing.map(dressed);
    if (thing && typeof thing === "object") {
      return Object.fromEntries(Object.entries(thing).map(([key, value]) => [key, dressed(value)]));
    }
    return thing;
  }

  function draw(box) {
    const spec = specs[box.id];
    const layout = dressed(spec.layout);
    layout.dragmode = layout.scene ? "orbit" : touch ? false : "zoom";
    if (layout.scene && innerWidth < 640) {
      for (const k of ["x", "y", "z"]) layout.scene.camera.eye[k] *= 1.4;
    }
    if (innerWidth < 900) layout.annotations = []; // they would cover each other
    const names = layout.xaxis && layout.xaxis.type === "category" ? spec.data[0].x.length : 0;
    if (names * 12 > box.clientWidth - 150) layout.xaxis.showticklabels = false; // they would overlap
    if (layout.yaxis && spec.timed) layout.yaxis.fixedrange = true;
    Plotly.react(box, dressed(spec.data), layout, options);
    if (!drawn.has(box)) {
      drawn.add(box);
      if (spec.timed) box.on("plotly_relayout", (change) => follow(box, change));
    }
  }

  // Zooming in time zooms every chart of time
  let following = false;
  function follow(source, change) {
    const from = change["xaxis.range[0]"], to = change["xaxis.range[1]"];
    const reset = change["xaxis.autorange"] || change["xaxis.range"];
    if (following || (from === undefined && !reset)) return;
    following = true;
    const moves = [];
    for (const box of Object.keys(specs).map((id) => document.getElementById(id))) {
      const spec = specs[box.id];
      if (!spec.timed) continue;
      spec.whole ??= spec.layout.xaxis.range;
      spec.layout.xaxis.range = from === undefined ? spec.whole : [from, to];
      if (box !== source && drawn.has(box)) moves.push(Plotly.relayout(box, { "xaxis.range": spec.layout.xaxis.range }));
    }
    Promise.all(moves).finally(() => (following = false));
  }

  async function loadPlotly() {
    const packed = Uint8Array.from(atob(document.getElementById("plotly").textContent), (c) => c.charCodeAt(0));
    const unpacked = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    const script = document.createElement("script");
    script.textContent = await new Response(unpacked).text();
    document.head.append(script);
  }

  const boxes = [...document.querySelectorAll(".chart")];
  async function start() {
    if (!boxes.length) return;
    if (!window.DecompressionStream) {
      for (const box of boxes) box.textContent = "The charts need Chrome 80, Firefox 113, Safari 16.4, or a newer browser.";
      return;
    }
    await loadPlotly();
    const watch = new IntersectionObserver(
      (entries) => {
        for (const entry of entries) {
          if (!entry.isIntersecting) continue;
          watch.unobserve(entry.target);
          draw(entry.target);
        }
      },
      { rootMargin: "600px" },
    );
    boxes.forEach((box) => watch.observe(box));
    addEventListener("beforeprint", () => boxes.filter((box) => !drawn.has(box)).forEach(draw));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => drawn.forEach(draw));
  }
  start();
})();
