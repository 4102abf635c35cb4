// A socket that the extension's relay script opens for this script, because the page's content
// policy does not apply to the relay script.
import { measured } from "./cost.js";

/** How long the other script may take to answer, in milliseconds. */
const patience = 3000;

/**
 * Opens a socket through the extension.
 * @param {string} session
 * @param {(work: () => void, milliseconds: number) => any} later
 * @returns {Socket}
 */
export function relayed(session, later) {
  const { port1: port, port2 } = new MessageChannel();
  let isAnswered = false;
  /** @type {Socket} */
  const socket = {
    binaryType: "arraybuffer",
    readyState: 0,
    bufferedAmount: 0,
    onopen: null,
    onmessage: null,
    onclose: null,
    send(data) {
      socket.bufferedAmount += data.length;
      port.postMessage(data);
    },
    close() {
      port.postMessage(null);
    },
  };
  const end = () => {
    if (socket.readyState === 3) return;
    socket.readyState = 3;
    socket.onclose?.();
  };
  port.onmessage = ({ data }) => measured(() => {
    isAnswered = true;
    if (data.isOpen) {
      socket.readyState = 1;
      socket.onopen?.();
    } else if (data.isClosed) {
      end();
    } else if (data.text !== undefined) {
      socket.onmessage?.({ data: data.text });
    } else {
      socket.bufferedAmount = data.buffered;
    }
  });
  globalThis.dispatchEvent(new MessageEvent("retake-relay", { ports: [port2] }));
  port.postMessage(session);
  later(() => measured(() => {
    if (!isAnswered) end();
  }), patience);
  return socket;
}
