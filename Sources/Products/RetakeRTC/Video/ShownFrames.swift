import Foundation
import Live
package import Media

/// Displays the stack's frames in a renderer of the application.
package final class ShownFrames: VideoRenderer {
  private let renderer: Handed<any RTCVideoRenderer>

  /// Displays them on the thread that delivers them, one call at a time.
  package init(_ renderer: any RTCVideoRenderer) { self.renderer = Handed(renderer) }

  /// The size of the frames from the next one on.
  package func setSize(width: Int, height: Int) {
    renderer.value.setSize(CGSize(width: width, height: height))
  }

  /// Displays a frame; its pixels are shared.
  package func renderFrame(_ frame: VideoFrame?) {
    renderer.value.renderFrame(frame.map { RTCVideoFrame($0) })
  }
}
