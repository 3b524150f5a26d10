// Curves of one panel over time with their 95 % bands, on a canvas

import { Buckets, HealthBuckets } from "./buckets.js";
import { Range, extent, ticks, timeTicks } from "./scale.js";
import { clock, fixed } from "./text.js";

const LEFT = 50, RIGHT = 12, TOP = 8, BOTTOM = 22, STRIP = 14;

export class Chart {
  // curves: [{ name, colour }]: quantity in the store and CSS variable. strip: whether a strip of health is drawn below.
  constructor(canvas, curves, strip) {
    Object.assign(this, { canvas, curves, strip, isVisible: true, width: 0, height: 0, range: new Range() });
    this.context = canvas.getContext("2d");
    new IntersectionObserver((entries) => (this.isVisible = entries.at(-1).isIntersecting), { rootMargin: "200px" }).observe(canvas);
  }

  get columns() { return Math.max(1, Math.round(this.width - LEFT - RIGHT)); }

  // Fits the canvas to its element. Returns whether its size changed
  resize() {
    const { width, height } = this.canvas.getBoundingClientRect(), ratio = devicePixelRatio || 1;
    const changed = width !== this.width || height !== this.height || ratio !== this.ratio;
    if (changed) {
      Object.assign(this, { width, height, ratio });
      this.canvas.width = Math.round(width * ratio);
      this.canvas.height = Math.round(height * ratio);
    }
    return changed;
  }

  // Makes all buckets again, for the given seconds before `end`
  rebuild(store, seconds, end) {
    this.seconds = seconds;
    const per = seconds / this.columns, count = this.columns + 3;
    this.buckets = this.curves.map(() => new Buckets(count, per));
    this.healths = new HealthBuckets(count, per);
    this.range.clear();
    this.extend(store, store.at(end - seconds - per), store.at(end + 1e-9));
  }

  // Adds rows of the store
  extend(store, from, to) {
    this.curves.forEach(({ name }, k) => {
      const { value, std, minimum, maximum } = store.columns.get(name), buckets = this.buckets[k];
      for (let i = from; i < to; i++) buckets.add(store.time[i], value[i], std[i], minimum[i], maximum[i], store.gap[i]);
    });
    if (this.strip) for (let i = from; i < to; i++) this.healths.add(store.time[i], store.health[i]);
  }

  // Time at a position of the canvas, px from its left edge
  timeAt(x) { return this.start + ((x - LEFT) / this.columns) * this.seconds; }

  // Values nearest to a time: { value, std } of each curve, NaN if there is none
  around(t) {
    const bucket = Math.floor(t / this.buckets[0].seconds);
    return this.buckets.map((buckets) => {
      for (let d = 0; d < 12; d++) {
        for (const b of [bucket - d, bucket + d]) {
          const slot = buckets.slot(b);
          if (slot >= 0) return { value: buckets.last[slot], std: buckets.std[slot] };
        }
      }
      return { value: NaN, std: NaN };
    });
  }

  // start: time at the left edge. theme: colour by CSS variable. strokes: [colour, thickness] by health. cursor: time to mark,
  // or null
  draw(start, end, theme, strokes, cursor) {
    const { context: c, width, height } = this;
    const below = BOTTOM + (this.strip ? STRIP : 0), right = LEFT + this.columns, floor = height - below;
    this.start = start;
    const x = (t) => LEFT + ((t - start) / this.seconds) * this.columns;
    const per = this.seconds / this.columns;
    const from = Math.floor(start / per), to = Math.floor(end / per);
    this.range.fit(...extent(this.buckets, from, to));
    const { low, high } = this.range;
    c.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    c.clearRect(0, 0, width, height);
    c.font = theme.font;
    c.lineWidth = 1;
    this.timeAxis(start, x, floor + below - BOTTOM, theme);
    if (!(high > low)) return;
    const y = (v) => floor - ((v - low) / (high - low)) * (floor - TOP);
    this.valueAxis(low, high, y, right, theme);
    c.save();
    c.beginPath();
    c.rect(LEFT, TOP - 2, right - LEFT + 1, floor - TOP + 4);
    c.clip();
    const strength = this.curves.length > 1 ? "2b" : "33";
    this.buckets.forEach((b, k) => this.band(b, from, to, per, x, y, theme[this.curves[k].colour] + strength));
    this.buckets.forEach((b, k) => this.line(b, from, to, per, x, y, theme[this.curves[k].colour]));
    c.restore();
    if (this.strip) this.healthStrip(from, to, x, floor + 5, theme, strokes);
    if (cursor !== null && cursor >= start && cursor <= start + this.seconds) {
      c.strokeStyle = theme.soft;
      c.lineWidth = 1;
      c.beginPath();
      c.moveTo(x(cursor), TOP);
      c.lineTo(x(cursor), floor);
      c.stroke();
    }
  }

