// Panels of curves, one for each scalar or vector quantity, and the list of events

import { Chart } from "./chart.js";
import { clock, label, plusMinus, unitText } from "./text.js";

const DIRECTIONS = { world: ["east", "north", "up"], body: ["forward", "left", "up"] };
const FRAMES = { force: "world", wind: "world", wind_force: "world", velocity: "world", torque: "body", body_rate: "body" };
const COLOURS = ["axis-x", "axis-y", "axis-z"];
const AXES = ["x", "y", "z"];
const MAX_EVENTS = 200;

function createElement(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

// Groups the names by quantity: [["mass"], ["force_x", "force_y", "force_z"], ...], mass first, then force and torque
function group(names) {
  const groups = new Map();
  for (const name of names) {
    const stem = /_[xyz]$/.test(name) ? name.slice(0, -2) : name;
    groups.set(stem, [...(groups.get(stem) ?? []), name]);
  }
  const place = (stem) => ["mass", "force", "torque"].indexOf(stem) >>> 0;
  return [...groups].sort(([a], [b]) => place(a) - place(b));
}

class Panel {
  constructor(stem, names, store, main) {
    Object.assign(this, { stem, names, store, main });
    this.frame = names.length > 1 ? FRAMES[stem] : undefined;
    const id = `panel-${stem}`, single = names.length === 1;
    this.unit = unitText(store.columns.get(names[0]).unit);
    const frame = this.frame ? `${this.frame} frame` : "";
    this.when = createElement("span", { className: "aside", textContent: [single ? "" : this.unit, frame].filter(Boolean).join(", ") });
    this.aside = this.when.textContent;
    this.values = names.map(() => createElement("span", { className: "value" }));
    const keys = names.map((name, k) => {
      const way = DIRECTIONS[this.frame]?.[AXES.indexOf(name.at(-1))];
      const key = createElement("dt", { textContent: way ?? name.slice(stem.length + 1) });
      key.dataset.colour = COLOURS[AXES.indexOf(name.at(-1))];
      return createElement("div", {}, key, createElement("dd", {}, this.values[k]));
    });
    const heading = createElement("h2", { id }, label(stem), single ? createElement("span", {}, this.values[0]) : this.when);
    this.canvas = createElement("canvas", { tabIndex: 0 });
    this.canvas.setAttribute("role", "img");
    this.element = createElement("article", { className: `panel chart${main ? " main" : ""}` }, heading);
    if (single) this.element.append(this.when);
    else this.element.append(createElement("dl", { className: "readings" }, ...keys));
    this.element.append(this.canvas);
    this.element.setAttribute("aria-labelledby", id);
    const curves = names.map((name) => ({ name, colour: single ? "main" : COLOURS[AXES.indexOf(name.at(-1))] }));
    this.chart = new Chart(this.canvas, curves, main);
  }

  write(cursor) {
    const readings = cursor === null || !this.chart.buckets ? this.names.map((name) => this.store.latest(name)) : this.chart.around(cursor);
    const single = this.names.length === 1;
    const texts = readings.map(({ value, std }) => plusMinus(value, std, !single));
    texts.forEach((text, k) => {
      const whole = single && Number.isFinite(readings[k].std) ? `${text} ${this.unit}` : text;
      if (this.values[k].textContent !== whole) this.values[k].textContent = whole;
    });
    const at = cursor === null ? this.aside : [this.aside, `at ${clock(cursor, 1)}`].filter(Boolean).join(", ");
    if (this.when.textContent !== at) this.when.textContent = at;
    const values = this.names.map((name, k) => `${single ? "" : `${label(name)} `}${texts[k]} ${this.unit}`).join(", ");
    const description = `${label(this.stem)} over time with its 95 % band, ${cursor === null ? "now" : `at ${clock(cursor, 1)}`} ${values}`;
    if (this.canvas.getAttribute("aria-label") !== description) this.canvas.setAttribute("aria-label", description);
  }
}

export class Panels {
  constructor(store) {
    Object.assign(this, { store, panels: [], span: 120, isHeld: false, done: 0, turn: 0, strokes: [], at: null, onCursor: () => {} });
  }

  get main() { return this.panels[0]?.names[0] ?? ""; }

  clear() {
    for (const panel of this.panels) panel.element.remove();
    this.panels = [];
    this.done = 0;
    this.at = null;
  }

  // Makes one panel for each group of quantities in the store
  arrange() {
    this.clear();
    group(this.store.columns.keys()).forEach(([stem, names], k) => {
      const panel = new Panel(stem, names, this.store, k === 0);
      const next = k === 0 ? "attitude-panel" : stem === "force" || stem === "torque" ? "event-panel" : "link-panel";
      document.getElementById(next).before(panel.element);
      this.panels.push(panel);
      this.point(panel);
    });
    this.resize();
    this.rebuild();
  }

  point(panel) {
    const move = (t) => {
      this.at = t;
      this.onCursor();
    };
    const { canvas, chart } = panel;
    canvas.addEventListener("pointermove", (event) => move(Math.max(this.start, Math.min(this.end, chart.timeAt(event.offsetX)))));
    canvas.addEventListener("pointerleave", () => move(null));
    canvas.addEventListener("blur", () => move(null));
    canvas.addEventListener("keydown", (event) => {
      const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (event.key === "Escape") move(null);
      if (!by) return;
      event.preventDefault();
      move(Math.max(this.start, Math.min(this.end, (this.at ?? this.end) + (by * this.seconds) / 100)));
    });
  }

  // Time span of the charts, s: as selected, or growing with the flight
  timeSpan() {
    if (this.span) return this.span;
    let seconds = 30;
    while (seconds < this.store.last - this.store.first) seconds *= 1.25;
    return seconds;
  }

  rebuild() {
    if (!this.store.size) return;
    this.seconds = this.timeSpan();
    if (!this.isHeld) this.end = this.store.last;
    for (const { chart } of this.panels) chart.rebuild(this.store, this.seconds, this.end);
    if (!this.isHeld) this.done = this.store.last;
  }

  // Adds the new rows of the store
  extend() {
    if (this.isHeld || !this.store.size) return;
    if (this.timeSpan() !== this.seconds) {
      this.rebuild();
      return;
    }
    const from = this.store.at(this.done + 1e-9);
    for (const { chart } of this.panels) chart.extend(this.store, from, this.store.size);
    this.end = this.done = this.store.last;
  }

  hold(isHeld) {
    this.isHeld = isHeld;
    if (!isHeld) this.rebuild();
  }

  resize() {
    let changed = false;
    for (const { chart } of this.panels) if (chart.resize()) changed = true;
    if (changed) this.rebuild();
    return changed;
  }

  get start() { return this.span ? Math.max(this.store.first, this.end - this.seconds) : this.store.first; }

  stale() {
    for (const { chart } of this.panels) chart.stale = true;
  }

  // Draws charts that are visible and outdated: the first in each frame, the others in every second frame
  draw(theme) {
    if (!this.store.size) return;
    this.turn = 1 - this.turn;
    this.panels.forEach(({ chart }, k) => {
      if (!chart.isVisible || !chart.stale || (k && k % 2 !== this.turn)) return;
      chart.stale = false;
      chart.draw(this.start, this.end, theme, this.strokes, this.at);
    });
  }

  write() {
    for (const panel of this.panels) panel.write(this.at);
  }
}

// List of events, newest first
export class Events {
  constructor(list) {
    this.list = list;
  }

  clear() {
    this.list.replaceChildren();
    this.count();
  }

  add(events) {
    if (!events.length) return;
    for (const [t, source, severity, text] of events) {
      const parts = [createElement("time", { textContent: t === null ? "" : clock(t, 0, true) }), createElement("b", { textContent: label(source) }), createElement("span", { textContent: text })];
      this.list.prepend(createElement("li", { className: severity }, ...parts));
    }
    while (this.list.childElementCount > MAX_EVENTS) this.list.lastElementChild.remove();
    this.count();
  }

  count() {
    const n = this.list.childElementCount;
    document.getElementById("event-count").textContent = n ? String(n) : "";
    document.getElementById("no-events").hidden = n > 0;
  }
}
