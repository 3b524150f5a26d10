// The figures of the tutorials, in the colours of the page. Each .figure has a plotly figure as JSON.
"use strict";

// Lines that are nearly black would vanish on a dark page: they become as light as they were dark.
const lightened = (json) => json.replace(/rgba\((\d+), ?(\d+), ?(\d+), ?([\d.]+)\)/g, (colour, red, green, blue, alpha) =>
  Math.max(red, green, blue) < 80 ? `rgba(${255 - red},${255 - green},${255 - blue},${alpha})` : colour);

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
