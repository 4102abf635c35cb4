public import Live
public import Media
import Synchronization

/// A place that shows one video at a time.
///
/// Attaching another video replaces the previous one.
public final class RenderView: VideoRenderer {
  /// Distinguishes views.
  public let id: Int
  private let renderer: any VideoRenderer
  private let detachOwner = Mutex<(@Sendable () -> Void)?>(nil)
  private let mirrors = Mutex(false)
  private static let last = Atomic(0)

  /// Creates a view that shows frames by a renderer.
  public init(_ renderer: any VideoRenderer) {
    self.renderer = renderer
    id = RenderView.last.wrappingAdd(1, ordering: .relaxed).newValue
  }

  /// Sets the size of the frames from the next one on.
  public func setSize(width: Int, height: Int) { renderer.setSize(width: width, height: height) }
  /// Shows a frame, on the loop's thread; nil clears the view.
  public func renderFrame(_ frame: VideoFrame?) {
    let isMirrored = mirrors.withLock { $0 }
    renderer.renderFrame(isMirrored ? frame.map(\.mirrored) : frame)
  }

  /// Whether frames are mirrored.
  var isMirrored: Bool {
    get { mirrors.withLock { $0 } }
    set { mirrors.withLock { $0 = newValue } }
  }

  /// Attaches another owner, after detaching the previous one.
  func attach(_ detach: @escaping @Sendable () -> Void) {
    let former = detachOwner.withLock { owner in
      defer { owner = detach }
      return owner
    }
    former?()
  }

  /// Releases the view on behalf of its owner.
  func release() { detachOwner.withLock { $0 = nil } }
}

extension VideoFrame {
  /// The frame upright and mirrored; itself if it is blank.
  var mirrored: VideoFrame {
    let upright = videoFrame()
    guard !upright.samples.isEmpty else { return self }
    let (width, height) = (upright.width, upright.height)
    let (halfWidth, halfHeight) = ((width + 1) / 2, (height + 1) / 2)
    var samples = upright.samples
    var start = 0
    for (columns, rows) in [(width, height), (halfWidth, halfHeight), (halfWidth, halfHeight)] {
      for row in 0..<rows {
        samples[(start + row * columns)..<(start + (row + 1) * columns)].reverse()
      }
      start += columns * rows
    }
    let turned = I420Buffer(width: width, height: height, samples: samples)
    return (try? VideoFrame(turned, timestampNanoseconds: timestampNanoseconds)) ?? self
  }
}
