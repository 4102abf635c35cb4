public import Foundation
import Live
package import Media
import Synchronization

/// Displays frames; called one at a time, on the thread that delivers the frames.
///
/// For a received track this is the media loop's thread, so the renderer must return at once and
/// must not call a connection.
public protocol RTCVideoRenderer: AnyObject {
  /// Sets the size in pixels for frames from now on; called before the first frame.
  func setSize(_ size: CGSize)
  /// Displays a frame; nil means there is nothing left to display.
  func renderFrame(_ frame: RTCVideoFrame?)
}

/// A track's renderers, each notified of the size before its first frame and whenever the size
/// changes.
final class RendererList: Sendable {
  private struct Entry: Sendable {
    let renderer: Handed<any RTCVideoRenderer>
    var size: CGSize?
  }

  private let entries = Mutex<[Entry]>([])

  var isEmpty: Bool { entries.withLock { $0.isEmpty } }

  /// Adds a renderer; adding it again has no effect.
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

  /// Displays a frame in all renderers; nil means that no frames follow.
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

// MARK: - RTCMTLVideoView

/// A namespace with UIKit's name, which the signatures of views refer to.
public enum UIView {
  /// How a video frame is fitted into its view, numbered as in UIKit.
  public enum ContentMode: Int, Sendable {
    /// The frame is stretched to the view.
    case scaleToFill
    /// The complete frame is visible, with bars on two sides.
    case scaleAspectFit
    /// The complete view is filled, and the excess is cropped.
    case scaleAspectFill
  }
}

/// Is notified when the frames that a view displays change size.
public protocol RTCVideoViewDelegate: AnyObject {
  /// Reports that the displayed frames have a new size, in pixels.
  func videoView(_ videoView: any RTCVideoRenderer, didChangeVideoSize size: CGSize)
}

/// A view for a track, which draws nothing itself: it holds the displayed frame and computes the
/// frame's position in the view.
public final class RTCMTLVideoView: RTCVideoRenderer, Sendable {
  private struct State {
    var delegate = WeakDelegate<any RTCVideoViewDelegate> { nil }
    var contentMode = UIView.ContentMode.scaleAspectFill
    var isEnabled = true
    var rotationOverride: RTCVideoRotation?
    var frame: CGRect
    var shown: RTCVideoFrame?
  }

  private let state: Mutex<State>

  /// Creates a view with a frame in pixels.
  public init(frame: CGRect = .zero) { state = Mutex(State(frame: frame)) }

  /// Whether views can be created; always true.
  public static func isMetalAvailable() -> Bool { true }

  /// Receives changes of size; held weakly.
  public var delegate: (any RTCVideoViewDelegate)? {
    get { state.withLock { $0.delegate }.value }
    set {
      let delegate = WeakDelegate { [weak newValue] in newValue }
      state.withLock { $0.delegate = delegate }
    }
  }
  /// How a video frame is fitted into the view.
  public var videoContentMode: UIView.ContentMode {
    get { state.withLock { $0.contentMode } }
    set { state.withLock { $0.contentMode = newValue } }
  }
  /// Whether new frames are displayed; if not, the last frame stays.
  public var isEnabled: Bool {
    get { state.withLock { $0.isEnabled } }
    set { state.withLock { $0.isEnabled = newValue } }
  }
  /// A rotation for all frames; nil uses each frame's own rotation.
  public var rotationOverride: RTCVideoRotation? {
    get { state.withLock { $0.rotationOverride } }
    set { state.withLock { $0.rotationOverride = newValue } }
  }
  /// The view's position and size in pixels.
  public var frame: CGRect {
    get { state.withLock { $0.frame } }
    set { state.withLock { $0.frame = newValue } }
  }

  // MARK: Displayed frame

  /// The displayed frame; nil before the first.
  public var videoFrame: RTCVideoFrame? { state.withLock { $0.shown } }

  /// The displayed frame's rectangle within the view, with the origin in the upper left corner; nil
  /// before the first frame.
  public var videoRect: CGRect? {
    let (shown, view, mode, override) = state.withLock { state in
      (state.shown, state.frame.size, state.contentMode, state.rotationOverride)
    }
    guard let shown else { return nil }
    let size = Self.size(of: shown, override)
    let scale = (view.width / size.width, view.height / size.height)
    let factor: CGFloat
    switch mode {
    case .scaleToFill: return CGRect(origin: .zero, size: view)
    case .scaleAspectFit: factor = min(scale.0, scale.1)
    case .scaleAspectFill: factor = max(scale.0, scale.1)
    }
    let (width, height) = (size.width * factor, size.height * factor)
    return CGRect(
      x: (view.width - width) / 2, y: (view.height - height) / 2, width: width, height: height)
  }

  private static func size(of frame: RTCVideoFrame, _ override: RTCVideoRotation?) -> CGSize {
    let (width, height) = (max(1, Int(frame.width)), max(1, Int(frame.height)))
    switch override ?? frame.rotation {
    case ._0, ._180: return CGSize(width: width, height: height)
    case ._90, ._270: return CGSize(width: height, height: width)
    }
  }

  // MARK: RTCVideoRenderer

  /// Notifies the delegate of a new size.
  public func setSize(_ size: CGSize) {
    delegate?.videoView(self, didChangeVideoSize: size)
  }

  /// Displays a frame; nil keeps the last frame.
  public func renderFrame(_ frame: RTCVideoFrame?) {
    guard let frame else { return }
    state.withLock { if $0.isEnabled { $0.shown = frame } }
  }
}

/// The older name of `RTCMTLVideoView`.
public typealias RTCEAGLVideoView = RTCMTLVideoView

/// Displays the stack's frames in an application's renderer.
package final class ShownFrames: VideoRenderer {
  private let renderer: Handed<any RTCVideoRenderer>

  /// Creates a renderer that displays frames on the thread that delivers them, one call at a time.
  package init(_ renderer: any RTCVideoRenderer) { self.renderer = Handed(renderer) }

  /// Receives the size of the frames that follow.
  package func setSize(width: Int, height: Int) {
    renderer.value.setSize(CGSize(width: width, height: height))
  }

  /// Displays a frame without copying its pixels.
  package func renderFrame(_ frame: VideoFrame?) {
    renderer.value.renderFrame(frame.map { RTCVideoFrame($0) })
  }
}
