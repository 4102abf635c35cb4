// Converts arguments and results of WebRTC calls to JSON, without media.

const deepest = 8;
const longestList = 1000;

/**
 * Returns a value as it is recorded; the browser's objects are reduced to what identifies them.
 * @param {any} value
 * @param {number} [depth]
 * @returns {any}
 */
export function plain(value, depth = 0) {
  if (value === null || value === undefined) return null;
  if (typeof value === "bigint") return String(value);
  if (typeof value === "function" || typeof value === "symbol") return null;
  if (typeof value !== "object") return value;
  if (depth > deepest) return null;
  const known = described(value);
  if (known !== undefined) return known;
  if (Array.isArray(value)) {
    return value.slice(0, longestList).map((each) => plain(each, depth + 1));
  }
  /** @type {Record<string, any>} */
  const copy = {};
  for (const name in value) {
    const member = plain(value[name], depth + 1);
    if (member !== null) copy[name] = member;
  }
  return copy;
}

/**
 * Describes one of the browser's objects; undefined for other values.
 * @param {any} value
 */
function described(value) {
  switch (Object.prototype.toString.call(value)) {
    case "[object MediaStreamTrack]":
    case "[object CanvasCaptureMediaStreamTrack]":
    case "[object MediaStreamTrackGenerator]":
      return { kind: value.kind, id: value.id, label: value.label };
    case "[object MediaStream]":
      return value.id;
    case "[object RTCSessionDescription]":
      return { type: value.type, sdp: value.sdp };
    case "[object RTCIceCandidate]":
      return value.toJSON();
    case "[object RTCCertificate]":
    case "[object ArrayBuffer]":
      return "";
    default:
      return ArrayBuffer.isView(value) ? "" : undefined;
  }
}

/**
 * Returns an error's text as the page sees it.
 * @param {any} error
 */
export function reason(error) {
  if (error && typeof error === "object" && "name" in error) {
    return `${error.name}: ${error.message}`;
  }
  return String(error);
}

/**
 * Returns a connection's configuration without its servers' credentials.
 * @param {any} configuration
 */
export function withoutCredentials(configuration) {
  const copy = plain(configuration) ?? {};
  for (const server of Array.isArray(copy.iceServers) ? copy.iceServers : []) {
    if (server && typeof server === "object" && "credential" in server) {
      server.credential = "removed";
    }
  }
  return copy;
}
