// The commands that were started: queue, progress, result

import { h } from "./dom.js";
import { seconds, size } from "./text.js";

const STATES = {
  queued: ["", "waiting"], running: ["", "running"], done: ["good", "done"], failed: ["bad", "failed"],
  cancelled: ["caution", "cancelled"], interrupted: ["caution", "interrupted: rotorid app was stopped"],
};

function stateText(job) {
  const text = STATES[job.state][1];
  if (job.state === "queued") return job.position > 1 ? `waiting, ${job.position - 1} before it` : "next in the queue";
  if (job.state === "running") return job.total ? `${job.stage} ${job.done}/${job.total}` : job.stage || text;
  return job.seconds && job.state === "done" ? `${text} in ${seconds(job.seconds)}` : text;
}

export function jobPanel(job, names, view, act) {
  const isActive = job.state === "queued" || job.state === "running", base = `../${view}/results/${encodeURIComponent(job.id)}`;
  const tone = job.state === "done" ? (job.verdict.tone ?? "good") : STATES[job.state][0];
  const report = job.files["report.html"] !== undefined && job.state === "done";
  const bar = h("progress", job.state === "running" && job.total ? { max: job.total, value: job.done } : { max: 1 });
  const files = Object.entries(job.files).map(([name, bytes]) =>
    h("li", {}, h("a", { href: `${base}/${encodeURIComponent(name)}?download`, download: name }, name), ` ${size(bytes)}`));
  return h(
    "article.panel.job", { data: { state: job.state } },
    h("h3", {}, job.command, h("span", {}, names.join(", "))),
    h(tone ? `p.tone.${tone}` : "p.tone", {}, stateText(job)),
    job.state === "running" ? bar : null,
    job.verdict.headline ? h("p.headline", {}, job.verdict.headline) : null,
    job.error ? h("p.error", {}, job.error) : null,
    h("p.actions", {},
      report ? h("a.button.main", { href: `${base}/report.html`, target: "_blank", rel: "noopener" }, "Open the report") : null,
      isActive
        ? h("button", { type: "button", onclick: () => act("cancel", job.id) }, "Cancel")
        : h("button", { type: "button", onclick: () => act("remove", job.id) }, "Remove")),
    files.length && job.state === "done" ? h("ul.files", {}, files) : null,
    job.output ? h("details", { data: { name: "output" } }, h("summary", {}, "Output"), h("pre", {}, job.output)) : null,
    h("details", { data: { name: "command" } }, h("summary", {}, "Command"), h("pre", {}, `rotorid ${job.arguments}`)),
  );
}
