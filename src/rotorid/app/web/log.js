// One log: verdict, checks, the flight, the vehicle as a form, and the commands

import { h } from "./dom.js";
import { isWide, label, quantity, seconds } from "./text.js";

const RESULTS = { error: "bad", warning: "caution", note: "", ok: "good", yes: "good", weak: "caution", no: "bad" };

const mark = (word) => h(RESULTS[word] ? `span.tone.${RESULTS[word]}` : "span.tone", {}, word === "ok" ? "passed" : word);

export function headPanel(log) {
  const { inspection, verdict } = log;
  const about = [log.vehicle_name, log.format, log.duration === undefined ? "" : seconds(log.duration)].filter(Boolean);
  const top = h("p.overline", {}, h("b", {}, log.name), about.length ? ` · ${about.join(" · ")}` : "");
  if (inspection.state === "failed") {
    return h("div", {}, top, h("p.tone.bad", {}, "Log cannot be read"), h("h1.error", {}, inspection.error));
  }
  if (inspection.state !== "done" || !verdict) return h("div", {}, top, h("h1", {}, "Checking the log …"), h("progress"));
  const tones = { good: "Log can be used", caution: "Log to be used with care", bad: "Log not to be used" };
  return h("div", {}, top, h(`p.tone.${verdict.tone}`, {}, tones[verdict.tone]), h("h1", {}, verdict.headline),
    h("p.detail", {}, verdict.details.join(" ")));
}

export function checksPanel(log) {
  const rows = (entries, make) => h("div.panel.scroll", {}, h("table", {}, h("tbody", {}, entries.map(make))));
  const passed = log.findings.filter((f) => f.severity === "ok"), other = log.findings.filter((f) => f.severity !== "ok");
  const finding = (f) => h("tr", {}, h("td.word", {}, mark(f.severity)), h("td", {}, h("b", {}, f.check), `: ${f.message}`,
    f.remedy ? h("p.remedy", {}, f.remedy) : null));
  const identifiable = (r) => h("tr", {}, h("td.word", {}, mark(r.verdict)), h("td", {}, h("b", {}, label(r.quantity)), `: ${r.reason}`,
    r.recommendations.map((text) => h("p.remedy", {}, text))));
  return h("section", {}, h("h2", {}, "Checks"),
    h("div.pairs", {},
      h("div", {}, other.length ? rows(other, finding) : h("p.caption", {}, "All checks passed."),
        passed.length ? h("details", { data: { name: "passed" } }, h("summary", {}, `${passed.length} checks passed`), rows(passed, finding)) : null),
      rows(log.identifiability, identifiable)));
}

export function flightPanel(log, view) {
  const address = `../${view}/logs/${encodeURIComponent(log.id)}/report.html`;
  return h("section", {}, h("h2", {}, "Flight"),
    h("iframe.panel", { src: address, title: `Signals of ${log.name}`, loading: "lazy" }),
    h("p.caption", {}, h("a", { href: address, target: "_blank", rel: "noopener" }, "Open the report of the log")));
}

function airframeTable({ entries, rotors, description }) {
  if (!entries.length) return null;
  const arms = rotors.map(([x, y]) => Math.hypot(x, y));
  const span = arms.length ? h("tr", {}, h("td.word", {}, `${rotors.length} rotors`),
    h("td", {}, `${Math.max(...arms).toFixed(3)} m from the centre`), h("td.long", {}, "")) : null;
  return h("div.panel.scroll", {}, h("p.below", {}, description), h("table", {}, h("tbody", {}, span,
    entries.map((entry) => h(isWide(entry) ? "tr.wide" : "tr", {}, h("td.word", {}, label(entry.name)), h("td", {}, quantity(entry)),
      h("td.long", {}, [entry.source, entry.has_default_std ? "default standard deviation" : ""].filter(Boolean).join("; ")))))));
}

