/// What a video source gave, for W3C media-source and outbound-rtp statistics.
package struct VideoCaptureCounters: Hashable, Sendable {
  /// Video frames that came or were made, with those that were left out afterwards.
  package var frames: UInt64 = 0
  /// Video frames that were not encoded or sent: the clock came too late, they came too fast, or,
  /// where they came encoded, the path carried too little.
  package var framesSkipped: UInt64 = 0
  /// Those of them that the late clock left out.
  package var framesLate: UInt64 = 0
  /// Frames that the encoder gave, and key frames among them.
  package var framesEncoded: UInt64 = 0
  package var keyFramesEncoded: UInt64 = 0
  /// The sum of the quantisers of all encoded frames.
  package var qpSum: UInt64 = 0
  /// The size of the last video frame.
  package var width = 0
  package var height = 0

  package init() {}

  var captureTimes = FrameRate(ticksPerSecond: 90_000)

  /// How many video frames came within the last second before a media time in 1/90000 s.
  package func framesPerSecond(atMediaTime mediaTime: Int64) -> Int {
    captureTimes.count(at: mediaTime)
  }

  mutating func count(_ encoded: EncodedVideo) {
    framesEncoded &+= 1
    if encoded.isKey { keyFramesEncoded &+= 1 }
    qpSum &+= UInt64(encoded.quantiser)
  }
}
