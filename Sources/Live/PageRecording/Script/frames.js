// Copies the encoded frames that the page receives. In Chromium they come from encoded streams,
// because its receiver transforms let nothing through (seen in Chromium 156); elsewhere they come
// from a transform.
//
// A worker copies the frames, and the page's thread only forwards batches of copies, ten times a
// second. If the page's content policy forbids the worker, the page's thread copies the frames
// itself.
import { charge, measured } from "./cost.js";

/** How long a worker may take to begin, in milliseconds. */
const patience = 2000;

/**
 * Copies frames in transit, and posts the copies in batches.
 *
 * The function is self-contained, because a worker runs it from its text.
 * @param {(batch: FrameBatch, transferred: ArrayBuffer[]) => void} post
 * @param {(work: () => void, milliseconds: number) => any} wait
 */
export function copier(post, wait) {
  const batchMilliseconds = 100;
  const batchBytes = 256 << 10;
  const batchFrames = 128;
  /** @type {CopiedFrame[]} */
  let copies = [];
  /** @type {ArrayBuffer[]} */
  let parts = [];
  let size = 0;
  let isDue = false;
  let spent = 0;

  function flush() {
    if (copies.length === 0) return;
    const bytes = new Uint8Array(size);
    let place = 0;
    for (const part of parts) {
      bytes.set(new Uint8Array(part), place);
      place += part.byteLength;
    }
    const batch = { copies, bytes, spent };
    [copies, parts, size, spent] = [[], [], 0, 0];
    post(batch, [bytes.buffer]);
  }

  /** @param {any} frame @param {number} receiver */
  function copy(frame, receiver) {
    const { data } = frame;
    const metadata = frame.getMetadata();
    if (size + data.byteLength > batchBytes || copies.length === batchFrames) flush();
    parts.push(data.slice(0));
    size += data.byteLength;
    copies.push({
      receiver, size: data.byteLength, type: frame.type,
      time: performance.timeOrigin + performance.now(),
      rtpTime: metadata.rtpTimestamp ?? frame.timestamp, ssrc: metadata.synchronizationSource,
      payloadType: metadata.payloadType, mimeType: metadata.mimeType,
      width: metadata.width, height: metadata.height,
    });
    if (isDue) return;
    isDue = true;
    wait(() => {
      isDue = false;
      flush();
    }, batchMilliseconds);
  }

  return {
    flush,
    /** @param {number} receiver */
    stage: (receiver) => new TransformStream({
      transform(frame, controller) {
        const begun = performance.now();
        try {
          copy(frame, receiver);
        } catch {
          // If a frame cannot be copied, it is still played.
        }
        spent += performance.now() - begun;
        controller.enqueue(frame);
      },
    }),
  };
}

/**
 * Runs in the worker: copies the frames of the streams that are transferred to it.
 * @param {any} scope
 * @param {typeof copier} make
 */
function work(scope, make) {
  const { flush, stage } = make(
    (batch, transferred) => scope.postMessage(batch, transferred),
    (wanted, milliseconds) => scope.setTimeout(wanted, milliseconds));
  scope.onrtctransform = (/** @type {any} */ { transformer }) => {
    const { readable, writable, options } = transformer;
    readable.pipeThrough(stage(options.receiver)).pipeTo(writable).catch(() => {});
  };
  scope.onmessage = (/** @type {any} */ { data }) => {
    if (data === "flush") {
      flush();
      scope.postMessage("flushed");
      return;
    }
    const { readable, writable, receiver } = data;
    const source = receiver === null ? readable : readable.pipeThrough(stage(receiver));
    source.pipeTo(writable).catch(() => {});
  };
  scope.postMessage("ready");
}

/** Starts the worker; returns null if it cannot be created. */
function begin() {
  try {
    const address = URL.createObjectURL(
      new Blob([`(${work})(self, ${copier})`], { type: "text/javascript" }));
    return new Worker(address);
  } catch {
    return null;
  }
}

/**
 * Passes the frames that connections receive to `use`, several at a time with their bytes.
 * @param {(frames: { connection: RTCPeerConnection, facts: EncodedFrame }[], bytes: Uint8Array)
 *   => void} use
 * @param {(work: () => void, milliseconds: number) => any} later
 */
