// Ranges and ticks of axes

const STEPS = [1, 2, 5, 10];

function step(range, most) {
  const raw = range / most, power = 10 ** Math.floor(Math.log10(raw));
  return power * STEPS.find((s) => s * power >= raw * 0.9999);
}

export function ticks(low, high, most) {
  const by = step(high - low, most), found = [];
  for (let k = Math.ceil(low / by - 1e-9); k * by <= high + 1e-9 * by; k++) found.push(k * by);
  return { values: found, digits: Math.max(0, -Math.floor(Math.log10(by) + 1e-9)) };
}

const SECONDS = [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 43200];

export function timeTicks(from, to, most) {
  const by = SECONDS.find((s) => (to - from) / s <= most) ?? 86400, found = [];
  for (let k = Math.ceil(from / by); k * by <= to; k++) found.push(k * by);
  return found;
}

// A stable range: it grows when values are outside, and shrinks when less than half of it is used
export class Range {
  constructor() { this.clear(); }

  clear() { this.low = this.high = NaN; }

  fit(low, high) {
    if (!(high >= low)) return;
    const middle = 0.5 * (low + high), smallest = Math.max(1e-6, 1e-4 * Math.abs(middle));
    const half = Math.max(0.5 * (high - low), smallest);
    const fits = low >= this.low && high <= this.high && 2 * half > 0.45 * (this.high - this.low);
    if (fits) return;
    this.low = middle - 1.25 * half;
    this.high = middle + 1.25 * half;
  }
}

// Median width of the band of a curve
function medianWidth(curve, from, to) {
  const widths = [];
  for (let b = from; b <= to; b += Math.max(1, (to - from) >> 6)) {
    const slot = curve.slot(b);
    if (slot >= 0 && Number.isFinite(curve.high[slot])) widths.push(curve.high[slot] - curve.low[slot]);
  }
  return widths.length ? widths.sort((a, b) => a - b)[widths.length >> 1] : Infinity;
}

// Range of the values whose band is not much wider than the median, with a margin of half the median band
export function extent(curves, from, to) {
  let low = Infinity, high = -Infinity;
  for (const c of curves) {
    const width = medianWidth(c, from, to), margin = Number.isFinite(width) ? 0.5 * width : 0;
    for (let b = from; b <= to; b++) {
      const slot = c.slot(b);
      if (slot < 0 || c.high[slot] - c.low[slot] > 6 * width) continue;
      if (c.minimum[slot] - margin < low) low = c.minimum[slot] - margin;
      if (c.maximum[slot] + margin > high) high = c.maximum[slot] + margin;
    }
  }
  return [low, high];
}
