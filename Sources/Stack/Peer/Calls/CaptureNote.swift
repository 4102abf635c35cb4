package import Media

/// An event of a sender's capturer.
package struct CaptureNote: Hashable, Sendable, Codable {
  /// What happened.
  package enum Event: String, Hashable, Sendable, Codable {
    case started, failed, stopped
    /// The user refused permission.
    case denied
  }

  package var event: Event
  /// Whether it captures a screen.
  package var isScreencast: Bool
  /// The requested format.
  package var width: Int
  package var height: Int
  package var framesPerSecond: Double
  package var pixelFormat: VideoPixelFormat
  /// The device, if known.
  package var device: String?

  package init(
    event: Event, isScreencast: Bool, width: Int, height: Int, framesPerSecond: Double,
    pixelFormat: VideoPixelFormat, device: String? = nil
  ) {
    self.event = event
    self.isScreencast = isScreencast
    self.width = width
    self.height = height
    self.framesPerSecond = framesPerSecond
    self.pixelFormat = pixelFormat
    self.device = device
  }
}