export function frames(use, later) {
  /** @type {Map<number, { connection: RTCPeerConnection, transceiver: RTCRtpTransceiver }>} */
  const receivers = new Map();
  const scope = /** @type {any} */ (globalThis);
  const hasStreams = typeof scope.RTCRtpReceiver?.prototype.createEncodedStreams === "function";
  const hasTransforms = !hasStreams && typeof scope.RTCRtpScriptTransform === "function";
  const nativeStreams = scope.RTCRtpReceiver?.prototype.createEncodedStreams;
  const nativeSenderStreams = scope.RTCRtpSender?.prototype.createEncodedStreams;
  /** @type {WeakSet<RTCRtpSender>} */
  const senders = new WeakSet();
  /** Connections for which the page itself requested the encoded streams. */
  const own = new WeakSet();
  let count = 0;
  /** The time that the worker has used, in milliseconds. */
  let spentByWorker = 0;
  /** @type {(() => void)[]} */
  let flushed = [];

  const worker = hasStreams || hasTransforms ? begin() : null;
  let state = worker ? "beginning" : "absent";
  /** Work that waits until it is known whether there is a worker. */
  /** @type {(() => void)[]} */
  let waiting = [];
  const here = copier((batch) => {
    charge(batch.spent);
    measured(() => receive(batch));
  }, later);

  /** @param {string} now */
  function settle(now) {
    // Ignore later failures: a worker that has started already has the streams.
    if (state !== "beginning") return;
    state = now;
    for (const each of waiting.splice(0)) each();
  }
  if (worker) {
    worker.onerror = (event) => {
      event.preventDefault();
      measured(() => settle("absent"));
    };
    worker.onmessage = ({ data }) => measured(() => {
      if (data === "ready") {
        settle("ready");
      } else if (data === "flushed") {
        for (const each of flushed.splice(0)) each();
      } else {
        spentByWorker += data.spent;
        receive(data);
      }
    });
    later(() => measured(() => settle("absent")), patience);
  }

  /** @param {() => void} wanted */
  function whenSettled(wanted) {
    if (state === "beginning") waiting.push(wanted);
    else wanted();
  }

  /** Properties shared by all frames of one receiver with the same payload type. */
  /** @type {Map<string, { mid: string, kind: string, mimeType: string }>} */
  const known = new Map();

  /** @param {CopiedFrame} copy @param {RTCRtpTransceiver} transceiver */
  function shared(copy, { receiver, mid }) {
    const key = `${copy.receiver} ${copy.payloadType} ${copy.mimeType}`;
    const found = known.get(key);
    if (found?.mid) return found;
    const mimeType = copy.mimeType || receiver.getParameters().codecs
      .find((codec) => codec.payloadType === copy.payloadType)?.mimeType;
    const made = { mid: mid ?? "", kind: receiver.track.kind, mimeType: mimeType ?? "" };
    if (mimeType) known.set(key, made);
    return made;
  }

  /** @param {FrameBatch} batch */
  function receive({ copies, bytes }) {
    const list = [];
    let isWhole = true;
    for (const copy of copies) {
      const owner = receivers.get(copy.receiver);
      if (!owner) {
        isWhole = false;
        continue;
      }
      const { mid, kind, mimeType } = shared(copy, owner.transceiver);
      list.push({
        connection: owner.connection, facts: {
          mid, kind, mimeType, size: copy.size, time: copy.time, ssrc: copy.ssrc ?? 0,
          rtpTime: copy.rtpTime ?? 0, key: kind === "audio" || copy.type === "key",
          width: copy.width ?? 0, height: copy.height ?? 0,
        },
      });
    }
    if (list.length > 0) use(list, isWhole ? bytes : withoutForgotten(copies, bytes));
  }

  /** Returns the bytes of the frames whose connections are still observed. */
  /** @param {CopiedFrame[]} copies @param {Uint8Array} bytes */
  function withoutForgotten(copies, bytes) {
    let place = 0;
    let end = 0;
    for (const { receiver, size } of copies) {
      if (receivers.has(receiver)) {
        bytes.copyWithin(end, place, place + size);
        end += size;
      }
      place += size;
    }
    return bytes.subarray(0, end);
  }

  /**
   * Passes a stream's frames from one end to the other, and copies them.
   * @param {ReadableStream} readable
   * @param {WritableStream} writable
   * @param {number | null} receiver null for a stream whose frames are only passed on
   */
  function pipe(readable, writable, receiver) {
    whenSettled(() => {
      if (state === "ready" && worker) {
        try {
          worker.postMessage(
            { readable, writable, receiver }, /** @type {any[]} */ ([readable, writable]));
          return;
        } catch {
          // This browser cannot transfer streams to a worker, so this thread copies the frames.
        }
      }
      const source = receiver === null ? readable : readable.pipeThrough(here.stage(receiver));
      source.pipeTo(writable).catch(() => {});
    });
  }

  /** @param {RTCRtpSender} sender */
  function passOn(sender) {
    if (senders.has(sender)) return;
    senders.add(sender);
    const { readable, writable } = nativeSenderStreams.call(sender);
    pipe(readable, writable, null);
  }

  /** @param {RTCPeerConnection} connection @param {RTCRtpTransceiver} transceiver */
  function tap(connection, transceiver) {
    const receiver = /** @type {any} */ (transceiver.receiver);
    if (numbers.has(receiver)) return;
    count += 1;
    const number = count;
    numbers.set(receiver, number);
    receivers.set(number, { connection, transceiver });
    if (own.has(connection)) return;
    if (hasStreams) {
      const { readable, writable } = nativeStreams.call(receiver);
      pipe(readable, writable, number);
    } else if (hasTransforms) {
      whenSettled(() => {
        if (receiver.transform || state !== "ready") return;
        receiver.transform = new scope.RTCRtpScriptTransform(worker, { receiver: number });
      });
    }
  }

  /** @type {WeakMap<RTCRtpReceiver, number>} */
  const numbers = new WeakMap();
  if (hasStreams) {
    // A page that requests the encoded streams itself gets them from this replacement, which copies
    // the frames in transit.
    scope.RTCRtpReceiver.prototype.createEncodedStreams = function () {
      const streams = nativeStreams.call(this);
      const number = numbers.get(this);
      if (number === undefined) return streams;
      return {
        readable: streams.readable.pipeThrough(here.stage(number)), writable: streams.writable,
      };
    };
  }

  return {
    /**
     * Returns a connection's configuration with encoded streams enabled, if the browser has them.
     * @param {any} configuration
     */
    configure(configuration) {
      if (!hasStreams || configuration?.encodedInsertableStreams) return configuration;
      return { ...configuration, encodedInsertableStreams: true };
    },

    /**
     * Starts observing a transceiver's receiver, and passes on the frames of its sender: a
     * connection with encoded streams sends nothing unless something pipes them.
     * @param {RTCPeerConnection} connection
     * @param {RTCRtpTransceiver} transceiver
     * @param {boolean} isOfPage whether the page asked for the streams itself
     */
    follow(connection, transceiver, isOfPage) {
      if (isOfPage) own.add(connection);
      try {
        if (hasStreams && !own.has(connection)) passOn(transceiver.sender);
        tap(connection, transceiver);
      } catch {
        // The connection is older than the recorder and has no streams.
        own.add(connection);
      }
    },

    /**
     * Stops observing a connection.
     * @param {RTCPeerConnection} connection
     */
    forget(connection) {
      for (const [number, known] of receivers) {
        if (known.connection === connection) receivers.delete(number);
      }
    },

    /** Resolves once all frames copied so far have been passed on. */
    async flush() {
      here.flush();
      if (state !== "ready" || !worker) return;
      await new Promise((resolve) => {
        flushed.push(() => resolve(undefined));
        worker.postMessage("flush");
      });
    },

    /** Returns the time that the worker has used, in milliseconds. */
    spentByWorker: () => spentByWorker,

    /** How frames are copied. */
    way: hasStreams ? "encoded streams" : hasTransforms ? "RTCRtpScriptTransform" : "none",
  };
}
