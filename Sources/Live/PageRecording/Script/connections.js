// The page's connections, and what they report.
import { measured } from "./cost.js";
import { listen } from "./natives.js";
import { Sampler } from "./sampling.js";
import { plain, withoutCredentials } from "./values.js";

const states = [
  ["signalingstatechange", "signalingState"],
  ["iceconnectionstatechange", "iceConnectionState"],
  ["connectionstatechange", "connectionState"],
  ["icegatheringstatechange", "iceGatheringState"],
];

export class Connections {
  /**
   * @param {import("./link.js").Link} link
   * @param {{
   *   interval: number, getStats: () => Promise<any>,
   *   later: (work: () => void, milliseconds: number) => any,
   *   follow: (connection: RTCPeerConnection, transceiver: RTCRtpTransceiver) => void,
   *   forget: (connection: RTCPeerConnection) => void,
   * }} surroundings
   */
  constructor(link, surroundings) {
    this.link = link;
    this.surroundings = surroundings;
    this.count = 0;
    /** @type {WeakMap<RTCPeerConnection, string>} */
    this.names = new WeakMap();
    /** @type {WeakMap<object, string>} */
    this.parts = new WeakMap();
    /** Connections that are not closed. */
    /** @type {Map<string, { connection: RTCPeerConnection, sampler: Sampler, made: any }>} */
    this.open = new Map();
    /** @type {WeakSet<EventTarget>} */
    this.heard = new WeakSet();
  }

  /**
   * Returns a connection's name; a connection older than the recorder gets its name now.
   * @param {RTCPeerConnection} connection
   */
  name(connection) {
    return this.names.get(connection) ?? this.add(connection, {}, true);
  }

  /**
   * Returns the name of the connection that a sender, receiver or transceiver belongs to.
   * @param {any} part
   */
  nameOfPart(part) {
    const known = this.parts.get(part);
    if (known) return known;
    for (const [name, { connection }] of this.open) {
      for (const transceiver of connection.getTransceivers()) {
        this.parts.set(transceiver, name);
        this.parts.set(transceiver.sender, name);
        this.parts.set(transceiver.receiver, name);
      }
    }
    return this.parts.get(part) ?? null;
  }

  /**
   * Starts observing a connection.
   * @param {RTCPeerConnection} connection
   * @param {any} configuration
   * @param {boolean} isLate whether it is older than the recorder
   */
  add(connection, configuration, isLate) {
    const name = `PC_${this.count}`;
    this.count += 1;
    this.names.set(connection, name);
    const made = withoutCredentials(configuration);
    if (isLate) made.attached = "later than it was made";
    const sampler = new Sampler({
      read: () => this.surroundings.getStats.call(connection),
      report: (value) => this.link.report("stats", name, value),
      isFull: () => this.link.isFull,
      missed: () => { this.link.missed.samples += 1; },
      later: this.surroundings.later,
      isConnecting: () => ["new", "checking", "connecting"].includes(
        connection.iceConnectionState) || connection.connectionState === "connecting",
      interval: this.surroundings.interval,
    });
    this.open.set(name, { connection, sampler, made });
    this.announce(name);
    this.listenTo(connection, name, sampler);
    if (isLate) this.look(connection, name);
    sampler.begin();
    return name;
  }

  /** Reports a connection's current state, for a recorder that knows nothing about it. */
  /** @param {string} name */
  announce(name) {
    const known = this.open.get(name);
    if (!known) return;
    const { connection, made } = known;
    this.link.report("create", name, made);
    for (const [event, state] of states) {
      const value = /** @type {any} */ (connection)[state];
      if (value !== "new" && value !== "stable") this.link.report(event, name, value);
    }
    for (const [method, description] of /** @type {[string, any][]} */ ([
      ["localdescription", connection.localDescription],
      ["remotedescription", connection.remoteDescription],
    ])) {
      if (description) this.link.report(method, name, plain(description));
    }
  }

  /** Reports the current state of all open connections again. */
  announceAll() {
    for (const [name, { sampler }] of this.open) {
      this.announce(name);
      sampler.forget();
      sampler.sample();
    }
  }

