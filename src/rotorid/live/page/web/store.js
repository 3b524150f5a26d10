// All rows up to `CAPACITY`: the newest half is complete, older rows are decimated evenly in time and keep the minimum and maximum of
// the rows that they represent

const CAPACITY = 65536;

export class Store {
  constructor() {
    this.columns = new Map(); // name -> { unit, value, std, minimum, maximum }
    this.time = new Float64Array(CAPACITY);
    this.health = new Uint8Array(CAPACITY);
    this.gap = new Uint8Array(CAPACITY);
    this.clear();
  }

  clear() {
    this.size = 0;
    this.columns.clear();
  }

  get first() { return this.size ? this.time[0] : 0; }
  get last() { return this.size ? this.time[this.size - 1] : 0; }

  // Appends the rows of a message. Returns whether it contains a new quantity
  append(message) {
    const { names, units, t, health, gap, value, std } = message, { minimum = value, maximum = value } = message;
    let hasNewColumn = false;
    const columns = names.map((name, k) => {
      if (!this.columns.has(name)) {
        hasNewColumn = true;
        const missing = () => new Float32Array(CAPACITY).fill(NaN, 0, this.size);
        this.columns.set(name, { unit: units[k], value: missing(), std: missing(), minimum: missing(), maximum: missing() });
      }
      return this.columns.get(name);
    });
    const width = names.length;
    for (let i = 0; i < t.length; i++) {
      if (this.size === CAPACITY) this.decimate();
      const at = this.size++;
      this.time[at] = t[i];
      this.health[at] = health[i];
      this.gap[at] = gap[i];
      for (let k = 0; k < columns.length; k++) {
        columns[k].value[at] = value[i * width + k];
        columns[k].std[at] = std[i * width + k];
        columns[k].minimum[at] = minimum[i * width + k];
        columns[k].maximum[at] = maximum[i * width + k];
      }
    }
    return hasNewColumn;
  }

  // Decimates the older half by at least two; each row has the last value and the worst health of the rows that it represents
  decimate() {
    const half = CAPACITY / 2, interval = (this.time[half] - this.time[0]) / (half / 2);
    const columns = [...this.columns.values()];
    let n = -1, next = -Infinity;
    for (let i = 0; i < this.size; i++) {
      const begins = i >= half || this.time[i] >= next;
      if (begins) {
        n++;
        next = this.time[i] + interval;
      }
      this.time[n] = this.time[i];
      this.health[n] = begins ? this.health[i] : Math.max(this.health[n], this.health[i]);
      this.gap[n] = begins ? this.gap[i] : this.gap[n] | this.gap[i];
      for (const { value, std, minimum, maximum } of columns) {
        const alone = begins || Number.isNaN(value[n]);
        if (!begins && Number.isNaN(value[i])) continue;
        value[n] = value[i];
        std[n] = std[i];
        minimum[n] = alone ? minimum[i] : Math.min(minimum[n], minimum[i]);
        maximum[n] = alone ? maximum[i] : Math.max(maximum[n], maximum[i]);
      }
    }
    this.size = n + 1;
  }

  // First row at or after a time
  at(t) {
    let low = 0, high = this.size;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.time[middle] < t) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  // Worst health of the last seconds
  worst(seconds) {
    let worst = 0;
    for (let i = this.size - 1; i >= 0 && this.time[i] > this.last - seconds; i--) worst = Math.max(worst, this.health[i]);
    return worst;
  }

  // Latest value of a quantity with its standard deviation, from the last 2000 rows
  latest(name) {
    const column = this.columns.get(name);
    for (let i = this.size - 1; column && i >= Math.max(0, this.size - 2000); i--) {
      if (!Number.isNaN(column.value[i])) return { value: column.value[i], std: column.std[i], unit: column.unit };
    }
    return { value: NaN, std: NaN, unit: column?.unit ?? "" };
  }
}
