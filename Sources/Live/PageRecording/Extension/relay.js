// Opens the recorder script's socket outside the page, where the page's content policy does not
// apply. The recorder script runs together with the page's own scripts, and sends messages to this
// script.
"use strict";

window.addEventListener("retake-relay", (event) => {
  if (!(event instanceof MessageEvent) || event.ports.length !== 1) return;
  const [port] = event.ports;
  /** @type {WebSocket | null} */
  let socket = null;
  port.onmessage = ({ data }) => {
    if (data === null) return void socket?.close();
    if (socket) {
      if (socket.readyState === WebSocket.OPEN) socket.send(data);
      port.postMessage({ buffered: socket.bufferedAmount });
      return;
    }
    // The page chooses only the session: it cannot have a socket opened to another server.
    if (!/^[0-9a-f]{32}$/.test(data)) return;
    socket = new WebSocket(`${retakeConfiguration.address}&session=${data}`);
    socket.onopen = () => port.postMessage({ isOpen: true });
    socket.onmessage = (message) => port.postMessage({ text: String(message.data) });
    socket.onclose = () => port.postMessage({ isClosed: true });
  };
});
