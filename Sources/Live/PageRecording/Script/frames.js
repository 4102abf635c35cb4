// Encoded frames that the page receives: from the streams that Chromium has, whose transforms let
// nothing through in a receiver (seen in Chromium 156), or else from a transform.
import { measured } from "./cost.js";

/**
 * What runs in the worker of a transform: each frame goes on as it is, and a copy comes here.
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
 * Hands over what receivers of connections get.
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
  /** Connections whose page wanted the streams for itself. */
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
    // A page that wants the streams for itself gets them, and they pass here.
    scope.RTCRtpReceiver.prototype.createEncodedStreams = function () {
      const streams = nativeStreams.call(this);
      const number = numbers.get(this);
      if (number === undefined) return streams;
      return { readable: tapped(streams.readable, number), writable: streams.writable };
    };
  }

  return {
    /**
     * The configuration with which a connection has to be made.
     * @param {any} configuration
     */
    configure(configuration) {
      if (!hasStreams || configuration?.encodedInsertableStreams) return configuration;
      return { ...configuration, encodedInsertableStreams: true };
    },

    /**
     * Follows the receiver of a transceiver; a connection that has encoded streams sends nothing
     * either unless somebody passes it on.
     * @param {RTCPeerConnection} connection
     * @param {RTCRtpTransceiver} transceiver
     * @param {boolean} isOfPage whether the page wanted the streams for itself
     */
    follow(connection, transceiver, isOfPage) {
      if (isOfPage) own.add(connection);
      try {
        if (hasStreams && !own.has(connection)) passOn(transceiver.sender);
        tap(connection, transceiver);
      } catch {
        // It was made without streams, before the recorder was there.
        own.add(connection);
      }
    },

    /**
     * Follows a connection no further.
     * @param {RTCPeerConnection} connection
     */
    forget(connection) {
      for (const [number, known] of receivers) {
        if (known.connection === connection) receivers.delete(number);
      }
    },

    /** Which way the frames come. */
    way: hasStreams ? "encoded streams" : hasTransforms ? "RTCRtpScriptTransform" : "none",
  };
}
