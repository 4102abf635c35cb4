import AudioSession
import Dispatch
import Foundation
import Live
import Media
import RetakeRTC
import RoomServers
import Synchronization
import Testing
@testable import RetakeConnectLive

/// Tests that pictures are passed on without copying and without noticeable work.
struct PictureTests {
  // A picture passes from the device to the stack and from the stack to the view without copying.
  @Test func picturesAreSharedAndNotCopied() throws {
    func address(_ bytes: [UInt8]) -> UnsafePointer<UInt8>? {
      bytes.withUnsafeBufferPointer { $0.baseAddress }
    }
    let bytes = [UInt8](repeating: 128, count: 64 * 48 * 3 / 2)
    let captured = CMSampleBuffer(
      imageBuffer: CVPixelBuffer(
        width: 64, height: 48, pixelFormat: kCVPixelFormatType_420YpCbCr8Planar, bytes: bytes),
      presentationTimeNs: 1)
    let frame = try #require(captured.videoFrame)
    #expect(address(frame.buffer.bytes) == address(bytes))
    let view = UIRenderView()
    view.core.renderFrame(frame)
    #expect(address(try #require(view.videoFrame?.native).buffer.bytes) == address(bytes))
  }

  // The product's own work per picture is negligible compared with the 33 ms between two pictures.
  @Test func aPictureCostsNoTime() throws {
    let bytes = [UInt8](repeating: 128, count: 640 * 480 * 3 / 2)
    let view = UIRenderView()
    let clock = ContinuousClock()
    var times: [Duration] = []
    for number in 0..<500 {
      let begin = clock.now
      let captured = CMSampleBuffer(
        imageBuffer: CVPixelBuffer(
          width: 640, height: 480, pixelFormat: kCVPixelFormatType_420YpCbCr8Planar, bytes: bytes),
        presentationTimeNs: Int64(number))
      let frame = try #require(captured.videoFrame)
      view.core.renderFrame(frame)
      times.append(begin.duration(to: clock.now))
    }
    // Copying a picture's 460,800 bytes once takes longer.
    let usual = times.sorted()[250]
    #expect(usual < .microseconds(20), "\(usual)")
  }
}
