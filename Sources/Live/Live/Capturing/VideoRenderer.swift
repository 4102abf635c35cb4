import Media
import Synchronization

/// Reports the size to a renderer whenever it changes, before the first frame of that size.
final class RendererFeed: Sendable {
  private let renderer: any VideoRenderer
  private let size = Mutex<(width: Int, height: Int)?>(nil)

  init(_ renderer: some VideoRenderer) { self.renderer = renderer }

  func show(_ frame: VideoFrame?) {
    if let frame {
      let next = (frame.displayWidth, frame.displayHeight)
      let changes = size.withLock { size in
        defer { size = next }
        return size.map { $0 != next } ?? true
      }
      if changes { renderer.setSize(width: next.0, height: next.1) }
    }
    renderer.renderFrame(frame)
  }
}
