// The API functions whose calls are reported.
import { listen, observe } from "./natives.js";
import { plain, withoutCredentials } from "./values.js";

/** Describes the arguments of functions that need more than the plain values. */
/** @type {Record<string, (values: any[]) => any>} */
const described = {
  setConfiguration: ([configuration]) => withoutCredentials(configuration),
  addTrack: ([track, ...streams]) => ({ ...plain(track), streams: plain(streams) }),
  addTransceiver: ([of, init]) => ({ of: plain(of), init: plain(init) }),
  removeTrack: ([sender]) => plain(sender?.track ?? null),
  createDataChannel: ([label, init]) => ({ label: String(label), ...plain(init) }),
  addIceCandidate: ([candidate]) => plain(candidate),
  replaceTrack: ([track]) => plain(track),
};

/** @param {string} name @param {any[]} values */
function description(name, values) {
  return described[name]?.(values)
    ?? plain(values.find((each) => each !== null && typeof each === "object") ?? null);
}

/**
 * Observes the functions of connections and their parts.
 * @param {import("./link.js").Link} link
 * @param {import("./connections.js").Connections} connections
 */
export function observeConnections(link, connections) {
  let calls = 0;
  const { prototype } = globalThis.RTCPeerConnection;
  for (const name of [
    "createOffer", "createAnswer", "setLocalDescription", "setRemoteDescription",
    "addIceCandidate",
  ]) {
    observe(prototype, name, {
      begin(self, values) {
        calls += 1;
        const entry = { peer: connections.name(self), id: String(calls) };
        link.report(name, entry.peer, description(name, values), entry.id);
        return entry;
      },
      succeed({ peer, id }, result, self) {
        connections.look(self, peer);
        // If the browser created the description itself, it is known only now.
        const value = name === "setLocalDescription" ? self.localDescription : result;
        link.report(`${name}OnSuccess`, peer, plain(value), id);
      },
      fail({ peer, id }, why) {
        link.report(`${name}OnFailure`, peer, why, id);
      },
    });
  }
  for (const name of [
    "addTrack", "removeTrack", "addTransceiver", "addStream", "removeStream", "restartIce",
    "setConfiguration", "createDataChannel",
  ]) {
    observe(prototype, name, {
      begin(self, values) {
        calls += 1;
        const entry = { peer: connections.name(self), id: String(calls), values };
        link.report(name, entry.peer, description(name, values), entry.id);
        return entry;
      },
      succeed({ peer, id, values }, result, self) {
        link.report(`${name}OnSuccess`, peer, null, id);
        connections.look(self, peer);
        if (name === "createDataChannel") connections.listenToChannel(result, peer, false);
        if (values[0] && "kind" in Object(values[0])) connections.listenToTrack(values[0], peer);
      },
      fail({ peer, id }, why) {
        link.report(`${name}OnFailure`, peer, why, id);
      },
    });
  }
  observe(prototype, "close", {
    begin(self) {
      link.report("close", connections.close(self), null);
    },
  });
  observeParts(link, connections);
}

/**
 * @param {import("./link.js").Link} link
 * @param {import("./connections.js").Connections} connections
 */
function observeParts(link, connections) {
  const { RTCRtpSender, RTCRtpTransceiver } = globalThis;
  let calls = 0;
  for (const [object, name] of /** @type {[any, string][]} */ ([
    [RTCRtpSender?.prototype, "replaceTrack"], [RTCRtpSender?.prototype, "setParameters"],
    [RTCRtpTransceiver?.prototype, "setCodecPreferences"],
    [RTCRtpTransceiver?.prototype, "setHeaderExtensionsToNegotiate"],
    [RTCRtpTransceiver?.prototype, "stop"],
  ])) {
    observe(object, name, {
      begin(self, values) {
        const peer = connections.nameOfPart(self);
        if (peer === null) return undefined;
        calls += 1;
        const id = `part ${calls}`;
        link.report(name, peer, description(name, values), id);
        return { peer, id };
      },
      succeed({ peer, id }) {
        link.report(`${name}OnSuccess`, peer, null, id);
      },
      fail({ peer, id }, why) {
        link.report(`${name}OnFailure`, peer, why, id);
      },
    });
  }
}

/**
 * Observes how the page obtains cameras, microphones and screens, and what happens to their
 * tracks.
 * @param {import("./link.js").Link} link
 * @param {import("./connections.js").Connections} connections
 */
export function observeDevices(link, connections) {
  let calls = 0;
  const devices = globalThis.MediaDevices?.prototype;
  const observer = (/** @type {string} */ name) => ({
    begin(/** @type {any} */ _, /** @type {any[]} */ values) {
      calls += 1;
      const id = `device ${calls}`;
      link.report(name, null, plain(values[0] ?? null), id);
      return id;
    },
    succeed(/** @type {string} */ id, /** @type {any} */ result) {
      const tracks = result?.getTracks?.() ?? [];
      for (const track of tracks) connections.listenToTrack(track, null);
      link.report(`${name}OnSuccess`, null, tracks.length > 0
        ? { stream_id: result.id, tracks: plain(tracks) } : plain(result), id);
    },
    fail(/** @type {string} */ id, /** @type {string} */ why) {
      link.report(`${name}OnFailure`, null, why, id);
    },
  });
  for (const name of ["getUserMedia", "getDisplayMedia", "enumerateDevices"]) {
    observe(devices, name, observer(name));
  }
  const navigator = globalThis.Navigator?.prototype;
  for (const name of ["getUserMedia", "webkitGetUserMedia", "mozGetUserMedia"]) {
    observe(navigator, name, observer("getUserMedia"));
  }
  listen(globalThis.navigator?.mediaDevices, "devicechange", () => {
    link.report("devicechange", null, null);
  });
  const track = globalThis.MediaStreamTrack?.prototype;
  observe(track, "applyConstraints", {
    ...observer("applyConstraints"),
    begin(self, [constraints]) {
      calls += 1;
      const id = `device ${calls}`;
      link.report(
        "applyConstraints", null, { track: plain(self), constraints: plain(constraints) }, id);
      return id;
    },
  });
  observe(track, "stop", {
    begin(self) {
      if (self.readyState === "live") link.report("stop", null, plain(self));
    },
  });
}
