// Receives the messages of the session while the page is visible. A hidden page closes the stream, and requests the missed rows
// when it is visible again

import { listenWhileVisible } from "./event_stream.js";

function bytes(text) {
  const raw = atob(text), array = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) array[i] = raw.charCodeAt(i);
  return array;
}

function decode(text) {
  const message = JSON.parse(text);
  message.t = new Float64Array(bytes(message.t).buffer);
  for (const name of ["value", "std", "minimum", "maximum"]) {
    if (message[name]) message[name] = new Float32Array(bytes(message[name]).buffer);
  }
  message.health = bytes(message.health);
  message.gap = bytes(message.gap);
  return message;
}

// Calls onMessage(message) for each message, and onState("open" | "lost" | "ended") when the connection changes. Returns a function
// that requests the messages of another vehicle
export function listen(onMessage, onState) {
  let lastId = "", vehicle = "";
  const reopen = listenWhileVisible({
    address: () => `stream?after=${encodeURIComponent(lastId)}&vehicle=${encodeURIComponent(vehicle)}`,
    onMessage: (event) => {
      const message = decode(event.data);
      lastId = message.id;
      onMessage(message);
    },
    onOpen: () => onState("open"),
    onLost: () => onState("lost"),
    onEnd: () => onState("ended"),
  });
  return (name) => {
    vehicle = name;
    lastId = "";
    reopen();
  };
}
