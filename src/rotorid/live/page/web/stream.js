// The messages of the session, while the page is seen: a hidden page asks for nothing, and for what it missed when it
// is looked at again

function bytes(text) {
  const raw = atob(text), array = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) array[i] = raw.charCodeAt(i);
  return array;
}

function unpacked(text) {
  const message = JSON.parse(text);
  message.t = new Float64Array(bytes(message.t).buffer);
  for (const name of ["value", "std", "least", "greatest"]) {
    if (message[name]) message[name] = new Float32Array(bytes(message[name]).buffer);
  }
  message.health = bytes(message.health);
  message.gap = bytes(message.gap);
  return message;
}

// told(message) for each message; state("open" | "lost" | "ended") when that changes
export function listen(told, state) {
  let source = null, seen = "", again = 0;

  function close() {
    clearTimeout(again);
    source?.close();
    source = null;
  }

  function open() {
    close();
    source = new EventSource(`stream?after=${encodeURIComponent(seen)}`);
    source.onopen = () => state("open");
    source.onmessage = (event) => {
      const message = unpacked(event.data);
      seen = message.id;
      told(message);
    };
    source.addEventListener("end", () => {
      close();
      state("ended");
      again = setTimeout(open, 5000);
    });
    source.onerror = () => {
      state("lost");
      close();
      again = setTimeout(open, 2000);
    };
  }

  document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
  addEventListener("pagehide", close);
  addEventListener("pageshow", (event) => event.persisted && open());
  if (!document.hidden) open();
}
