package import RTP
package import Wire

/// The sending side of a track whose video arrives encoded.
///
/// Frames are passed on when they arrive, starting with the first key frame; some are dropped if
/// the path carries less than they need.
package struct StreamCapture {
  /// Whether a frame is sent, and if not, why.
  package enum Verdict: Equatable, Sendable {
    case send(EncodedFrame)
    /// The bytes are not a frame, or cannot be decoded yet.
    case useless
    /// The path cannot carry the frame.
    case tooMuch
  }

  package let codec: CodecName
  package private(set) var counters: VideoCaptureCounters
  /// The instant of media time 0.
  package let origin: Instant

  private var hasBegun = false
  private var thinner = StreamThinner()

  /// Creates the capture of a track that starts now.
  /// - Parameters:
  ///   - origin: the instant of media time 0 if this capture continues another one's stream; if
  ///     nil, `now`.
  ///   - counters: the counters of an earlier capture of the same source.
  package init(
    of codec: CodecName, at now: Instant, origin: Instant? = nil,
    counters: VideoCaptureCounters = VideoCaptureCounters()
  ) {
    self.codec = codec
    self.origin = origin ?? now
    self.counters = counters
  }

  /// Decides whether to send a frame, and creates the frame to send.
  /// - Parameter limit: the path's capacity in bits per second; nil if it is not known to be too
  ///   low.
  package mutating func accept(_ stream: [UInt8], limit: UInt64? = nil, at now: Instant) -> Verdict
  {
    let mediaTime = RTPClock.ticks(from: origin, to: now)
    let look = codec.codec?.look?(stream.span.bytes) ?? FrameLook()
    counters.frames &+= 1
    counters.captureTimes.record(mediaTime)
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

/// The RTP clock for video: 90 kHz.
package enum RTPClock {
  /// Returns the ticks between two instants, at least 0.
  package static func ticks(from origin: Instant, to now: Instant) -> Int64 {
    let elapsed = max(0, (now - origin).nanoseconds)
    return elapsed / 100_000 * 9 + elapsed % 100_000 * 9 / 100_000
  }
}

// MARK: - StreamThinner

/// Drops frames that arrived encoded when the path carries less than they need.
///
/// Frames that arrive encoded cannot be made smaller, and sending all of them would fill queues and
/// delay the audio. Bits sent beyond the path's rate are a debt that the path pays off. From half
/// of the maximum debt on, frames that no other frame refers to are dropped. Beyond the maximum,
/// all frames are dropped until a key frame arrives with the debt at half of the maximum or less.
struct StreamThinner {
  /// How far sending may get ahead of the path, as the time that the path needs to catch up.
  ///
  /// A key frame is many times larger than other frames, so a shorter time would interrupt files
  /// whose mean rate fits.
  static let debtMaximum = Interval.seconds(2)

  /// Bits sent that the path has not carried yet.
  private var debt = 0.0
  private var paidAt: Instant?
  /// Whether referenced frames were dropped.
  private(set) var waitsForKey = false

  /// Returns whether to send a frame.
  /// - Parameters:
  ///   - isReference: whether other frames may refer to the frame.
  ///   - limit: the path's capacity in bits per second; nil if it is not known to be too low, in
  ///     which case everything is sent.
  mutating func admits(
    byteCount: Int, isKey: Bool, isReference: Bool, limit: UInt64?, at now: Instant
  ) -> Bool {
    guard let limit else {
      // If frames were dropped before, sending resumes only with a key frame, even without a limit.
      debt = 0
      paidAt = nil
      if isKey { waitsForKey = false }
      return !waitsForKey
    }
    let rate = Double(limit)
    let largest = rate * StreamThinner.debtMaximum.seconds
    let elapsed = (now - (paidAt ?? now)).seconds
    paidAt = now
    debt = max(0, debt - max(0, elapsed) * rate)
    if isKey {
      waitsForKey = debt > (waitsForKey ? largest / 2 : largest)
    } else if !waitsForKey, isReference {
      waitsForKey = debt > largest
    } else if !waitsForKey, debt > largest / 2 {
      return false
    }
    if waitsForKey { return false }
    debt += Double(byteCount) * 8
    return true
  }
}
