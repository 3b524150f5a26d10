// Connects the stream with the store, the charts and the texts of the page

import { Attitude, angles, interpolate } from "./attitude.js";
import { Events, Panels } from "./panels.js";
import { Store } from "./store.js";
import { listen } from "./stream.js";
import { Team } from "./team.js";
import { clock, fixed, label, plusMinus, since, unitText } from "./text.js";

const byId = (id) => document.getElementById(id);
const store = new Store(), panels = new Panels(store), events = new Events(byId("events"));
const attitude = new Attitude(byId("attitude")), team = new Team(byId("team"), showVehicle);
const reducedMotion = matchMedia("(prefers-reduced-motion: reduce)");

// Style of each health: colour and thickness in the strip, class of its text
const HEALTH_STYLES = {
  waiting: ["no-information", 3, ""], on_ground: ["no-information", 3, ""], take_off: ["no-information", 3, ""],
  estimating_noise: ["no-information", 3, ""], landing: ["no-information", 3, ""], contact: ["recovering", 3, "caution"],
  crash: ["diverged", 9, "bad"], motor_stopped: ["diverged", 9, "bad"], rotor_fault: ["rotor-fault", 9, "caution"],
  ok: ["ok", 3, "good"], no_information: ["no-information", 9, "caution"], outlier: ["outlier", 9, "caution"],
  out_of_range: ["out-of-range", 9, "caution"], inconsistent: ["inconsistent", 9, "caution"],
  recovering: ["recovering", 9, "caution"], diverged: ["diverged", 9, "bad"],
};
const UNKNOWN_STYLE = ["soft", 9, "bad"];
const STALE = 2; // s without a snapshot or a message of the vehicle, from which values are shown as outdated

let healthTexts = {}, healthNames = [], latest = null, lastSnapshot = 0, received = 0, lastMessage = 0, connection = "open";
let theme = null, isChanged = true, lastTexts = 0, lastFrame = 0, targetAttitude = null;

function readTheme() {
  const style = getComputedStyle(document.documentElement), value = (name) => style.getPropertyValue(`--${name}`).trim();
  theme = { font: `12px ${getComputedStyle(document.body).fontFamily}` };
  const names = ["ink", "soft", "grid", "line", "panel", "main", "axis-x", "axis-y", "axis-z", "nose", "front", "back", "shadow", "hull"];
  for (const name of [...names, ...Object.values(HEALTH_STYLES).map(([colour]) => colour)]) theme[name] = value(name);
  isChanged = true;
}

function onMessage(message) {
  if (message.health_texts) healthTexts = message.health_texts;
  healthNames = message.health_names;
  panels.strokes = healthNames.map((name) => HEALTH_STYLES[name] ?? UNKNOWN_STYLE);
  if (message.reset) {
    store.clear();
    panels.clear();
    events.clear();
  }
  team.show(message.vehicles, (health) => (HEALTH_STYLES[health] ?? UNKNOWN_STYLE)[2], STALE);
  if (message.t.length) {
    latest = message;
    const hasNewColumn = store.append(message);
    if (hasNewColumn) panels.arrange();
    panels.extend();
    isChanged = true;
    document.body.classList.remove("waiting");
  }
  lastSnapshot = performance.now() - 1000 * message.idle;
  if (message.link && message.link[0] !== received) {
    received = message.link[0];
    lastMessage = lastSnapshot;
  }
  events.add(message.events);
  if (message.attitude) {
    targetAttitude = message.attitude;
    attitude.current ??= targetAttitude;
  }
}

// Requests the messages of another vehicle, which begin with a reset
function showVehicle(name) {
  latest = targetAttitude = attitude.current = attitude.drawnTheme = null;
  received = lastSnapshot = lastMessage = 0;
  attitude.resize();
  for (const id of ["angles", "place"]) setText(id, "");
  request(name);
}

function onState(state) {
  connection = state;
  lastTexts = 0;
}

const idle = () => (performance.now() - Math.min(lastSnapshot, lastMessage)) / 1000;
const isOutdated = () => store.size > 0 && idle() > STALE;

