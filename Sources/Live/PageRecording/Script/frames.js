// Copies of the encoded frames that the page receives: from encoded streams in Chromium, whose
// receiver transforms let nothing through (seen in Chromium 156), and elsewhere from a transform.
import { measured } from "./cost.js";

/**
 * Runs in a transform's worker: passes each frame on unchanged, and posts a copy.
 * @param {any} scope
 */
function relay(scope) {
  scope.onrtctransform = (/** @type {any} */ event) => {
    const { readable, writable, options } = event.transformer;
    const copying = new TransformStream({
      transform(frame, controller) {
        try {
          const metadata = frame.getMetadata();
          const bytes = frame.data.slice(0);
          scope.postMessage({
            receiver: options.receiver, bytes, type: frame.type,
            rtpTime: metadata.rtpTimestamp ?? frame.timestamp, ssrc: metadata.synchronizationSource,
            payloadType: metadata.payloadType, mimeType: metadata.mimeType,
            width: metadata.width, height: metadata.height,
          }, [bytes]);
        } catch {
          // A frame without a copy is still played.
        }
        controller.enqueue(frame);
      },
    });
    readable.pipeThrough(copying).pipeTo(writable).catch(() => {});
  };
}

/**
 * Passes the frames that connections receive to `use`.
 * @param {(connection: RTCPeerConnection, frame: EncodedFrame) => void} use
 */
export function frames(use) {
  /** @type {Map<number, { connection: RTCPeerConnection, transceiver: RTCRtpTransceiver }>} */
  const receivers = new Map();
  const scope = /** @type {any} */ (globalThis);
  const hasStreams = typeof scope.RTCRtpReceiver?.prototype.createEncodedStreams === "function";
  const hasTransforms = !hasStreams && typeof scope.RTCRtpScriptTransform === "function";
  const nativeStreams = scope.RTCRtpReceiver?.prototype.createEncodedStreams;
  const nativeSenderStreams = scope.RTCRtpSender?.prototype.createEncodedStreams;
  /** @type {WeakSet<RTCRtpSender>} */
  const senders = new WeakSet();
  /** Connections whose page asked for the streams itself. */
  const own = new WeakSet();
  /** @type {Worker | null} */
  let worker = null;
  let count = 0;

  function workerOfAll() {
    if (worker) return worker;
    const address = URL.createObjectURL(
      new Blob([`(${relay})(self)`], { type: "text/javascript" }));
    worker = new Worker(address);
    worker.onmessage = ({ data }) => measured(() => receive(data));
    return worker;
  }

  /** @param {any} copy */
  function receive(copy) {
    const known = receivers.get(copy.receiver);
    if (!known) return;
    const { receiver, mid } = known.transceiver;
    let mimeType = copy.mimeType;
    if (!mimeType) {
      mimeType = receiver.getParameters().codecs
        .find((codec) => codec.payloadType === copy.payloadType)?.mimeType;
    }
    const isAudio = receiver.track.kind === "audio";
    use(known.connection, {
      mid: mid ?? "", kind: receiver.track.kind, bytes: copy.bytes, ssrc: copy.ssrc ?? 0,
      rtpTime: copy.rtpTime ?? 0, key: isAudio || copy.type === "key", mimeType: mimeType ?? "",
      width: copy.width ?? 0, height: copy.height ?? 0,
    });
  }

  /** @param {ReadableStream} readable @param {number} number */
  function tapped(readable, number) {
    return readable.pipeThrough(new TransformStream({
      transform(frame, controller) {
        measured(() => {
          const metadata = frame.getMetadata();
          receive({
            receiver: number, bytes: frame.data.slice(0), type: frame.type,
            rtpTime: metadata.rtpTimestamp ?? frame.timestamp, ssrc: metadata.synchronizationSource,
            payloadType: metadata.payloadType, mimeType: metadata.mimeType,
            width: metadata.width, height: metadata.height,
          });
        });
        controller.enqueue(frame);
      },
    }));
  }

  /** @param {RTCRtpSender} sender */
  function passOn(sender) {
    if (senders.has(sender)) return;
    senders.add(sender);
    const { readable, writable } = nativeSenderStreams.call(sender);
    readable.pipeTo(writable).catch(() => {});
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
      tapped(readable, number).pipeTo(writable).catch(() => {});
    } else if (hasTransforms && !receiver.transform) {
      receiver.transform = new scope.RTCRtpScriptTransform(workerOfAll(), { receiver: number });
    }
  }

  /** @type {WeakMap<RTCRtpReceiver, number>} */
  const numbers = new WeakMap();
  if (hasStreams) {
    // A page that asks for the streams itself gets them, by way of this function.
    scope.RTCRtpReceiver.prototype.createEncodedStreams = function () {
      const streams = nativeStreams.call(this);
      const number = numbers.get(this);
      if (number === undefined) return streams;
      return { readable: tapped(streams.readable, number), writable: streams.writable };
    };
  }

  return {
    /**
     * Returns the configuration with which to create a connection.
     * @param {any} configuration
     */
    configure(configuration) {
      if (!hasStreams || configuration?.encodedInsertableStreams) return configuration;
      return { ...configuration, encodedInsertableStreams: true };
    },

    /**
     * Starts observing a transceiver's receiver. A connection with encoded streams sends nothing
     * either, unless its frames are passed on.
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

    /** How frames are copied. */
    way: hasStreams ? "encoded streams" : hasTransforms ? "RTCRtpScriptTransform" : "none",
  };
}
