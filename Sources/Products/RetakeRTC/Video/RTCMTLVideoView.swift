public import Foundation
import Synchronization

/// The name of UIKit for what signatures of views have of it.
public enum UIView {
  /// How a video frame fills its view, numbered as in UIKit.
  public enum ContentMode: Int, Sendable {
    /// Both sides are stretched to those of the view.
    case scaleToFill
    /// All of it is seen, with bars at two sides.
    case scaleAspectFit
    /// All of the view is filled, and what stands over is not seen.
    case scaleAspectFill
  }
}

/// Hears that a view shows video frames of another size.
public protocol RTCVideoViewDelegate: AnyObject {
  /// The size of what is shown from now on, in pixels.
  func videoView(_ videoView: any RTCVideoRenderer, didChangeVideoSize size: CGSize)
}

/// A view that shows a track, without a screen: it keeps the video frame that it shows and knows
/// where in the view that stands.
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

  /// Creates a view of a place and a size, in pixels.
  public init(frame: CGRect = .zero) { state = Mutex(State(frame: frame)) }

  /// Whether views can be made; they can.
  public static func isMetalAvailable() -> Bool { true }

  /// Who hears of other sizes; it is not kept alive.
  public var delegate: (any RTCVideoViewDelegate)? {
    get { state.withLock { $0.delegate }.value }
    set {
      let delegate = WeakDelegate { [weak newValue] in newValue }
      state.withLock { $0.delegate = delegate }
    }
  }
  /// How a video frame fills the view.
  public var videoContentMode: UIView.ContentMode {
    get { state.withLock { $0.contentMode } }
    set { state.withLock { $0.contentMode = newValue } }
  }
  /// Whether video frames are taken; else the last one stays.
  public var isEnabled: Bool {
    get { state.withLock { $0.isEnabled } }
    set { state.withLock { $0.isEnabled = newValue } }
  }
  /// Turns all video frames so, whatever they say; nil turns each as it says.
  public var rotationOverride: RTCVideoRotation? {
    get { state.withLock { $0.rotationOverride } }
    set { state.withLock { $0.rotationOverride = newValue } }
  }
  /// The place and the size of the view, in pixels.
  public var frame: CGRect {
    get { state.withLock { $0.frame } }
    set { state.withLock { $0.frame = newValue } }
  }

  // MARK: What is shown

  /// The video frame that is shown; nil before the first.
  public var videoFrame: RTCVideoFrame? { state.withLock { $0.shown } }

  /// Where that stands in the view, whose upper left corner is the origin; nil before the first.
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

  /// Notifies the delegate.
  public func setSize(_ size: CGSize) {
    delegate?.videoView(self, didChangeVideoSize: size)
  }

  /// Shows a video frame; the last one stays where there are no more.
  public func renderFrame(_ frame: RTCVideoFrame?) {
    guard let frame else { return }
    state.withLock { if $0.isEnabled { $0.shown = frame } }
  }
}

/// The older name of the same.
public typealias RTCEAGLVideoView = RTCMTLVideoView
