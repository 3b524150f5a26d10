// Requests to the server, and the stream of its state

import { listenWhileVisible } from "./event_stream.js";

async function send(method, path, body, type = "application/json") {
  let response;
  try {
    response = await fetch(path, { method, body, headers: body === undefined ? {} : { "Content-Type": type } });
  } catch {
    throw new Error("rotorid does not answer; is it still running?");
  }
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) throw new Error(answer.error ?? `rotorid answered ${response.status}`);
  return answer;
}

export const post = (path, data) => send("POST", path, JSON.stringify(data));
export const remove = (path) => send("DELETE", path);

// Sends a file; onProgress(share) is called with the part that is sent, 0 to 1
export function upload(file, onProgress) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("POST", `files?name=${encodeURIComponent(file.name)}`);
    request.setRequestHeader("Content-Type", "application/octet-stream");
    request.upload.onprogress = (event) => onProgress(event.loaded / Math.max(event.total, 1));
    request.onerror = () => reject(new Error("the file could not be sent"));
    request.onload = () => {
      let answer = {};
      try {
        answer = JSON.parse(request.responseText);
      } catch { /* the status says enough */ }
      if (request.status === 200) resolve(answer);
      else reject(new Error(answer.error ?? `rotorid answered ${request.status}`));
    };
    request.send(file);
  });
}

// Calls onState(state) for each state while the page is visible, and onConnection(isOpen)
export function listen(onState, onConnection) {
  listenWhileVisible({
    address: () => "stream",
    onMessage: (event) => onState(JSON.parse(event.data)),
    onOpen: () => onConnection(true),
    onLost: () => onConnection(false),
  });
}
