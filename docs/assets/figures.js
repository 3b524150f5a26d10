// The figures of the tutorials, in the colours of the page. Each .figure has a plotly figure as JSON.
"use strict";

// On a dark page, colours that are nearly black become as light as they were dark, and other dark ones are mixed with white.
const COLOUR = /#([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})\b|rgba?\((\d+), ?(\d+), ?(\d+)(?:, ?([\d.]+))?\)/gi;
const linear = (channel) => (channel / 255) ** 2.2;

function lightened(json) {
  return json.replace(COLOUR, (colour, ...groups) => {
    const hex = groups.slice(0, 3).map((digits) => parseInt(digits, 16));
    const rgb = colour.startsWith("#") ? hex : groups.slice(3, 6).map(Number);
    const luminance = 0.21 * linear(rgb[0]) + 0.72 * linear(rgb[1]) + 0.07 * linear(rgb[2]);
    if (luminance > 0.2) return colour;
    const isBlack = Math.max(...rgb) < 80;
    const light = rgb.map((channel) => Math.round(isBlack ? 255 - channel : 0.6 * channel + 0.4 * 255));
    return `rgba(${light.join(",")},${groups[6] ?? 1})`;
  });
}

const inTwoLines = (label) => label.replace(": ", ":<br>");

// On a phone: legends above their axes, and long labels in two lines.
function narrow(data, layout) {
  const axes = Object.keys(layout).filter((key) => /^[xy]axis/.test(key)).map((key) => layout[key]);
  for (const axis of axes) {
    if (axis.title?.text?.length > 30) axis.title.text = axis.title.text.replace(" (", "<br>(");
    if (axis.type !== "category") continue;
    axis.categoryarray = axis.categoryarray.map(inTwoLines);
    layout.height += 14 * axis.categoryarray.length;
  }
  if (axes.some((axis) => axis.type === "category")) {
    for (const trace of data) if (typeof trace.y?.[0] === "string") trace.y = trace.y.map(inTwoLines);
    for (const note of layout.annotations ?? []) if (note.xref === "paper" && note.x === 0) Object.assign(note, {x: 1, xanchor: "right"});
  }
  const legends = Object.keys(layout).filter((key) => /^legend\d/.test(key));
  for (const key of legends.length ? ["legend", ...legends] : []) {
    const [low, high] = layout[`yaxis${key.slice(6)}`].domain;
    layout[`yaxis${key.slice(6)}`].domain = [low, low + 0.65 * (high - low)];
    Object.assign(layout[key], {orientation: "h", x: 0, y: low + 0.65 * (high - low), yanchor: "bottom"});
    layout.height += 40;
  }
}

function draw(figure) {
  const style = getComputedStyle(figure);
  const isDark = document.body.getAttribute("data-md-color-scheme") === "slate";
  const json = figure.querySelector("script").textContent;
  const {data, layout} = JSON.parse(isDark ? lightened(json) : json);
  const axis = {gridcolor: "rgba(128, 128, 128, 0.25)", zerolinecolor: "rgba(128, 128, 128, 0.5)", linecolor: style.color};
  for (const key of ["xaxis", "yaxis", ...Object.keys(layout)]) {
    if (/^[xy]axis/.test(key)) layout[key] = {automargin: true, ...layout[key], ...axis};
  }
  for (const note of layout.annotations ?? []) note.font = {...note.font, color: style.color};
  if (figure.clientWidth < 480) narrow(data, layout);
  const margin = {l: 60, r: 20, t: 30, b: 50, ...layout.margin};
  const legend = {orientation: "h", x: 0, xanchor: "left", y: 0, yref: "container", yanchor: "bottom"};
  const hasOwn = Object.keys(layout).some((key) => /^legend\d/.test(key));
  const drawn = {
    ...layout, legend: hasOwn ? layout.legend : legend, autosize: true, paper_bgcolor: "rgba(0, 0, 0, 0)", plot_bgcolor: "rgba(0, 0, 0, 0)",
    margin: {...margin, b: margin.b + 40}, height: (layout.height ?? 360) + 40,
    font: {...layout.font, family: style.fontFamily, color: style.color},
  };
  Plotly.react(figure.querySelector("div") ?? figure.appendChild(document.createElement("div")), data, drawn,
    {responsive: true, displayModeBar: false});
}

const drawAll = () => document.querySelectorAll(".figure").forEach(draw);
drawAll();
new MutationObserver(drawAll).observe(document.body, {attributeFilter: ["data-md-color-scheme"]});
