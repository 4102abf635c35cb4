package import RTP

/// Maps timestamps of a source's own clock to its track's media time.
///
/// Frames keep the intervals between their timestamps, so that a delayed frame is still shown at
/// the right time. Because the source's clock may differ from the local one, the mapping is
/// anchored at the first frame, and again after a jump or drift.
struct FrameClock {
  private var anchor: (timestamp: Int64, mediaTime: Int64)?
  private var last: Int64 = 0

  /// The maximum difference between media time and a frame's arrival, in 90 kHz ticks.
  private static let largestDistance: Int64 = 45_000

  /// Returns a frame's media time, which never decreases.
  /// - Parameters:
  ///   - timestamp: the frame's timestamp on the source's clock, in nanoseconds.
  ///   - arrival: the media time at which the frame arrived.
  mutating func mediaTime(of timestamp: Int64, arrival: Int64) -> Int64 {
    last = max(last, placed(timestamp, arrival))
    return last
  }

  private mutating func placed(_ timestamp: Int64, _ arrival: Int64) -> Int64 {
    if let anchor {
      let (elapsed, overflows) = timestamp.subtractingReportingOverflow(anchor.timestamp)
      if !overflows, elapsed >= 0 {
        let ticks = elapsed / 100_000 * 9 + elapsed % 100_000 * 9 / 100_000
        let (mediaTime, isTooFar) = anchor.mediaTime.addingReportingOverflow(ticks)
        if !isTooFar, (mediaTime - arrival).magnitude <= FrameClock.largestDistance.magnitude {
          return mediaTime
        }
      }
    }
    anchor = (timestamp, arrival)
    return arrival
  }
}

/// Drops frames evenly to stay below a frame rate.
package struct FrameThinner {
  /// The shortest average interval between frames, in 90 kHz ticks; nil for no limit.
  private var interval: Int64?
  /// The media time from which the next frame is admitted.
  private var next: Int64?

  package init() {}

  /// Sets the maximum frame rate; nil or 0 means no limit.
  package mutating func limit(to framesPerSecond: Double?) {
    next = nil
    interval = framesPerSecond.flatMap { rate in
      rate > 0 ? Int64(90_000 / max(rate, 0.01)) : nil
    }
  }

  /// Returns whether to send a frame; no media time may be below the one before.
  package mutating func admits(_ mediaTime: Int64) -> Bool {
    guard let interval else { return true }
    // Tolerate rounded frame times, and cameras whose frames are slightly early or late.
    let tolerance = min(interval / 8, 450)
    guard let next else {
      self.next = mediaTime + interval
      return true
    }
    guard mediaTime + tolerance >= next else { return false }
    // After a late frame, others may follow faster, but only for a while, so that a pause causes
    // no burst.
    self.next = max(next + interval, mediaTime + interval - max(interval, 9_000))
    return true
  }
}

// MARK: - TemporalPattern

/// Assigns video frames to temporal layers, and determines which layers they refer to.
///
/// A frame refers only to the base layer, except that every second frame in the third layer also
/// refers to the middle layer.
package struct TemporalPattern: Hashable, Sendable {
  /// How to encode a frame for its place in the pattern.
  package struct Step: Hashable, Sendable {
    /// The frame's layer; 0 is the base layer.
    package var layer: UInt8
    /// Whether the frame also refers to the middle layer's last frame.
    package var refersToMiddle: Bool
    /// Whether later frames refer to the frame.
    package var isKept: Bool
  }

  /// The supported numbers of temporal layers.
  package static let counts = 1...3

  private let steps: [Step]
  private var place = 0

  /// Creates the pattern for several layers.
  ///
  /// - Parameter count: the number of layers, 2 or 3; each layer above the base doubles the frame
  ///   rate.
  package init(count: Int) {
    let base = Step(layer: 0, refersToMiddle: false, isKept: true)
    let top = UInt8(max(1, count - 1))
    let free = Step(layer: top, refersToMiddle: false, isKept: false)
    steps =
      count < 3
      ? [base, free]
      : [
        base, free, Step(layer: 1, refersToMiddle: false, isKept: true),
        Step(layer: top, refersToMiddle: true, isKept: false),
      ]
  }

  /// Returns the next frame's step; a key frame is on the base layer.
  package func next(isKey: Bool) -> Step { isKey ? steps[0] : steps[place] }

  /// Advances the pattern after an encoded frame; returns the frame's layer.
  package mutating func record(_ step: Step, isKey: Bool) -> TemporalLayer {
    // The pattern restarts with every key frame, including key frames that the encoder inserts.
    place = isKey ? 1 : (place + 1) % steps.count
    if isKey { return TemporalLayer(id: 0, isSync: true, isReference: true) }
    return TemporalLayer(
      id: step.layer, isSync: step.layer > 0 && !step.refersToMiddle, isReference: step.isKept)
  }
}

// MARK: - VideoScaler

/// Scales I420 frames in integer arithmetic: down by averaging pixels, up by repeating the nearest
/// pixel.
package enum VideoScaler {
  /// Returns the size with both sides divided by a factor, rounded down; at least 1.
  static func size(width: Int, height: Int, dividedBy factor: Double) -> (width: Int, height: Int) {
    guard factor > 1 else { return (width, height) }
    return (
      max(1, Int(Double(width) / factor)), max(1, Int(Double(height) / factor))
    )
  }

  /// Scales a frame; the result is blank if the frame is blank or the size has no pixels.
  package static func scaled(_ videoFrame: I420Buffer, width: Int, height: Int) -> I420Buffer {
    guard width != videoFrame.width || height != videoFrame.height else { return videoFrame }
    guard !videoFrame.samples.isEmpty, videoFrame.width > 0, videoFrame.height > 0, width > 0,
      height > 0
    else { return I420Buffer(width: width, height: height, samples: []) }
    let pixels = videoFrame.samples
    var samples: [UInt8] = []
    samples.reserveCapacity(I420Buffer.byteCount(width: width, height: height))
    let luma = videoFrame.width * videoFrame.height
    let (columns, rows) = ((videoFrame.width + 1) / 2, (videoFrame.height + 1) / 2)
    let planes = [
      (0, videoFrame.width, videoFrame.height, width, height),
      (luma, columns, rows, (width + 1) / 2, (height + 1) / 2),
      (luma + columns * rows, columns, rows, (width + 1) / 2, (height + 1) / 2),
    ]
    for (start, columns, rows, width, height) in planes {
      append(
        pixels.span, start, columns, rows, width, height, to: &samples)
    }
    return I420Buffer(width: width, height: height, samples: samples)
  }

  private static func append(
    _ planes: borrowing Span<UInt8>, _ start: Int, _ columns: Int, _ rows: Int, _ width: Int,
    _ height: Int, to samples: inout [UInt8]
  ) {
    for y in 0..<height {
      let top = y * rows / height
      let bottom = max(top + 1, (y + 1) * rows / height)
      for x in 0..<width {
        let left = x * columns / width
        let right = max(left + 1, (x + 1) * columns / width)
        var sum = 0
        for row in top..<bottom {
          for column in left..<right { sum += Int(planes[start + row * columns + column]) }
        }
        let count = (bottom - top) * (right - left)
        samples.append(UInt8(truncatingIfNeeded: (sum + count / 2) / count))
      }
    }
  }
}
