// Shows the state of the session, and sends what the user does

import { h, update } from "./dom.js";
import { jobPanel } from "./jobs.js";
import { checksPanel, flightPanel, headPanel, runPanel, vehiclePanel } from "./log.js";
import { listen, post, remove, upload } from "./server.js";
import { seconds, size } from "./text.js";

const byId = (id) => document.getElementById(id);
const MESSAGE = 12000; // ms that a message of an error stays
let state = null, selected = "", wanted = "", settings = { command: "track" };
const uploads = new Map();

function message(text, name = "") {
  const key = `${name}${text}`;
  uploads.set(key, { text: name ? `${name}: ${text.replace(`${name}: `, "")}` : text, isError: true });
  setTimeout(() => (uploads.delete(key), drawUploads()), MESSAGE);
  drawUploads();
}

async function attempt(action) {
  try {
    return await action();
  } catch (error) {
    message(error.message);
    return null;
  }
}

async function send(files) {
  for (const file of files) {
    const key = `${file.name} ${Math.random()}`;
    uploads.set(key, { text: file.name, share: 0 });
    drawUploads();
    try {
      const answer = await upload(file, (share) => (uploads.set(key, { text: file.name, share }), drawUploads()));
      if (answer.log) wanted = answer.log; // selected when the state has it
      if (answer.airframe && current()) await setVehicle({ ...current().vehicle, airframe: `file:${answer.airframe}`, span: "" }, false);
    } catch (error) {
      message(error.message, file.name);
    }
    uploads.delete(key);
    drawUploads();
    draw();
  }
}

function drawUploads() {
  update(byId("uploads"), [...uploads].map(([key, { text, share, isError }]) => ({
    key, signature: [text, share],
    make: () => h(isError ? "li.error" : "li", {}, text, isError ? null : h("progress", { max: 1, value: share })),
  })));
}

const current = () => state?.logs.find((log) => log.id === selected);

const setVehicle = (form, all) =>
  attempt(() => post("vehicle", { ...form, logs: all ? state.logs.map((log) => log.id) : [selected] }));

const onRun = {
  choose(choice) {
    settings = { ...choice };
    draw();
  },
  start: (request) => attempt(() => post("jobs", request)),
};

const act = (action, id) =>
  attempt(() => (action === "cancel" ? post(`jobs/${encodeURIComponent(id)}/cancel`, {}) : remove(`jobs/${encodeURIComponent(id)}`)));

function select(id) {
  selected = id;
  settings = { command: settings.command };
  draw();
  if (innerWidth < 900) byId("log").scrollIntoView();
}

function logRow(log) {
  const failed = log.inspection.state === "failed", tone = failed ? "bad" : (log.verdict?.tone ?? "");
  const about = failed ? "cannot be read" : log.verdict ? seconds(log.duration) : "checking …";
  return h("div.row", {},
    h("button.pick", { type: "button", "aria-current": String(log.id === selected), onclick: () => select(log.id) },
      h(tone ? `span.tone.${tone}` : "span.tone", {}, log.name), h("small", {}, `${about} · ${size(log.size)}`)),
    h("button.drop", { type: "button", title: `Remove ${log.name}`, "aria-label": `Remove ${log.name}`,
      onclick: () => attempt(() => remove(`logs/${encodeURIComponent(log.id)}`)) }, "×"));
}

function draw() {
  if (!state) return;
  if (state.logs.some((log) => log.id === wanted)) [selected, wanted] = [wanted, ""];
  if (!current()) selected = state.logs.at(-1)?.id ?? "";
  const log = current(), names = Object.fromEntries(state.logs.map((entry) => [entry.id, entry.name]));
  byId("folder").textContent = `· ${state.folder}`;
  update(byId("logs"), state.logs.map((entry) => ({
    key: entry.id, signature: [entry.inspection, entry.verdict?.tone, entry.id === selected], make: () => logRow(entry),
  })));
  byId("jobs-section").hidden = !state.jobs.length;
  update(byId("jobs"), state.jobs.toReversed().map((job) => ({
    key: job.id, signature: job, make: () => jobPanel(job, job.logs.map((id) => names[id] ?? id), state.view, act),
  })));
  if (!log) {
    update(byId("log"), [{ key: "empty", signature: 0, make: () => empty }]);
    return;
  }
  const isDone = log.inspection.state === "done" && log.verdict, panels = [];
  const add = (name, signature, make) => panels.push({ key: `${log.id} ${name}`, signature, make });
  add("head", [log.inspection, log.verdict], () => headPanel(log));
  if (isDone) {
    const ids = state.logs.map((entry) => [entry.id, entry.inspection.state]);
    add("vehicle", [log.vehicle, log.airframe, state.airframes, ids.length > 1], () => vehiclePanel(log, state, setVehicle));
    add("run", [settings.command, log.airframe.state, ids], () => runPanel(log, state, settings, onRun));
    add("flight", state.view, () => flightPanel(log, state.view));
    add("checks", 0, () => checksPanel(log));
  }
  update(byId("log"), panels);
}

const empty = byId("empty");
byId("files").addEventListener("change", (event) => {
  send([...event.target.files]);
  event.target.value = "";
});
for (const name of ["dragenter", "dragover"]) {
  addEventListener(name, (event) => {
    event.preventDefault();
    document.body.classList.add("dragging");
  });
}
addEventListener("dragleave", (event) => event.relatedTarget || document.body.classList.remove("dragging"));
addEventListener("drop", (event) => {
  event.preventDefault();
  document.body.classList.remove("dragging");
  send([...event.dataTransfer.files]);
});
listen((next) => {
  state = next;
  draw();
}, (isOpen) => {
  byId("connection").className = isOpen ? "tone" : "tone bad";
  byId("connection").textContent = isOpen ? "" : "connection to rotorid lost; reconnecting";
});