  /** @param {RTCPeerConnection} connection @param {string} name @param {Sampler} sampler */
  listenTo(connection, name, sampler) {
    for (const [event, state] of states) {
      listen(connection, event, () => {
        this.link.report(event, name, /** @type {any} */ (connection)[state]);
        this.look(connection, name);
        sampler.sample();
      });
    }
    listen(connection, "icecandidate", ({ candidate }) => {
      const value = candidate ? plain(candidate) : null;
      if (value && candidate.url) value.url = candidate.url;
      if (value && candidate.relayProtocol) value.relayProtocol = candidate.relayProtocol;
      this.link.report("icecandidate", name, value);
    });
    listen(connection, "icecandidateerror", (event) => {
      const { address, port, url, errorCode, errorText } = event;
      this.link.report(
        "icecandidateerror", name, plain({ address, port, url, errorCode, errorText }));
    });
    listen(connection, "negotiationneeded", () => {
      this.link.report("negotiationneeded", name, null);
    });
    listen(connection, "track", ({ track, streams, transceiver }) => {
      this.surroundings.follow(connection, transceiver);
      this.link.report(
        "track", name, { ...plain(track), mid: transceiver.mid, streams: plain(streams) });
      this.listenToTrack(track, name);
    });
    listen(connection, "datachannel", ({ channel }) => this.listenToChannel(channel, name, true));
  }

  /**
   * @param {MediaStreamTrack} track
   * @param {string | null} name
   */
  listenToTrack(track, name) {
    if (this.heard.has(track)) return;
    this.heard.add(track);
    for (const event of ["mute", "unmute", "ended"]) {
      listen(track, event, () => this.link.report(`track.${event}`, name, plain(track)));
    }
  }

  /** @param {any} channel @param {string} name @param {boolean} isRemote */
  listenToChannel(channel, name, isRemote) {
    if (this.heard.has(channel)) return;
    this.heard.add(channel);
    const { label, protocol, ordered } = channel;
    if (isRemote) this.link.report("datachannel", name, { label, protocol, ordered, id: channel.id });
    for (const event of ["open", "closing", "close", "error"]) {
      listen(channel, event, ({ error }) => {
        this.link.report(
          `datachannel.${event}`, name,
          plain({ label, id: channel.id, error: error ? String(error.message) : undefined }));
        this.open.get(name)?.sampler.sample();
      });
    }
  }

  /**
   * Returns the transports that a connection currently uses.
   * @param {RTCPeerConnection} connection
   */
  transports(connection) {
    /** @type {Set<RTCDtlsTransport>} */
    const found = new Set();
    if (connection.sctp?.transport) found.add(connection.sctp.transport);
    for (const { sender, receiver } of connection.getTransceivers()) {
      if (sender.transport) found.add(sender.transport);
      if (receiver.transport) found.add(receiver.transport);
    }
    return found;
  }

  /** Looks for new transceivers and transports. */
  /** @param {RTCPeerConnection} connection @param {string} name */
  look(connection, name) {
    for (const transceiver of connection.getTransceivers()) {
      this.surroundings.follow(connection, transceiver);
    }
    for (const transport of this.transports(connection)) {
      if (this.heard.has(transport)) continue;
      this.heard.add(transport);
      listen(transport, "statechange", () => {
        // Bundling closes transports that are no longer needed; their state no longer matters.
        if (!this.transports(connection).has(transport)) return;
        this.link.report("dtlsstatechange", name, transport.state);
        this.open.get(name)?.sampler.sample();
      });
      const ice = /** @type {any} */ (transport.iceTransport);
      listen(ice, "selectedcandidatepairchange", () => {
        const pair = ice.getSelectedCandidatePair?.();
        this.link.report("selectedcandidatepairchange", name, plain(pair && {
          local: pair.local?.candidate, remote: pair.remote?.candidate,
        }));
      });
    }
  }

  /** Handles the call with which the page closes a connection. */
  /** @param {RTCPeerConnection} connection */
  close(connection) {
    const name = this.name(connection);
    this.open.get(name)?.sampler.end();
    this.open.delete(name);
    this.surroundings.forget(connection);
    return name;
  }

  /** Resolves once the statistics of all connections have been reported. */
  sampled() {
    return Promise.all([...this.open.values()].map(({ sampler }) => sampler.fresh()));
  }

  /** Looks for connections that closed by themselves. */
  sweep() {
    measured(() => {
      for (const [name, { connection, sampler }] of this.open) {
        if (connection.signalingState !== "closed") continue;
        sampler.isOver = true;
        this.open.delete(name);
      }
    });
  }
}