function status() {
  if (connection === "lost") return ["bad", "connection to rotorid lost; reconnecting"];
  if (connection === "ended") return ["", "the session has ended"];
  if (!store.size) return ["", "waiting for the first estimate"];
  if (isOutdated()) return ["bad", `no message from the vehicle for ${since(idle())}`];
  const name = healthNames[store.worst(1)] ?? "", kind = (HEALTH_STYLES[name] ?? UNKNOWN_STYLE)[2], text = healthTexts[name];
  return [kind, kind === "good" || !kind ? (text ?? label(name)) : [label(name), text].filter(Boolean).join(": ")];
}

function setText(id, text) {
  const element = byId(id);
  if (element.textContent !== text) element.textContent = text;
}

// Texts are updated five times a second, so that they can be read
function writeTexts() {
  const [kind, text] = status();
  byId("health").className = `tone ${kind}`;
  setText("health", text);
  byId("health").title = text;
  document.body.classList.toggle("stale", connection !== "open" || isOutdated());
  panels.write();
  if (!latest) return;
  if (panels.main) {
    const { value, std, unit } = store.latest(panels.main), known = Number.isFinite(value) && Number.isFinite(std);
    const text = `${label(panels.main)} ${plusMinus(value, std)} ${known ? unitText(unit) : ""}`;
    setText("glance", text);
    document.title = `${text} · rotorid live`;
  }
  setText("system", ` · ${team.selected ? `${team.selected} · ` : ""}${latest.system} · ${clock(store.last)}`);
  writeAttitude();
  writeLink();
}

function writeAttitude() {
  if (targetAttitude) {
    const { roll, pitch, heading } = angles(targetAttitude);
    const text = `roll ${fixed(roll, 0)}° · pitch ${fixed(pitch, 0)}° · heading ${Math.round(heading) % 360}°`;
    setText("angles", text);
    byId("attitude").setAttribute("aria-label", `attitude: ${text}`);
  }
  const [e, n, u] = latest.position ?? [];
  setText("place", latest.position ? `${fixed(e, 1)} m east · ${fixed(n, 1)} m north · ${fixed(u, 1)} m up` : "");
}

function writeLink() {
  const [received, lost, rate, latency, skipped] = latest.link;
  const share = received + lost > 0 ? (100 * lost) / (received + lost) : 0;
  setText("link-received", received.toLocaleString("en"));
  setText("link-lost", `${lost.toLocaleString("en")} (${fixed(share, 1)} %)`);
  setText("link-rate", rate === null ? "–" : `${fixed(rate, 0)} messages/s`);
  setText("link-latency", latency === null ? "–" : `${fixed(1000 * latency, 1)} ms`);
  byId("skipped").hidden = !skipped;
  setText("link-skipped", `${skipped.toLocaleString("en")} messages (computer overloaded)`);
  setText("brief", ` · ${fixed(share, 1)} % lost`);
  setText("link-age", isOutdated() ? `no messages for ${since(idle())}` : "");
}

function frame(now) {
  requestAnimationFrame(frame);
  if (now - lastTexts > 200) {
    lastTexts = now;
    writeTexts();
  }
  if (panels.resize() || isChanged) panels.stale();
  isChanged = false;
  panels.draw(theme);
  turnAttitude(now);
}

// Moves the drawn attitude smoothly to the latest one
function turnAttitude(now) {
  const passed = Math.min(100, now - lastFrame);
  lastFrame = now;
  if (!targetAttitude || panels.isHeld) return;
  const far = Math.max(...targetAttitude.map((v, k) => Math.abs(v - attitude.current[k])));
  if (far < 1e-4 && attitude.drawnTheme === theme) return;
  attitude.current = reducedMotion.matches ? targetAttitude : interpolate(attitude.current, targetAttitude, 1 - Math.exp(-passed / 60));
  attitude.drawnTheme = theme;
  attitude.draw(attitude.current, theme);
}

byId("spans").addEventListener("change", (event) => {
  panels.span = Number(event.target.value);
  panels.rebuild();
  isChanged = true;
});
byId("hold").addEventListener("click", (event) => {
  panels.hold(!panels.isHeld);
  event.currentTarget.setAttribute("aria-pressed", String(panels.isHeld));
  event.currentTarget.textContent = panels.isHeld ? "Resume" : "Hold";
  isChanged = true;
});
panels.onCursor = () => {
  isChanged = true;
  lastTexts = 0;
};
new ResizeObserver(() => {
  attitude.resize();
  attitude.drawnTheme = null;
}).observe(byId("attitude"));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", readTheme);

readTheme();
const request = listen(onMessage, onState);
requestAnimationFrame(frame);
