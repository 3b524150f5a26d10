// A stream of server-sent events that is open while the page is visible; after an error it is opened again

// Calls for each message onMessage(event), and onOpen() and onLost() when the connection changes. address() is that of the next
// connection. onEnd is called where the server ends the stream by an event "end". Returns a function that opens it again
export function listenWhileVisible({ address, onMessage, onOpen, onLost, onEnd = () => {} }) {
  let source = null, timer = 0;

  function close() {
    clearTimeout(timer);
    source?.close();
    source = null;
  }

  function open() {
    close();
    source = new EventSource(address());
    source.onopen = onOpen;
    source.onmessage = onMessage;
    source.addEventListener("end", () => {
      close();
      onEnd();
      timer = setTimeout(open, 5000);
    });
    source.onerror = () => {
      onLost();
      close();
      timer = setTimeout(open, 2000);
    };
  }

  document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
  addEventListener("pagehide", close);
  addEventListener("pageshow", (event) => event.persisted && open());
  if (!document.hidden) open();
  return open;
}
