package import RTP
package import Wire

/// The sending side of a track whose pictures come encoded: H.264 as a byte stream.
///
/// Pictures are passed on as of the instant at which they come, from the first one on that a
/// decoder can begin with.
package struct StreamCapture {
  /// What came so far.
  package private(set) var counters: VideoCaptureCounters
  /// The instant of media time 0.
  package let origin: Instant

  private var hasBegun = false
  private var parameters: H264SequenceParameters?

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

  /// Makes a frame of a picture; nil for one that nobody could decode yet, or that is none.
  package mutating func take(_ stream: [UInt8], at now: Instant) -> EncodedFrame? {
    let mediaTime = RTPClock.ticks(from: origin, to: now)
    let isKey = read(stream)
    counters.frames &+= 1
    counters.captureTimes.note(mediaTime)
    if let parameters {
      counters.width = parameters.width
      counters.height = parameters.height
    }
    guard let isKey, isKey || hasBegun else {
      counters.framesSkipped &+= 1
      return nil
    }
    hasBegun = true
    return EncodedFrame(
      kind: .video, codec: .h264, mediaTime: UInt32(truncatingIfNeeded: mediaTime), bytes: stream,
      isKey: isKey, width: UInt16(clamping: counters.width),
      height: UInt16(clamping: counters.height))
  }

  /// Looks at the units: nil when there is no slice, else whether a decoder can begin with them.
  private mutating func read(_ stream: [UInt8]) -> Bool? {
    var hasSlices = false
    var isKey = false
    let bytes = stream.span.bytes
    for unit in H264Payload.units(of: bytes) {
      switch H264UnitType(rawValue: bytes.byte(at: unit.lowerBound)) {
      case .slice: hasSlices = true
      case .instantRefreshSlice: (hasSlices, isKey) = (true, true)
      case .sequenceParameters:
        parameters = (try? H264SequenceParameters(parsing: bytes.extracting(unit))) ?? parameters
      default: break
      }
    }
    return hasSlices ? isKey : nil
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
