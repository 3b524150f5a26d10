// Every row that came, up to `ROOM`: the newest half as it came, what is older thinned evenly in time, with the least and
// greatest value of the rows that one stands for

const ROOM = 65536;

export class Store {
  constructor() {
    this.columns = new Map(); // name -> { unit, value, std, least, greatest }
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
    const { names, units, t, health, gap, value, std } = message, { least = value, greatest = value } = message;
    let fresh = false;
    const columns = names.map((name, k) => {
      if (!this.columns.has(name)) {
        fresh = true;
        const nothing = () => new Float32Array(ROOM).fill(NaN, 0, this.size);
        this.columns.set(name, { unit: units[k], value: nothing(), std: nothing(), least: nothing(), greatest: nothing() });
      }
      return this.columns.get(name);
    });
    const width = names.length;
    for (let i = 0; i < t.length; i++) {
      if (this.size === ROOM) this.thin();
      const at = this.size++;
      this.time[at] = t[i];
      this.health[at] = health[i];
      this.gap[at] = gap[i];
      for (let k = 0; k < columns.length; k++) {
        columns[k].value[at] = value[i * width + k];
        columns[k].std[at] = std[i * width + k];
        columns[k].least[at] = least[i * width + k];
        columns[k].greatest[at] = greatest[i * width + k];
      }
    }
    return fresh;
  }

  // The older half becomes at most half as many rows, each with the last value and the worst health of those it stands for
  thin() {
    const half = ROOM / 2, least = (this.time[half] - this.time[0]) / (half / 2);
    const columns = [...this.columns.values()];
    let n = -1, next = -Infinity;
    for (let i = 0; i < this.size; i++) {
      const begins = i >= half || this.time[i] >= next;
      if (begins) {
        n++;
        next = this.time[i] + least;
      }
      this.time[n] = this.time[i];
      this.health[n] = begins ? this.health[i] : Math.max(this.health[n], this.health[i]);
      this.gap[n] = begins ? this.gap[i] : this.gap[n] | this.gap[i];
      for (const { value, std, least, greatest } of columns) {
        const alone = begins || Number.isNaN(value[n]);
        if (!begins && Number.isNaN(value[i])) continue;
        value[n] = value[i];
        std[n] = std[i];
        least[n] = alone ? least[i] : Math.min(least[n], least[i]);
        greatest[n] = alone ? greatest[i] : Math.max(greatest[n], greatest[i]);
      }
    }
    this.size = n + 1;
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
