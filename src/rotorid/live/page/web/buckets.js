// A curve as one bucket a pixel column: its least, greatest and last value there, and the ends of its 95 % band.
// A bucket is a fixed stretch of time: while the picture scrolls, what is drawn once stays, and only new rows cost work.

export const SIGMAS = 1.96;

const place = (bucket, count) => ((bucket % count) + count) % count;

export class Buckets {
  constructor(count, seconds) {
    this.count = count;
    this.seconds = seconds;
    this.id = new Float64Array(count).fill(NaN);
    this.broken = new Uint8Array(count);
    for (const name of ["least", "greatest", "last", "std", "low", "high"]) this[name] = new Float32Array(count);
    this.gap = 0;
  }

  slot(bucket) {
    const slot = place(bucket, this.count);
    return this.id[slot] === bucket ? slot : -1;
  }

  add(t, value, std, least, greatest, gap) {
    this.gap |= gap;
    if (Number.isNaN(value)) return;
    const bucket = Math.floor(t / this.seconds), slot = place(bucket, this.count);
    const width = SIGMAS * std, low = value - width, high = value + width;
    if (this.id[slot] !== bucket) {
      this.id[slot] = bucket;
      this.broken[slot] = this.gap;
      this.least[slot] = least;
      this.greatest[slot] = greatest;
      this.low[slot] = low;
      this.high[slot] = high;
    } else {
      if (this.gap) this.broken[slot] = 1;
      if (least < this.least[slot]) this.least[slot] = least;
      if (greatest > this.greatest[slot]) this.greatest[slot] = greatest;
      if (low < this.low[slot]) this.low[slot] = low;
      if (high > this.high[slot]) this.high[slot] = high;
    }
    this.last[slot] = value;
    this.std[slot] = std;
    this.gap = 0;
  }
}

// The worst health of each column
export class HealthBuckets {
  constructor(count, seconds) {
    this.count = count;
    this.seconds = seconds;
    this.id = new Float64Array(count).fill(NaN);
    this.worst = new Uint8Array(count);
  }

  add(t, health) {
    const bucket = Math.floor(t / this.seconds), slot = place(bucket, this.count);
    if (this.id[slot] !== bucket) {
      this.id[slot] = bucket;
      this.worst[slot] = health;
    } else if (health > this.worst[slot]) this.worst[slot] = health;
  }

  at(bucket) {
    const slot = place(bucket, this.count);
    return this.id[slot] === bucket ? this.worst[slot] : -1;
  }
}
