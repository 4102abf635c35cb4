package import RTP
package import Wire

/// The sending side of a track whose pictures come encoded: H.264 as a byte stream.
///
/// Pictures are passed on as of the instant at which they come, from the first one on that a
/// decoder can begin with; some are left out where the path carries less than they take.
package struct StreamCapture {
  /// What is said of a picture.
  package enum Verdict: Equatable, Sendable {
    case send(EncodedFrame)
    /// Nobody could decode it yet, or it is none.
    case useless
    /// The path carries too little for it.
    case tooMuch
  }

  /// What came so far.
  package private(set) var counters: VideoCaptureCounters
  /// The instant of media time 0.
  package let origin: Instant

  private var hasBegun = false
  private var parameters: H264SequenceParameters?
  private var thinner = StreamThinner()

  /// What the units of a picture tell.
  private struct Look {
    var hasSlices = false
    var isKey = false
    /// Whether other pictures may refer to it (`nal_ref_idc`, H.264 section 7.4.1).
    var isReference = false
  }

  /// Creates the capture of a track that begins now.
  ///
  /// - Parameters:
  ///   - origin: the instant of media time 0 when this capture goes on where another one of the
  ///     same stream ended; nil for now.
  ///   - counters: what an earlier capture of the same source counted.
  package init(
    at now: Instant, origin: Instant? = nil,
    counters: VideoCaptureCounters = VideoCaptureCounters()
  ) {
    self.origin = origin ?? now
    self.counters = counters
  }

  /// Makes a frame of a picture that is to be sent.
  ///
  /// - Parameter limit: what the path carries, in bits per second; nil where that is not known to
  ///   be too little.
  package mutating func take(_ stream: [UInt8], limit: UInt64? = nil, at now: Instant) -> Verdict {
    let mediaTime = RTPClock.ticks(from: origin, to: now)
    let look = read(stream)
    counters.frames &+= 1
    counters.captureTimes.note(mediaTime)
    if let parameters {
      counters.width = parameters.width
      counters.height = parameters.height
    }
    guard look.hasSlices, look.isKey || hasBegun else {
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
        kind: .video, codec: .h264, mediaTime: UInt32(truncatingIfNeeded: mediaTime),
        bytes: stream, isKey: look.isKey, width: UInt16(clamping: counters.width),
        height: UInt16(clamping: counters.height)))
  }

  /// Looks at the units of a picture, and keeps the parameters that come with it.
  private mutating func read(_ stream: [UInt8]) -> Look {
    var look = Look()
    let bytes = stream.span.bytes
    for unit in H264Payload.units(of: bytes) {
      let header = bytes.byte(at: unit.lowerBound)
      switch H264UnitType(rawValue: header) {
      case .slice:
        look.hasSlices = true
        if header & 0x60 != 0 { look.isReference = true }
      case .instantRefreshSlice: look = Look(hasSlices: true, isKey: true, isReference: true)
      case .sequenceParameters:
        parameters = (try? H264SequenceParameters(parsing: bytes.extracting(unit))) ?? parameters
      default: break
      }
    }
    return look
  }
}

/// The clock of pictures in RTP: 90 kHz.
package enum RTPClock {
  /// The ticks between two instants, at least 0.
  package static func ticks(from origin: Instant, to now: Instant) -> Int64 {
    let elapsed = max(0, (now - origin).nanoseconds)
    return elapsed / 100_000 * 9 + elapsed % 100_000 * 9 / 100_000
  }
}
