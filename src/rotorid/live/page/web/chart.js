// Curves of one panel over time, each with its 95 % band, on a canvas

import { Buckets, HealthBuckets } from "./buckets.js";
import { Range, extent, ticks, timeTicks } from "./scale.js";
import { clock, fixed } from "./words.js";

const LEFT = 50, RIGHT = 12, TOP = 8, BOTTOM = 22, STRIP = 14;

export class Chart {
  // curves: [{ name, colour }], a name of the store and a CSS variable. strip: whether health is shown below.
  constructor(canvas, curves, strip) {
    Object.assign(this, { canvas, curves, strip, seen: true, width: 0, height: 0, range: new Range() });
    this.context = canvas.getContext("2d");
    new IntersectionObserver((entries) => (this.seen = entries.at(-1).isIntersecting), { rootMargin: "200px" }).observe(canvas);
  }

  get columns() { return Math.max(1, Math.round(this.width - LEFT - RIGHT)); }

  // Fit the canvas to its box; says whether it changed
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

  // Begin anew with the seconds of the store that end there
  rebuild(store, seconds, end) {
    this.seconds = seconds;
    const per = seconds / this.columns, count = this.columns + 3;
    this.buckets = this.curves.map(() => new Buckets(count, per));
    this.healths = new HealthBuckets(count, per);
    this.range.clear();
    this.extend(store, store.at(end - seconds - per), store.at(end + 1e-9));
  }

  // Add rows of the store
  extend(store, from, to) {
    this.curves.forEach(({ name }, k) => {
      const { value, std, least, greatest } = store.columns.get(name), buckets = this.buckets[k];
      for (let i = from; i < to; i++) buckets.add(store.time[i], value[i], std[i], least[i], greatest[i], store.gap[i]);
    });
    if (this.strip) for (let i = from; i < to; i++) this.healths.add(store.time[i], store.health[i]);
  }

  // The time under a place of the canvas, px from its left
  timeAt(x) { return this.start + ((x - LEFT) / this.columns) * this.seconds; }

  // What was nearest to a time: one { value, std } a curve, or none
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

  // start: the time at the left edge. dress: colour by CSS variable. strokes: [colour, thickness] by health. pointed: a time to
  // mark, or null.
  draw(start, end, dress, strokes, pointed) {
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
    c.font = dress.font;
    c.lineWidth = 1;
    this.timeAxis(start, x, floor + below - BOTTOM, dress);
    if (!(high > low)) return;
    const y = (v) => floor - ((v - low) / (high - low)) * (floor - TOP);
    this.valueAxis(low, high, y, right, dress);
    c.save();
    c.beginPath();
    c.rect(LEFT, TOP - 2, right - LEFT + 1, floor - TOP + 4);
    c.clip();
    const strength = this.curves.length > 1 ? "2b" : "33";
    this.buckets.forEach((b, k) => this.band(b, from, to, per, x, y, dress[this.curves[k].colour] + strength));
    this.buckets.forEach((b, k) => this.line(b, from, to, per, x, y, dress[this.curves[k].colour]));
    c.restore();
    if (this.strip) this.healthStrip(from, to, x, floor + 5, dress, strokes);
    if (pointed !== null && pointed >= start && pointed <= start + this.seconds) {
      c.strokeStyle = dress.soft;
      c.lineWidth = 1;
      c.beginPath();
      c.moveTo(x(pointed), TOP);
      c.lineTo(x(pointed), floor);
      c.stroke();
    }
  }

  timeAxis(start, x, floor, dress) {
    const c = this.context;
    c.textAlign = "center";
    c.textBaseline = "alphabetic";
    c.fillStyle = dress.soft;
    c.strokeStyle = dress.grid;
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

  valueAxis(low, high, y, right, dress) {
    const c = this.context, { values, digits } = ticks(low, high, this.height < 180 ? 4 : 5);
    c.textAlign = "right";
    c.textBaseline = "middle";
    c.fillStyle = dress.soft;
    for (const v of values) {
      c.strokeStyle = Math.abs(v) < 1e-9 * (high - low) ? dress.line : dress.grid;
      c.beginPath();
      c.moveTo(LEFT, y(v));
      c.lineTo(right, y(v));
      c.stroke();
      c.fillText(fixed(v, digits), LEFT - 7, y(v));
    }
  }

  // Runs of buckets between breaks, as lists of slots with their bucket
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

  // Between two edges of the buckets, each moved out by so many px
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

  // All that a column holds, and a stroke through its middle
  line(buckets, from, to, per, x, y, stroke) {
    const c = this.context, width = this.curves.length > 1 ? 1.4 : 2;
    this.area(buckets, buckets.least, buckets.greatest, width / 2, from, to, per, x, y, stroke);
    c.strokeStyle = stroke;
    c.lineWidth = width;
    c.beginPath();
    for (const run of this.runs(buckets, from, to)) {
      run.forEach((b, k) => {
        const slot = buckets.slot(b), at = x((b + 0.5) * per), v = y(0.5 * (buckets.least[slot] + buckets.greatest[slot]));
        if (k) c.lineTo(at, v);
        else c.moveTo(at, v);
      });
    }
    c.stroke();
  }

  // A thin line while all is well, a thick one in the colour of what was not
  healthStrip(from, to, x, top, dress, strokes) {
    const c = this.context, per = this.healths.seconds, main = this.buckets[0];
    let begin = from, last = from, current = -1;
    const flush = (until) => {
      if (current < 0) return;
      const [colour, thick] = strokes[current], left = Math.max(LEFT, x(begin * per));
      const width = Math.max(thick > 3 ? 2 : 0, Math.min(LEFT + this.columns, x(until * per)) - left);
      c.fillStyle = dress[colour];
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
