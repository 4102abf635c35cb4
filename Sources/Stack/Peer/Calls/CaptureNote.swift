package import Media

/// What the capturer of a sender did.
package struct CaptureNote: Hashable, Sendable, Codable {
  /// What happened.
  package enum Event: String, Hashable, Sendable, Codable {
    case started, failed, stopped
    /// The user does not want it.
    case denied
  }

  package var event: Event
  /// Whether it captures a screen.
  package var isScreencast: Bool
  /// The format that was asked for.
  package var width: Int
  package var height: Int
  package var framesPerSecond: Double
  package var pixelFormat: VideoPixelFormat
  /// Which device it is, where that is known.
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
