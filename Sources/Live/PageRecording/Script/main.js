// Records a page's use of WebRTC. It starts before the page's own scripts and runs until the page
// is gone.
import { failures, measured, spent } from "./cost.js";
import { observeConnections, observeDevices } from "./calls.js";
import { Connections } from "./connections.js";
import { frames } from "./frames.js";
import { Link } from "./link.js";
import { listen } from "./natives.js";
import { relayed } from "./relayed.js";
import { plain } from "./values.js";

/** The interval between reports of the time that the recorder uses, in milliseconds. */
const costInterval = 10_000;

/** Returns 128 random bits in hexadecimal. */
function random() {
  return [...crypto.getRandomValues(new Uint8Array(16))]
    .map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Returns the page's own storage; null if it is not available. */
function storage() {
  try {
    return globalThis.sessionStorage;
  } catch {
    return null;
  }
}

/** Describes the page. */
function page() {
  const { hardwareConcurrency, userAgent } = navigator;
  const { deviceMemory, userAgentData } = /** @type {any} */ (navigator);
  const { origin, pathname } = location;
  return plain({
    userAgent, userAgentData, hardwareConcurrency, deviceMemory, url: origin + pathname,
    way: recorder.way,
  });
}

/** Wraps the constructor, so that connections are observed from their creation. */
/** @param {Connections} connections @param {ReturnType<typeof frames> | null} media */
function wrapConstructor(connections, media) {
  const native = globalThis.RTCPeerConnection;
  const wrapped = new Proxy(native, {
    construct(target, values, newTarget) {
      const given = measured(() => media?.configure(values[0])) ?? values[0];
      const connection = Reflect.construct(
        target, given === undefined ? values : [given, ...values.slice(1)],
        newTarget === wrapped ? target : newTarget);
      measured(() => {
        if (values[0]?.encodedInsertableStreams) ofPage.add(connection);
        connections.add(connection, values[0], false);
      });
      return connection;
    },
  });
  for (const name of ["RTCPeerConnection", "webkitRTCPeerConnection", "mozRTCPeerConnection"]) {
    if (!(name in globalThis)) continue;
    Object.defineProperty(
      globalThis, name, { value: wrapped, writable: true, enumerable: false, configurable: true });
  }
  native.prototype.constructor = wrapped;
}

/** Connections for which the page itself asks for encoded frames. */
/** @type {WeakSet<RTCPeerConnection>} */
const ofPage = new WeakSet();

/** The interface for the page, or for a developer at its console. */
const recorder = {
  /** How encoded frames are copied. */
  way: "none",
  session: "",
  /** The time that the recorder has used, in milliseconds. */
  cost: spent,
  /** The recorder's own errors. */
  failures,
  /** Why the recorder has stopped; null while it records. */
  /** @type {string | null} */
  stopped: null,
  /** Resolves once the recorder has everything so far, with fresh statistics. */
  async flush() {},
  /** Records an application's own event. */
  /** @param {string} name @param {any} [detail] */
  mark(name, detail) {
    void name;
    void detail;
  },
};

function begin() {
  const later = globalThis.setTimeout.bind(globalThis);
  const SocketOfPage = globalThis.WebSocket;
  const link = new Link({
    open: (session) => retakeConfiguration.relay ? relayed(session, later)
      : new SocketOfPage(`${retakeConfiguration.address}&session=${session}`),
    storage: storage(),
    now: () => performance.timeOrigin + performance.now(),
    random,
    later,
    onNewSession: () => {
      link.report("page", null, page());
      connections.announceAll();
    },
    onStop: (reason) => { recorder.stopped = reason; },
  });
  const media = retakeConfiguration.media ? frames((list, bytes) => {
    link.send(list.map(({ connection, facts }) => [connections.name(connection), facts]), bytes);
  }, later) : null;
  const connections = new Connections(link, {
    interval: retakeConfiguration.interval,
    getStats: globalThis.RTCPeerConnection.prototype.getStats,
    later,
    follow: (connection, transceiver) =>
      media?.follow(connection, transceiver, ofPage.has(connection)),
    forget: (connection) => media?.forget(connection),
  });
  recorder.way = media?.way ?? "none";
  recorder.session = link.session;
  recorder.flush = async () => {
    await media?.flush();
    await connections.sampled();
    await link.delivered();
  };
  recorder.mark = (name, detail) => {
    measured(() => link.report(`:${name}`, null, plain(detail)));
  };
  link.report("page", null, page());
  wrapConstructor(connections, media);
  observeConnections(link, connections);
  observeDevices(link, connections);
  listen(globalThis, "pagehide", () => link.store());
  reportCost(link, connections, media, later);
  link.store();
  link.connect();
}

/**
 * Reports periodically how much time the recorder has used.
 * @param {Link} link
 * @param {Connections} connections
 * @param {ReturnType<typeof frames> | null} media
 * @param {(work: () => void, milliseconds: number) => any} later
 */
function reportCost(link, connections, media, later) {
  const totals = () => ({
    cost: spent(), time: performance.now(), worker: media?.spentByWorker() ?? 0,
  });
  let before = totals();
  const again = () => later(() => measured(() => {
    connections.sweep();
    const now = totals();
    if (connections.open.size > 0) {
      link.report("scriptcost", null, {
        milliseconds: now.cost - before.cost, seconds: (now.time - before.time) / 1000,
        failures: failures.count, worker: media ? now.worker - before.worker : undefined,
      });
    }
    before = now;
    again();
  }), costInterval);
  again();
}

if (typeof globalThis.RTCPeerConnection === "function" && !("retakeRecorder" in globalThis)) {
  Object.defineProperty(globalThis, "retakeRecorder", { value: recorder, configurable: true });
  measured(begin);
}
