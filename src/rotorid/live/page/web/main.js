// Ties the stream to the store, the charts and the words of the page

import { Attitude, angles, towards } from "./attitude.js";
import { Events, Panels } from "./panels.js";
import { Store } from "./store.js";
import { listen } from "./stream.js";
import { clock, fixed, label, plusMinus, since, unitText } from "./words.js";

const byId = (id) => document.getElementById(id);
const store = new Store(), panels = new Panels(store), events = new Events(byId("events"));
const attitude = new Attitude(byId("attitude"));
const still = matchMedia("(prefers-reduced-motion: reduce)");

// How each word is drawn in the strip of health, and said; what is not here is bad news that this page does not know
const HEALTHS = {
  waiting: ["no-information", 3, ""], on_ground: ["no-information", 3, ""], listening: ["no-information", 3, ""],
  ok: ["ok", 3, "good"], no_information: ["no-information", 9, "caution"], outlier: ["outlier", 9, "caution"],
  out_of_range: ["out-of-range", 9, "caution"], inconsistent: ["inconsistent", 9, "caution"],
  recovering: ["recovering", 9, "caution"], diverged: ["diverged", 9, "bad"],
};
const UNKNOWN = ["soft", 9, "bad"];
const STALE = 2; // s without a moment, or without a message of the vehicle, after which the numbers are shown as old

let meanings = {}, words = [], latest = null, came = 0, received = 0, heard = 0, connection = "open";
let dress = null, dirty = true, texts = 0, before = 0, wanted = null;

function readDress() {
  const style = getComputedStyle(document.documentElement), value = (name) => style.getPropertyValue(`--${name}`).trim();
  dress = { font: `12px ${getComputedStyle(document.body).fontFamily}` };
  const names = ["ink", "soft", "grid", "line", "panel", "main", "axis-x", "axis-y", "axis-z", "nose", "front", "back", "shadow", "hull"];
  for (const name of [...names, ...Object.values(HEALTHS).map(([colour]) => colour)]) dress[name] = value(name);
  dirty = true;
}

function told(message) {
  if (message.meanings) meanings = message.meanings;
  words = message.words;
  panels.strokes = words.map((word) => HEALTHS[word] ?? UNKNOWN);
  if (message.reset) {
    store.clear();
    panels.clear();
    events.clear();
  }
  if (message.t.length) {
    latest = message;
    const fresh = store.append(message);
    if (fresh) panels.arrange();
    panels.extend();
    dirty = true;
    document.body.classList.remove("waiting");
  }
  came = performance.now() - 1000 * message.idle;
  if (message.link && message.link[0] !== received) {
    received = message.link[0];
    heard = came;
  }
  events.add(message.events);
  if (message.attitude) {
    wanted = message.attitude;
    attitude.shown ??= wanted;
  }
}

function state(now) {
  connection = now;
  texts = 0;
}

const idle = () => (performance.now() - Math.min(came, heard)) / 1000;
const old = () => store.size > 0 && idle() > STALE;

function tone() {
  if (connection === "lost") return ["bad", "no contact with rotorid; trying again"];
  if (connection === "ended") return ["", "the session has ended"];
  if (!store.size) return ["", "waiting for the first estimate"];
  if (old()) return ["bad", `no message from the vehicle for ${since(idle())}`];
  const word = words[store.worst(1)] ?? "", kind = (HEALTHS[word] ?? UNKNOWN)[2], meaning = meanings[word];
  return [kind, kind === "good" || !kind ? (meaning ?? label(word)) : [label(word), meaning].filter(Boolean).join(": ")];
}

function say(id, text) {
  const element = byId(id);
  if (element.textContent !== text) element.textContent = text;
}

// The words change a few times a second only, so that they can be read
function writeTexts() {
  const [kind, text] = tone();
  byId("health").className = `tone ${kind}`;
  say("health", text);
  byId("health").title = text;
  document.body.classList.toggle("stale", connection !== "open" || old());
  panels.write();
  if (!latest) return;
  if (panels.main) {
    const { value, std, unit } = store.latest(panels.main), known = Number.isFinite(value) && Number.isFinite(std);
    const text = `${label(panels.main)} ${plusMinus(value, std)} ${known ? unitText(unit) : ""}`;
    say("glance", text);
    document.title = `${text} · rotorid live`;
  }
  say("system", ` · ${latest.system} · ${clock(store.last)}`);
  writeAttitude();
  writeLink();
}

function writeAttitude() {
  if (wanted) {
    const { roll, pitch, heading } = angles(wanted);
    const text = `roll ${fixed(roll, 0)}° · pitch ${fixed(pitch, 0)}° · heading ${Math.round(heading) % 360}°`;
    say("angles", text);
    byId("attitude").setAttribute("aria-label", `attitude: ${text}`);
  }
  const [e, n, u] = latest.position ?? [];
  say("place", latest.position ? `${fixed(e, 1)} m east · ${fixed(n, 1)} m north · ${fixed(u, 1)} m up` : "");
}

function writeLink() {
  const [received, lost, rate, latency, skipped] = latest.link;
  const share = received + lost > 0 ? (100 * lost) / (received + lost) : 0;
  say("link-received", received.toLocaleString("en"));
  say("link-lost", `${lost.toLocaleString("en")} (${fixed(share, 1)} %)`);
  say("link-rate", rate === null ? "–" : `${fixed(rate, 0)} messages/s`);
  say("link-latency", latency === null ? "–" : `${fixed(1000 * latency, 1)} ms`);
  byId("skipped").hidden = !skipped;
  say("link-skipped", `${skipped.toLocaleString("en")} messages: this computer was too slow`);
  say("brief", ` · ${fixed(share, 1)} % lost`);
  say("link-age", old() ? `silent for ${since(idle())}` : "");
}

function frame(now) {
  requestAnimationFrame(frame);
  if (now - texts > 200) {
    texts = now;
    writeTexts();
  }
  if (panels.resize() || dirty) panels.stale();
  dirty = false;
  panels.draw(dress);
  turn(now);
}

// Between two messages the vehicle turns on
function turn(now) {
  const passed = Math.min(100, now - before);
  before = now;
  if (!wanted || panels.held) return;
  const far = Math.max(...wanted.map((v, k) => Math.abs(v - attitude.shown[k])));
  if (far < 1e-4 && attitude.drawn === dress) return;
  attitude.shown = still.matches ? wanted : towards(attitude.shown, wanted, 1 - Math.exp(-passed / 60));
  attitude.drawn = dress;
  attitude.draw(attitude.shown, dress);
}

byId("spans").addEventListener("change", (event) => {
  panels.span = Number(event.target.value);
  panels.rebuild();
  dirty = true;
});
byId("hold").addEventListener("click", (event) => {
  panels.hold(!panels.held);
  event.currentTarget.setAttribute("aria-pressed", String(panels.held));
  event.currentTarget.textContent = panels.held ? "Go on" : "Hold";
  dirty = true;
});
panels.pointed = () => {
  dirty = true;
  texts = 0;
};
new ResizeObserver(() => {
  attitude.resize();
  attitude.drawn = null;
}).observe(byId("attitude"));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", readDress);

readDress();
listen(told, state);
requestAnimationFrame(frame);
