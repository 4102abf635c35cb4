import RTP
import Testing

@testable import Media

/// Tests a video capture's encoder without the rest of the capture.
struct CaptureEncoderTests {
  private let codecs = BlankCodecs()
  private let blank = I420Buffer(width: 64, height: 48, samples: [])

  private func isKey(_ encoder: inout CaptureEncoder) throws -> Bool? {
    try encoder.encode(blank, mediaTime: 90, framesPerSecond: 30)?.frame.isKey
  }

  @Test func theFirstAndRequestedVideoFramesAreKeyFrames() throws {
    var encoder = CaptureEncoder(track: "v", codec: .vp8, codecs: codecs)
    var keys = [try isKey(&encoder), try isKey(&encoder)]
    encoder.requestKeyframe()
    keys += [try isKey(&encoder), try isKey(&encoder)]
    #expect(keys == [true, false, true, false])
  }

  @Test func anotherContentHintNeedsAnotherEncoderButABitRateDoesNot() throws {
    var encoder = CaptureEncoder(track: "v", codec: .vp8, codecs: codecs)
    _ = try isKey(&encoder)
    encoder.setBitrate(100_000)
    encoder.setBitrate(100_000)
    encoder.setScreen(false)
    encoder.setTemporalLayers(1)
    let goesOn = try isKey(&encoder)
    #expect(goesOn == false && codecs.bitrates == [VideoCapture.startBitrate, 100_000])
    encoder.setScreen(true)
    let replaced = try isKey(&encoder)
    #expect(replaced == true && codecs.bitrates == [VideoCapture.startBitrate, 100_000, 100_000])
    encoder.setTemporalLayers(2)
    let layered = try encoder.encode(blank, mediaTime: 180, framesPerSecond: 30)
    #expect(layered?.frame.isKey == true && layered?.frame.temporal != nil)
  }
}
