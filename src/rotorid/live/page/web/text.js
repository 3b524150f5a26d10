// Text of numbers and names, as in `rotorid.results.text`: "1.047 ± 0.008 kg", "wind x"

export const label = (name) => name.replaceAll("_", " ");

export const unitText = (unit) => (unit === "1" ? "" : unit.replaceAll("^2", "²").replaceAll("^3", "³").replaceAll(" ", "\u00a0"));

// Number of decimals for a value with a standard deviation: its first digit, or two digits if the first is 1
export function decimals(std) {
  if (!(std > 0) || !Number.isFinite(std)) return 3;
  const exponent = Math.floor(Math.log10(std));
  const leading = Number((std / 10 ** exponent).toFixed(6));
  return Math.min(12, Math.max(0, -exponent + (leading < 1.95 ? 1 : 0)));
}

const withMinus = (text) => (/^-[0.]*$/.test(text) ? text.slice(1) : text.replace("-", "−"));

export function valueText(value, std, signed = false) {
  if (!Number.isFinite(value)) return "–";
  const text = withMinus(value.toFixed(decimals(std)));
  return signed && value > 0 && /[1-9]/.test(text) ? `+${text}` : text;
}

export function plusMinus(value, std, signed = false) {
  if (!Number.isFinite(value)) return "–";
  if (!Number.isFinite(std)) return "unknown";
  return `${valueText(value, std, signed)}\u00a0±\u00a0${std.toFixed(decimals(std))}`;
}

export const fixed = (value, digits) => withMinus(value.toFixed(digits));

// Session time: "7.2 s", "85 s", "3:25", "1:02:07"; with long "1:25" for 85 s
export function clock(t, digits = 0, long = false) {
  if (Math.abs(t) < 100 && !long) return `${fixed(t, digits)} s`;
  const whole = Math.floor(Math.abs(t) + 1e-9), pad = (n) => String(n).padStart(2, "0");
  const h = Math.floor(whole / 3600), m = Math.floor(whole / 60) % 60;
  return `${t < 0 ? "−" : ""}${h ? `${h}:${pad(m)}` : m}:${pad(whole % 60)}`;
}

export const since = (seconds) => (seconds < 100 ? `${Math.round(seconds)} s` : `${Math.round(seconds / 60)} min`);
