// The connection to the recorder. Reports wait here, up to a limit, until the recorder has received
// them, even across lost connections and page reloads. Each is recorded only once.
//
// A unit is one message: lines of text, or encoded frames. Units are numbered separately for each
// load of the page. The recorder acknowledges the last number that it has received, and skips units
// that arrive again.
import { measured } from "./cost.js";

/** Beyond this many waiting bytes, statistics and frames are left out. */
const softLimit = 8 << 20;
/** Beyond this many waiting bytes, everything is left out. */
const hardLimit = 12 << 20;
/** The maximum number of waiting bytes that are stored for the page after a reload. */
const storedLimit = 1 << 20;
/** The maximum number of bytes in the socket's buffer, which must be sent again if it breaks. */
const socketLimit = 1 << 20;
/** The maximum size of a batch of frames, in bytes; a larger one, with a huge frame, is dropped. */
const frameLimit = 2 << 20;
const batchMilliseconds = 100;
const batchBytes = 256 << 10;
/** An estimate of UTF-8 bytes per character; only text that is not English needs more. */
const bytesPerCharacter = 1.2;
const firstPause = 500;
const longestPause = 30_000;
const encoder = new TextEncoder();

export class Link {
  /**
   * @param {{
   *   open: (session: string) => Socket, storage: Storage | null, now: () => number,
   *   random: () => string, later: (work: () => void, milliseconds: number) => any,
   *   onNewSession: () => void, onStop: (reason: string) => void,
   * }} surroundings
   */
  constructor(surroundings) {
    this.surroundings = surroundings;
    /** @type {Socket | null} */
    this.socket = null;
    this.isReady = false;
    this.isStopped = false;
    /** Whether the recorder has received anything from this load. */
    this.isKnown = false;
    this.pause = firstPause;
    this.load = surroundings.random();
    this.number = 0;
    /** @type {string[]} */
    this.lines = [];
    this.lineBytes = 0;
    this.isBatchDue = false;
    /** @type {{ load: string, number: number, data: string | Uint8Array, bytes: number }[]} */
    this.units = [];
    this.unitBytes = 0;
    /** How many of the units have been passed to the socket. */
    this.sentCount = 0;
    this.missed = { samples: 0, frames: 0, events: 0 };
    /** @type {{ load: string, number: number, resolve: () => void }[]} */
    this.waiting = [];
    this.session = this.restored();
  }

  // MARK: Reports

  /** Whether statistics and frames must be left out. */
  get isFull() {
    return this.unitBytes + this.lineBytes > softLimit;
  }

  /**
   * Reports a call or an event.
   * @param {string} method
   * @param {string | null} connection
   * @param {any} value
   * @param {string | null} [correlation]
   */
  report(method, connection, value, correlation = null) {
    if (this.isStopped) return;
    if (this.unitBytes + this.lineBytes > hardLimit) {
      this.missed.events += 1;
      return;
    }
    this.reportMissed();
    this.add(JSON.stringify([method, connection, value, correlation, this.surroundings.now()]));
  }

  /** @param {string} line */
  add(line) {
    this.lines.push(line);
    this.lineBytes += line.length * bytesPerCharacter;
    if (this.lineBytes > batchBytes) this.batch();
    this.arrange();
  }

  /**
   * Sends encoded frames: the connection and the properties of each, and the bytes of all together.
   * @param {[string, EncodedFrame][]} frames
   * @param {Uint8Array} bytes
   */
  send(frames, bytes) {
    if (this.isStopped) return;
    if (this.isFull || bytes.length > frameLimit) {
      this.missed.frames += frames.length;
      return;
    }
    this.batch();
    this.number += 1;
    const head = encoder.encode(JSON.stringify([this.load, this.number, frames]));
    const data = new Uint8Array(2 + head.length + bytes.length);
    data[0] = head.length >> 8;
    data[1] = head.length & 255;
    data.set(head, 2);
    data.set(bytes, 2 + head.length);
    this.put(data, data.length);
    this.arrange();
  }

  /** Reports how much was left out, once there is room again. */
  reportMissed() {
    const { samples, frames, events } = this.missed;
    if (samples + frames + events === 0 || this.isFull) return;
    this.missed = { samples: 0, frames: 0, events: 0 };
    this.add(
      JSON.stringify(
        ["missed", null, { samples, frames, events }, null, this.surroundings.now()]));
  }

  /** Combines the waiting lines into a unit. */
  batch() {
    if (this.lines.length === 0) return;
    this.number += 1;
    const text = `${this.load} ${this.number}\n${this.lines.join("\n")}`;
    const bytes = this.lineBytes;
    this.lines = [];
    this.lineBytes = 0;
    this.put(text, bytes);
  }

  /** @param {string | Uint8Array} data @param {number} bytes */
  put(data, bytes) {
    this.units.push({ load: this.load, number: this.number, data, bytes });
    this.unitBytes += bytes;
  }

  arrange() {
    if (this.isBatchDue) return;
    this.isBatchDue = true;
    this.surroundings.later(() => measured(() => {
      this.isBatchDue = false;
      this.batch();
      this.flush();
    }), batchMilliseconds);
  }

