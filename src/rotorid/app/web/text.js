// Text of numbers and names

export const label = (name) => name.replaceAll("_", " ");

export const unitText = (unit) => (!unit || unit === "1" ? "" : ` ${unit.replaceAll("^2", "²")}`);

export const size = (bytes) => (bytes < 1e6 ? `${Math.max(1, Math.round(bytes / 1e3))} kB` : `${(bytes / 1e6).toFixed(1)} MB`);

export const seconds = (s) => (s < 100 ? `${s.toFixed(s < 10 ? 1 : 0)} s` : `${Math.floor(s / 60)} min ${Math.round(s % 60)} s`);

const digits = (x) => Number(x.toPrecision(3)).toString();

const list = (value) => (value === null || value === undefined ? [] : [value].flat());

// "0.0153 ± 0.0099, 0.0153 ± 0.0099, 0.0255 ± 0.0153 kg m²"
export function quantity({ value, std, unit }) {
  const stds = list(std);
  const numbers = list(value).map((v, k) => (stds[k] === undefined ? digits(v) : `${digits(v)} ± ${digits(stds[k])}`));
  return `${numbers.join(", ")}${unitText(unit)}`;
}

// Whether a quantity is uncertain by more than a fifth of its value
export const isWide = ({ value, std }) => list(std).some((s, k) => s > 0.2 * Math.abs(list(value)[k]) && list(value)[k] !== 0);