// The form of the vehicle. onChange(form, all) is called with its values; all: for every log
export function vehiclePanel(log, state, onChange) {
  const { airframe: status, vehicle } = log;
  const option = (value, text) => h("option", { value, selected: value === vehicle.airframe }, text);
  const airframe = h("select", { id: "airframe" },
    option("", "as the parameters of the log say"),
    state.airframes.map((name) => option(`file:${name}`, `${name}.toml`)),
    state.shipped.map((name) => option(`shipped:${name}`, name)));
  const mass = h("input", { id: "mass", value: vehicle.mass, inputMode: "decimal", placeholder: "1.52 or 1.52+-0.01", autocomplete: "off" });
  const span = h("input", { id: "span", value: vehicle.span, inputMode: "decimal", placeholder: "by the log or the mass", autocomplete: "off",
    disabled: vehicle.airframe !== "" });
  const values = () => ({ airframe: airframe.value, mass: mass.value.trim(), span: airframe.value ? "" : span.value.trim() });
  const form = h("form.panel.fields", { onsubmit: (event) => (event.preventDefault(), onChange(values(), false)),
    onchange: () => onChange(values(), false) },
    h("label", {}, h("span", {}, "Airframe"), airframe),
    h(status.state === "failed" && !vehicle.mass ? "label.needed" : "label", {}, h("span", {}, "Mass as it flies, with battery (kg)"), mass),
    h("label", {}, h("span", {}, "Distance between opposite motors (m)"), span),
    state.logs.length > 1
      ? h("button", { type: "button", id: "all", onclick: () => onChange(values(), true) }, "Use for all logs") : null);
  const texts = { queued: "Reading the airframe …", running: "Reading the airframe …", failed: status.error };
  const tone = status.state === "failed" ? (vehicle.mass ? "bad" : "caution") : "";
  return h("section", {}, h("h2", {}, "Vehicle"), h("p.caption", {}, "What the log does not say has a prior by size, with a wide band. A weighed mass and a measured distance make it narrow."),
    form, texts[status.state] ? h(`p.tone${tone && `.${tone}`}.state`, { id: "airframe-state" }, texts[status.state]) : null, airframeTable(status));
}

// The commands. onRun({ command, logs, estimators, observer })
export function runPanel(log, state, settings, onRun) {
  const { commands, estimators, observers } = state.choices, isReady = log.airframe.state === "done";
  const choice = h("fieldset.commands", {}, h("legend.unseen", {}, "Command"), Object.entries(commands).map(([name, text]) =>
    h("label", {}, h("input", { type: "radio", name: "command", value: name, checked: name === settings.command }), h("b", {}, name), h("span", {}, text))));
  const checks = (entries, chosen, name) => Object.entries(entries).map(([value, text]) =>
    h("label", {}, h("input", { type: "checkbox", name, value, checked: chosen.includes(value) }), text));
  const own = settings.command === "compare" ? Object.keys(estimators) : ["ekf", "ukf"];
  const others = state.logs.filter((other) => other.id !== log.id && other.inspection.state === "done");
  const options = {
    track: () => h("fieldset", {}, h("legend", {}, "Estimators"), checks(estimators, settings.estimators ?? own, "estimator")),
    compare: () => h("fieldset", {}, h("legend", {}, "Estimators"), checks(estimators, settings.estimators ?? own, "estimator")),
    wrench: () => h("label", {}, h("span", {}, "Observer"), h("select", { id: "observer" },
      Object.entries(observers).map(([value, text]) => h("option", { value, selected: value === (settings.observer ?? "mo") }, text)))),
    identify: () => others.length
      ? h("fieldset", {}, h("legend", {}, "Together with"), checks(Object.fromEntries(others.map((o) => [o.id, o.name])), settings.others ?? [], "other"))
      : null,
  };
  const form = h("form.panel.fields", {}, choice, options[settings.command](),
    h("button.main", { type: "submit", id: "run", disabled: !isReady }, `Run ${settings.command}`),
    isReady ? null : h("p.caption", {}, "The airframe above is not complete."));
  const read = (name) => [...form.querySelectorAll(`input[name="${name}"]:checked`)].map((input) => input.value);
  form.addEventListener("change", (event) => {
    if (event.target.name === "command") onRun.choose({ command: event.target.value });
    else if (event.target.id === "observer") settings.observer = event.target.value;
    else if (event.target.name === "estimator") settings.estimators = read("estimator");
    else settings.others = read("other");
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    onRun.start({ command: settings.command, logs: [log.id, ...read("other")], estimators: read("estimator").join(","),
      observer: form.querySelector("#observer")?.value ?? "" });
  });
  return h("section", {}, h("h2", {}, "Run"), form);
}
