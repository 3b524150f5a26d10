// Every row that came, up to `ROOM`: the newest half as it came, what is older thinned evenly in time

const ROOM = 65536;

export class Store {
  constructor() {
    this.columns = new Map(); // name -> { unit, value, std }
    this.time = new Float64Array(ROOM);
    this.health = new Uint8Array(ROOM);
    this.gap = new Uint8Array(ROOM);
    this.clear();
  }

  clear() {
    this.size = 0;
    this.columns.clear();
  }

  get first() { return this.size ? this.time[0] : 0; }
  get last() { return this.size ? this.time[this.size - 1] : 0; }

  // Rows of a message; says whether there is a quantity that was not there before
  append(message) {
    const { names, units, t, health, gap, values } = message;
    let fresh = false;
    const columns = names.map((name, k) => {
      if (!this.columns.has(name)) {
        fresh = true;
        const nothing = () => new Float32Array(ROOM).fill(NaN, 0, this.size);
        this.columns.set(name, { unit: units[k], value: nothing(), std: nothing() });
      }
      return this.columns.get(name);
    });
    const width = 2 * names.length;
    for (let i = 0; i < t.length; i++) {
      if (this.size === ROOM) this.thin();
      const at = this.size++;
      this.time[at] = t[i];
      this.health[at] = health[i];
      this.gap[at] = gap[i];
      for (let k = 0; k < columns.length; k++) {
        columns[k].value[at] = values[i * width + 2 * k];
        columns[k].std[at] = values[i * width + 2 * k + 1];
      }
    }
    return fresh;
  }

  // The older half becomes at most half as many rows; each keeps the worst health of those that it stands for
  thin() {
    const half = ROOM / 2, least = (this.time[half] - this.time[0]) / (half / 2);
    const kept = new Int32Array(this.size);
    let n = 0, next = -Infinity;
    for (let i = 0; i < half; i++) {
      if (this.time[i] >= next) {
        next = this.time[i] + least;
        kept[n++] = i;
      } else {
        const to = kept[n - 1];
        this.health[to] = Math.max(this.health[to], this.health[i]);
        this.gap[to] |= this.gap[i];
      }
    }
    for (let i = half; i < this.size; i++) kept[n++] = i;
    const arrays = [this.time, this.health, this.gap];
    for (const column of this.columns.values()) arrays.push(column.value, column.std);
    for (const array of arrays) for (let j = 0; j < n; j++) array[j] = array[kept[j]];
    this.size = n;
  }

  // The first row at or after a time
  at(t) {
    let low = 0, high = this.size;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.time[middle] < t) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  // The worst health of the last seconds
  worst(seconds) {
    let worst = 0;
    for (let i = this.size - 1; i >= 0 && this.time[i] > this.last - seconds; i--) worst = Math.max(worst, this.health[i]);
    return worst;
  }

  // The latest value of a quantity with its standard deviation, of the last few rows
  latest(name) {
    const column = this.columns.get(name);
    for (let i = this.size - 1; column && i >= Math.max(0, this.size - 2000); i--) {
      if (!Number.isNaN(column.value[i])) return { value: column.value[i], std: column.std[i], unit: column.unit };
    }
    return { value: NaN, std: NaN, unit: column?.unit ?? "" };
  }
}
