// The panels of curves, one for each quantity or triple of quantities that the session tells of, and the events

import { Chart } from "./chart.js";
import { clock, label, plusMinus, unitText } from "./words.js";

const WAYS = { world: ["east", "north", "up"], body: ["forward", "left", "up"] };
const FRAMES = { force: "world", wind: "world", wind_force: "world", velocity: "world", torque: "body", body_rate: "body" };
const COLOURS = ["axis-x", "axis-y", "axis-z"];
const AXES = ["x", "y", "z"];
const KEPT_EVENTS = 200;

function made(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

// Names in groups: [["mass"], ["force_x", "force_y", "force_z"], ...], mass first, then force and torque
function grouped(names) {
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
    this.when = made("span", { className: "aside", textContent: [single ? "" : this.unit, frame].filter(Boolean).join(", ") });
    this.aside = this.when.textContent;
    this.values = names.map(() => made("span", { className: "value" }));
    const keys = names.map((name, k) => {
      const way = WAYS[this.frame]?.[AXES.indexOf(name.at(-1))];
      const key = made("dt", { textContent: way ?? name.slice(stem.length + 1) });
      key.dataset.colour = COLOURS[AXES.indexOf(name.at(-1))];
      return made("div", {}, key, made("dd", {}, this.values[k]));
    });
    const heading = made("h2", { id }, label(stem), single ? made("span", {}, this.values[0]) : this.when);
    this.canvas = made("canvas", { tabIndex: 0 });
    this.canvas.setAttribute("role", "img");
    this.element = made("article", { className: `panel chart${main ? " main" : ""}` }, heading);
    if (single) this.element.append(this.when);
    else this.element.append(made("dl", { className: "readings" }, ...keys));
    this.element.append(this.canvas);
    this.element.setAttribute("aria-labelledby", id);
    const curves = names.map((name) => ({ name, colour: single ? "main" : COLOURS[AXES.indexOf(name.at(-1))] }));
    this.chart = new Chart(this.canvas, curves, main);
  }

  write(pointed) {
    const shown = pointed === null || !this.chart.buckets ? this.names.map((name) => this.store.latest(name)) : this.chart.around(pointed);
    const single = this.names.length === 1;
    const texts = shown.map(({ value, std }) => plusMinus(value, std, !single));
    texts.forEach((text, k) => {
      const whole = single && Number.isFinite(shown[k].std) ? `${text} ${this.unit}` : text;
      if (this.values[k].textContent !== whole) this.values[k].textContent = whole;
    });
    const at = pointed === null ? this.aside : [this.aside, `at ${clock(pointed, 1)}`].filter(Boolean).join(", ");
    if (this.when.textContent !== at) this.when.textContent = at;
    const words = this.names.map((name, k) => `${single ? "" : `${label(name)} `}${texts[k]} ${this.unit}`).join(", ");
    const said = `${label(this.stem)} over time with its 95 % band, ${pointed === null ? "now" : `at ${clock(pointed, 1)}`} ${words}`;
    if (this.canvas.getAttribute("aria-label") !== said) this.canvas.setAttribute("aria-label", said);
  }
}

export class Panels {
  constructor(store) {
    Object.assign(this, { store, panels: [], span: 120, held: false, done: 0, turn: 0, strokes: [], at: null, pointed: () => {} });
  }

  get main() { return this.panels[0]?.names[0] ?? ""; }

  clear() {
    for (const panel of this.panels) panel.element.remove();
    this.panels = [];
    this.done = 0;
    this.at = null;
  }

  // One panel for each group that the store has
  arrange() {
    this.clear();
    grouped(this.store.columns.keys()).forEach(([stem, names], k) => {
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
      this.pointed();
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

  // Seconds that the charts show: as asked for, or more and more with the flight
  fitting() {
    if (this.span) return this.span;
    let seconds = 30;
    while (seconds < this.store.last - this.store.first) seconds *= 1.25;
    return seconds;
  }

  rebuild() {
    if (!this.store.size) return;
    this.seconds = this.fitting();
    if (!this.held) this.end = this.store.last;
    for (const { chart } of this.panels) chart.rebuild(this.store, this.seconds, this.end);
    if (!this.held) this.done = this.store.last;
  }

  // Take what the store has got since
  extend() {
    if (this.held || !this.store.size) return;
    if (this.fitting() !== this.seconds) {
      this.rebuild();
      return;
    }
    const from = this.store.at(this.done + 1e-9);
    for (const { chart } of this.panels) chart.extend(this.store, from, this.store.size);
    this.end = this.done = this.store.last;
  }

  hold(held) {
    this.held = held;
    if (!held) this.rebuild();
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

  // Draw those that are seen and stale, the first and one in two of the others: no frame has to wait for all
  draw(dress) {
    if (!this.store.size) return;
    this.turn = 1 - this.turn;
    this.panels.forEach(({ chart }, k) => {
      if (!chart.seen || !chart.stale || (k && k % 2 !== this.turn)) return;
      chart.stale = false;
      chart.draw(this.start, this.end, dress, this.strokes, this.at);
    });
  }

  write() {
    for (const panel of this.panels) panel.write(this.at);
  }
}

// What happened, the newest first
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
    for (const [t, kind, text] of events) {
      const words = [made("time", { textContent: t === null ? "" : clock(t, 1) }), made("b", { textContent: label(kind) }), made("span", { textContent: text })];
      this.list.prepend(made("li", {}, ...words));
    }
    while (this.list.childElementCount > KEPT_EVENTS) this.list.lastElementChild.remove();
    this.count();
  }

  count() {
    const n = this.list.childElementCount;
    document.getElementById("event-count").textContent = n ? String(n) : "";
    document.getElementById("no-events").hidden = n > 0;
  }
}
