/// Counters of a video source for W3C media-source and outbound-rtp statistics.
package struct VideoCaptureCounters: Hashable, Sendable {
  /// Frames received or generated, including those dropped later.
  package var frames: UInt64 = 0
  /// Frames not encoded or sent: the clock was late, they were too close, or, if they arrived
  /// encoded, the path was full.
  package var framesSkipped: UInt64 = 0
  /// Those dropped because the clock was late.
  package var framesLate: UInt64 = 0
  /// Encoded frames, and key frames among them.
  package var framesEncoded: UInt64 = 0
  package var keyFramesEncoded: UInt64 = 0
  /// The sum of the quantisers of all encoded frames.
  package var qpSum: UInt64 = 0
  /// The size of the last video frame.
  package var width = 0
  package var height = 0

  package init() {}

  var captureTimes = FrameRate(ticksPerSecond: 90_000)

  /// The number of frames in the last second before a media time in 1/90000 s.
  package func framesPerSecond(atMediaTime mediaTime: Int64) -> Int {
    captureTimes.count(at: mediaTime)
  }

  mutating func count(_ encoded: EncodedVideo) {
    framesEncoded &+= 1
    if encoded.isKey { keyFramesEncoded &+= 1 }
    qpSum &+= UInt64(encoded.quantiser)
  }
}
