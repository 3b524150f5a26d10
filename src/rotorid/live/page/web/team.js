// The table of the vehicles of a link, a row each; a click selects the vehicle that the charts show

import { fixed, label, plusMinus, since, unitText } from "./text.js";

const COLUMNS = 5;

export class Team {
  // section: with the table. onSelect(name): another vehicle is to be shown
  constructor(section, onSelect) {
    this.section = section;
    this.onSelect = onSelect;
    this.rows = new Map(); // name -> { row, button, cells, state }
    this.selected = "";
  }

  // vehicles: of a message. styleOf(health): class of its text. stale: s without a snapshot from which a row is outdated
  show(vehicles, styleOf, stale) {
    this.section.hidden = !vehicles.length;
    if (vehicles.length && !this.selected) this.select(vehicles[0].name);
    for (const vehicle of vehicles) {
      const { row, cells, state } = this.rows.get(vehicle.name) ?? this.add(vehicle.name);
      const { quantity, value, std, unit, link, health, idle } = vehicle, [received, lost, rate] = link;
      const isOutdated = idle > stale, share = received + lost > 0 ? (100 * lost) / (received + lost) : 0;
      const known = value !== null && std !== null;
      cells[1].textContent = value === null ? "–" : `${label(quantity)} ${plusMinus(value, std ?? Infinity)} ${known ? unitText(unit) : ""}`;
      state.textContent = isOutdated ? `no message for ${since(idle)}` : label(health);
      state.className = `tone ${isOutdated ? "bad" : styleOf(health)}`;
      cells[3].textContent = rate === null ? "–" : fixed(rate, 0);
      cells[4].textContent = `${fixed(share, 1)} %`;
      row.classList.toggle("stale", isOutdated);
    }
  }

  add(name) {
    const row = document.createElement("tr"), button = document.createElement("button"), cells = [];
    for (let k = 0; k < COLUMNS; k++) {
      cells.push(document.createElement(k ? "td" : "th"));
      row.append(cells[k]);
    }
    cells[0].scope = "row";
    button.type = "button";
    button.textContent = name;
    button.setAttribute("aria-pressed", String(name === this.selected));
    button.addEventListener("click", () => this.select(name));
    cells[0].append(button);
    const state = document.createElement("span");
    cells[2].append(state);
    const entry = { row, button, cells, state };
    this.rows.set(name, entry);
    const later = [...this.rows.keys()].filter((other) => other.localeCompare(name, "en", { numeric: true }) > 0);
    later.sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
    this.section.querySelector("tbody").insertBefore(row, later.length ? this.rows.get(later[0]).row : null);
    return entry;
  }

  select(name) {
    if (name === this.selected) return;
    this.selected = name;
    for (const [other, { button }] of this.rows) button.setAttribute("aria-pressed", String(other === name));
    this.onSelect(name);
  }
}
