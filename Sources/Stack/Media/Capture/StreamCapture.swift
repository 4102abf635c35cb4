package import RTP
package import Wire

/// The sending side of a track whose video frames come encoded.
///
/// Video frames are passed on as of the instant at which they come, from the first one on that a
/// decoder can begin with; some are left out where the path carries less than they take.
package struct StreamCapture {
  /// What is said of a video frame.
  package enum Verdict: Equatable, Sendable {
    case send(EncodedFrame)
    /// Nobody could decode it yet, or it is none.
    case useless
    /// The path carries too little for it.
    case tooMuch
  }

  /// The codec of the video frames.
  package let codec: CodecName
  /// What came so far.
  package private(set) var counters: VideoCaptureCounters
  /// The instant of media time 0.
  package let origin: Instant

  private var hasBegun = false
  private var thinner = StreamThinner()

  /// Creates the capture of a track that begins now.
  /// - Parameters:
  ///   - origin: the instant of media time 0 when this capture continues where another one of the
  ///     same stream ended; nil for now.
  ///   - counters: what an earlier capture of the same source counted.
  package init(
    of codec: CodecName, at now: Instant, origin: Instant? = nil,
    counters: VideoCaptureCounters = VideoCaptureCounters()
  ) {
    self.codec = codec
    self.origin = origin ?? now
    self.counters = counters
  }

  /// Creates a frame of a video frame that is to be sent.
  /// - Parameter limit: what the path carries, in bits per second; nil if that is not known to be
  ///   too little.
  package mutating func take(_ stream: [UInt8], limit: UInt64? = nil, at now: Instant) -> Verdict {
    let mediaTime = RTPClock.ticks(from: origin, to: now)
    let look = codec.codec?.look?(stream.span.bytes) ?? FrameLook()
    counters.frames &+= 1
    counters.captureTimes.note(mediaTime)
    if let size = look.size { (counters.width, counters.height) = size }
    guard look.hasFrame, look.isKey || hasBegun else {
      counters.framesSkipped &+= 1
      return .useless
    }
    hasBegun = true
    let isAdmitted = thinner.admits(
      byteCount: stream.count, isKey: look.isKey, isReference: look.isReference, limit: limit,
      at: now)
    guard isAdmitted else {
      counters.framesSkipped &+= 1
      return .tooMuch
    }
    return .send(
      EncodedFrame(
        kind: .video, codec: codec, mediaTime: UInt32(truncatingIfNeeded: mediaTime),
        bytes: stream, isKey: look.isKey, width: UInt16(clamping: counters.width),
        height: UInt16(clamping: counters.height)))
  }
}

/// The clock of video frames in RTP: 90 kHz.
package enum RTPClock {
  /// The ticks between two instants, at least 0.
  package static func ticks(from origin: Instant, to now: Instant) -> Int64 {
    let elapsed = max(0, (now - origin).nanoseconds)
    return elapsed / 100_000 * 9 + elapsed % 100_000 * 9 / 100_000
  }
}
