public import Foundation
import Media
import Synchronization

/// Displays frames; called one call at a time, on the thread that delivers the frames.
///
/// For a received track that is the media loop, so the renderer must return at once, and must not
/// call a connection from there.
public protocol RTCVideoRenderer: AnyObject {
  /// The size in pixels of the frames from now on; called before the first frame.
  func setSize(_ size: CGSize)
  /// Displays a frame; nil: there is nothing to display any longer.
  func renderFrame(_ frame: RTCVideoFrame?)
}

/// The renderers of a track, each notified of the size before its first frame and when it changes.
final class RendererList: Sendable {
  private struct Entry: Sendable {
    let renderer: Handed<any RTCVideoRenderer>
    var size: CGSize?
  }

  private let entries = Mutex<[Entry]>([])

  var isEmpty: Bool { entries.withLock { $0.isEmpty } }

  /// Adds a renderer, unless it was already added.
  func add(_ renderer: any RTCVideoRenderer) {
    let added = Handed(renderer)
    entries.withLock { entries in
      if !entries.contains(where: { $0.renderer.value === added.value }) {
        entries.append(Entry(renderer: added))
      }
    }
  }

  func remove(_ renderer: any RTCVideoRenderer) {
    let gone = Handed(renderer)
    entries.withLock { entries in entries.removeAll { $0.renderer.value === gone.value } }
  }

  /// Displays a frame in all of them; nil when there are no more.
  func show(_ frame: RTCVideoFrame?) {
    let isTurned = frame?.rotation == ._90 || frame?.rotation == ._270
    let size = frame.map { frame in
      isTurned
        ? CGSize(width: Int(frame.height), height: Int(frame.width))
        : CGSize(width: Int(frame.width), height: Int(frame.height))
    }
    let shown = entries.withLock { entries in
      entries.indices.map { index -> (renderer: Handed<any RTCVideoRenderer>, isNewSize: Bool) in
        let isNewSize = size != nil && entries[index].size != size
        if isNewSize { entries[index].size = size }
        return (entries[index].renderer, isNewSize)
      }
    }
    for (renderer, isNewSize) in shown {
      if isNewSize, let size { renderer.value.setSize(size) }
      renderer.value.renderFrame(frame)
    }
  }
}
