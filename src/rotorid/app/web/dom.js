// Makes elements: h("p.caption", { title: "..." }, "text", element). Keys that begin with "on" are listeners

export function h(name, properties = {}, ...children) {
  const [tag, ...classes] = name.split(".");
  const element = document.createElement(tag);
  if (classes.length) element.className = classes.join(" ");
  for (const [key, value] of Object.entries(properties)) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key === "data") Object.assign(element.dataset, value);
    else if (key in element) element[key] = value;
    else element.setAttribute(key, value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== ""));
  return element;
}

// Replaces the children of an element where their key has changed; keeps the others, with their focus and scroll position
export function update(parent, entries) {
  const before = new Map([...parent.children].map((child) => [child.dataset.key, child]));
  const after = entries.map(({ key, signature, make }) => {
    const text = JSON.stringify(signature), kept = before.get(key);
    if (kept && kept.dataset.signature === text) return kept;
    const element = make();
    Object.assign(element.dataset, { key, signature: text });
    if (kept) {
      const id = kept.contains(document.activeElement) ? document.activeElement.id : "";
      for (const details of kept.querySelectorAll("details[open]")) {
        const same = element.querySelector(`details[data-name="${details.dataset.name}"]`);
        if (same) same.open = true;
      }
      kept.replaceWith(element);
      if (id) document.getElementById(id)?.focus();
    }
    return element;
  });
  for (const child of [...parent.children]) if (!after.includes(child)) child.remove();
  after.forEach((element, k) => {
    if (parent.children[k] !== element) parent.insertBefore(element, parent.children[k] ?? null);
  });
}
