import Foundation
import Live
package import Media

/// Shows the frames of the stack in a renderer of the application.
package final class ShownFrames: VideoRenderer {
  private let renderer: Handed<any RTCVideoRenderer>

  /// Shows them on the thread that has them, one call at a time.
  package init(_ renderer: any RTCVideoRenderer) { self.renderer = Handed(renderer) }

  /// Frames have this size from the next one on.
  package func setSize(width: Int, height: Int) {
    renderer.value.setSize(CGSize(width: width, height: height))
  }

  /// Shows a frame; its pixels are shared.
  package func renderFrame(_ frame: VideoFrame?) {
    renderer.value.renderFrame(frame.map { RTCVideoFrame($0) })
  }
}
