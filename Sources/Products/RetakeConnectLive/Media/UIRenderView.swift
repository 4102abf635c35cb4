public import Foundation
import Live
import Media
public import RetakeRTC
import RoomClient
import Synchronization

/// A view that displays one video, without a screen.
///
/// It holds the current video frame, and forwards every frame to the application's renderer, if
/// there is one.
public final class UIRenderView: Sendable {
  let core: RenderView
  private let screen: Screen

  /// Creates a view.
  /// - Parameter renderer: draws the video frames, on the thread that delivers them; nil: none.
  public init(frame: CGRect = .zero, renderer: (any RTCVideoRenderer)? = nil) {
    let screen = Screen(frame, renderer.map { ShownFrames($0) })
    self.screen = screen
    core = RenderView(screen)
  }

  /// The position and size of the view.
  public var frame: CGRect {
    get { screen.state.withLock { $0.frame } }
    set { screen.state.withLock { $0.frame = newValue } }
  }

  /// The displayed video frame; nil before the first, and when there is nothing to display.
  public var videoFrame: RTCVideoFrame? {
    screen.state.withLock { $0.shown }.map { RTCVideoFrame($0) }
  }

  private final class Screen: VideoRenderer {
    struct State {
      var frame: CGRect
      var shown: VideoFrame?
    }

    let state: Mutex<State>
    private let next: ShownFrames?

    init(_ frame: CGRect, _ next: ShownFrames?) {
      state = Mutex(State(frame: frame))
      self.next = next
    }

    func setSize(width: Int, height: Int) { next?.setSize(width: width, height: height) }
    func renderFrame(_ frame: VideoFrame?) {
      state.withLock { $0.shown = frame }
      next?.renderFrame(frame)
    }
  }
}