  timeAxis(start, x, floor, theme) {
    const c = this.context;
    c.textAlign = "center";
    c.textBaseline = "alphabetic";
    c.fillStyle = theme.soft;
    c.strokeStyle = theme.grid;
    c.beginPath();
    for (const t of timeTicks(start, start + this.seconds, Math.max(2, this.columns / 65))) {
      const at = x(t);
      if (at > LEFT + this.columns - 14 || at < LEFT + 10) continue;
      c.moveTo(at, TOP);
      c.lineTo(at, floor - (this.strip ? STRIP : 0));
      c.fillText(clock(t, 0, start + this.seconds > 100), at, floor + 16);
    }
    c.stroke();
  }

  valueAxis(low, high, y, right, theme) {
    const c = this.context, { values, digits } = ticks(low, high, this.height < 180 ? 4 : 5);
    c.textAlign = "right";
    c.textBaseline = "middle";
    c.fillStyle = theme.soft;
    for (const v of values) {
      c.strokeStyle = Math.abs(v) < 1e-9 * (high - low) ? theme.line : theme.grid;
      c.beginPath();
      c.moveTo(LEFT, y(v));
      c.lineTo(right, y(v));
      c.stroke();
      c.fillText(fixed(v, digits), LEFT - 7, y(v));
    }
  }

  // Uninterrupted runs of buckets
  *runs(buckets, from, to) {
    let run = [];
    for (let b = from; b <= to; b++) {
      const slot = buckets.slot(b);
      if (slot < 0) continue;
      if (buckets.broken[slot] && run.length) {
        yield run;
        run = [];
      }
      run.push(b);
    }
    if (run.length) yield run;
  }

  band(buckets, from, to, per, x, y, fill) {
    this.area(buckets, buckets.low, buckets.high, 0, from, to, per, x, y, fill);
  }

  // Area between two limits of the buckets, enlarged by `out` px on both sides
  area(buckets, low, high, out, from, to, per, x, y, fill) {
    const c = this.context, far = 1e5;
    const within = (v) => Math.max(-far, Math.min(far, y(v)));
    c.fillStyle = fill;
    for (const run of this.runs(buckets, from, to)) {
      c.beginPath();
      for (const b of run) c.lineTo(x((b + 0.5) * per), within(high[buckets.slot(b)]) - out);
      for (const b of run.reverse()) c.lineTo(x((b + 0.5) * per), within(low[buckets.slot(b)]) + out);
      c.fill();
    }
  }

  // Range of each column, and a line through the centres
  line(buckets, from, to, per, x, y, stroke) {
    const c = this.context, width = this.curves.length > 1 ? 1.4 : 2;
    this.area(buckets, buckets.minimum, buckets.maximum, width / 2, from, to, per, x, y, stroke);
    c.strokeStyle = stroke;
    c.lineWidth = width;
    c.beginPath();
    for (const run of this.runs(buckets, from, to)) {
      run.forEach((b, k) => {
        const slot = buckets.slot(b), at = x((b + 0.5) * per), v = y(0.5 * (buckets.minimum[slot] + buckets.maximum[slot]));
        if (k) c.lineTo(at, v);
        else c.moveTo(at, v);
      });
    }
    c.stroke();
  }

  // Thin line while health is good, thick line in the colour of the worst health otherwise
  healthStrip(from, to, x, top, theme, strokes) {
    const c = this.context, per = this.healths.seconds, main = this.buckets[0];
    let begin = from, last = from, current = -1;
    const flush = (until) => {
      if (current < 0) return;
      const [colour, thick] = strokes[current], left = Math.max(LEFT, x(begin * per));
      const width = Math.max(thick > 3 ? 2 : 0, Math.min(LEFT + this.columns, x(until * per)) - left);
      c.fillStyle = theme[colour];
      c.fillRect(left, top + (9 - thick) / 2, width, thick);
    };
    for (let b = from; b <= to; b++) {
      const health = this.healths.at(b), slot = main.slot(b);
      if (health < 0) continue;
      const broken = slot >= 0 && main.broken[slot];
      if (broken || health !== current) {
        flush(broken ? last + 1 : b);
        begin = b;
        current = health;
      }
      last = b;
    }
    flush(last + 1);
  }
}
