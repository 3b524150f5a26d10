// A curve as one bucket per pixel column: minimum, maximum and last value, and the limits of its 95 % band.
// A bucket is a fixed time interval, so that scrolling only requires work for new rows.

export const SIGMAS = 1.96;

const slotOf = (bucket, count) => ((bucket % count) + count) % count;

export class Buckets {
  constructor(count, seconds) {
    this.count = count;
    this.seconds = seconds;
    this.id = new Float64Array(count).fill(NaN);
    this.broken = new Uint8Array(count);
    for (const name of ["minimum", "maximum", "last", "std", "low", "high"]) this[name] = new Float32Array(count);
    this.gap = 0;
  }

  slot(bucket) {
    const slot = slotOf(bucket, this.count);
    return this.id[slot] === bucket ? slot : -1;
  }

  add(t, value, std, minimum, maximum, gap) {
    this.gap |= gap;
    if (Number.isNaN(value)) return;
    const bucket = Math.floor(t / this.seconds), slot = slotOf(bucket, this.count);
    const width = SIGMAS * std, low = value - width, high = value + width;
    if (this.id[slot] !== bucket) {
      this.id[slot] = bucket;
      this.broken[slot] = this.gap;
      this.minimum[slot] = minimum;
      this.maximum[slot] = maximum;
      this.low[slot] = low;
      this.high[slot] = high;
    } else {
      if (this.gap) this.broken[slot] = 1;
      if (minimum < this.minimum[slot]) this.minimum[slot] = minimum;
      if (maximum > this.maximum[slot]) this.maximum[slot] = maximum;
      if (low < this.low[slot]) this.low[slot] = low;
      if (high > this.high[slot]) this.high[slot] = high;
    }
    this.last[slot] = value;
    this.std[slot] = std;
    this.gap = 0;
  }
}

// Worst health of each pixel column
export class HealthBuckets {
  constructor(count, seconds) {
    this.count = count;
    this.seconds = seconds;
    this.id = new Float64Array(count).fill(NaN);
    this.worst = new Uint8Array(count);
  }

  add(t, health) {
    const bucket = Math.floor(t / this.seconds), slot = slotOf(bucket, this.count);
    if (this.id[slot] !== bucket) {
      this.id[slot] = bucket;
      this.worst[slot] = health;
    } else if (health > this.worst[slot]) this.worst[slot] = health;
  }

  at(bucket) {
    const slot = slotOf(bucket, this.count);
    return this.id[slot] === bucket ? this.worst[slot] : -1;
  }
}