  /** Sends as many units as the socket has room for. */
  flush() {
    while (this.isReady && this.socket && this.sentCount < this.units.length) {
      if (this.socket.bufferedAmount > socketLimit) return this.arrange();
      this.socket.send(this.units[this.sentCount].data);
      this.sentCount += 1;
    }
  }

  /** Resolves once the recorder has everything reported so far. */
  delivered() {
    this.batch();
    this.flush();
    if (this.units.length === 0) return Promise.resolve();
    return new Promise((resolve) => {
      const { load, number } = this;
      this.waiting.push({ load, number, resolve: () => resolve(undefined) });
    });
  }

  // MARK: Socket

  connect() {
    if (this.isStopped) return;
    /** @type {Socket} */
    let socket;
    try {
      socket = this.surroundings.open(this.session);
    } catch {
      return this.connectLater();
    }
    this.socket = socket;
    socket.binaryType = "arraybuffer";
    socket.onmessage = (event) => measured(() => this.receive(socket, String(event.data)));
    socket.onclose = () => measured(() => {
      if (this.socket !== socket) return;
      this.socket = null;
      this.isReady = false;
      this.connectLater();
    });
  }

  connectLater() {
    if (this.isStopped) return;
    this.surroundings.later(() => measured(() => this.connect()), this.pause);
    this.pause = Math.min(this.pause * 2, longestPause);
  }

  /** @param {Socket} socket @param {string} text */
  receive(socket, text) {
    if (this.socket !== socket) return;
    const message = JSON.parse(text);
    if (message.stop !== undefined) {
      this.stop(String(message.stop));
      return;
    }
    if (message.received) this.acknowledge(message.received);
    if (message.isNew === undefined) return;
    // The recorder's first message: resend everything that its `received` does not acknowledge.
    this.pause = firstPause;
    this.sentCount = 0;
    this.isReady = true;
    if (message.isNew && this.isKnown) this.beginAnew();
    this.isKnown = true;
    this.flush();
  }

  /**
   * Discards the units that the recorder has.
   * @param {Record<string, number>} received the last number of each load
   */
  acknowledge(received) {
    let isFromFront = 0;
    const before = this.units;
    this.units = before.filter((unit, place) => {
      const isThere = unit.number <= (received[unit.load] ?? 0);
      if (isThere && place < this.sentCount) isFromFront += 1;
      return !isThere;
    });
    this.sentCount = Math.max(0, this.sentCount - isFromFront);
    this.unitBytes = this.units.reduce((sum, unit) => sum + unit.bytes, 0);
    for (const each of this.waiting.splice(0)) {
      // An earlier load's reports have been sent again in this load, so nothing has to wait for
      // that load's units.
      if (each.load !== this.load || each.number <= (received[each.load] ?? 0)) each.resolve();
      else this.waiting.push(each);
    }
  }

  /**
   * Starts over after the recorder has lost this page's session: reports the current state again,
   * and discards statistics that build on earlier ones.
   */
  beginAnew() {
    const lines = [];
    for (const unit of this.units) {
      if (typeof unit.data !== "string") continue;
      for (const line of unit.data.split("\n").slice(1)) {
        if (!line.startsWith('["stats"')) lines.push(line);
      }
    }
    lines.push(...this.lines);
    this.load = this.surroundings.random();
    this.number = 0;
    this.units = [];
    this.unitBytes = 0;
    this.lines = [];
    this.lineBytes = 0;
    this.sentCount = 0;
    this.surroundings.onNewSession();
    for (const line of lines) this.add(line);
  }

  /** @param {string} reason */
  stop(reason) {
    this.isStopped = true;
    this.units = [];
    this.lines = [];
    this.unitBytes = this.lineBytes = 0;
    for (const each of this.waiting.splice(0)) each.resolve();
    this.socket?.close();
    this.surroundings.onStop(reason);
  }

  // MARK: Reloads

  /** Returns the session of the tab's previous page or a new one, and restores unsent units. */
  restored() {
    const fresh = this.surroundings.random();
    try {
      const storage = this.surroundings.storage;
      const text = storage?.getItem("retake");
      if (!storage || !text) return fresh;
      const stored = JSON.parse(text);
      if (typeof stored.session !== "string" || !/^[0-9a-f]{32}$/.test(stored.session)) {
        return fresh;
      }
      for (const { load, number, data } of stored.units ?? []) {
        this.units.push({ load, number, data, bytes: data.length * bytesPerCharacter });
        this.unitBytes += data.length * bytesPerCharacter;
      }
      return stored.session;
    } catch {
      return fresh;
    }
  }

  /** Stores the units that the recorder may not have, for the tab's next page. */
  store() {
    this.batch();
    this.flush();
    const units = [];
    let size = 0;
    for (const { load, number, data } of this.units) {
      if (typeof data !== "string") continue;
      size += data.length;
      if (size > storedLimit) break;
      units.push({ load, number, data });
    }
    try {
      this.surroundings.storage?.setItem(
        "retake", JSON.stringify({ session: this.session, units }));
    } catch {
      // Without storage the next page starts its own session.
    }
  }
}
