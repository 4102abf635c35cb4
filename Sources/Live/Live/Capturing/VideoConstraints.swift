/// An application's limits on the format of a capturer.
///
/// The names are those of W3C constraints; nil means no limit.
public struct VideoConstraints: Hashable, Sendable, Codable {
  /// The minimum width in pixels.
  public var minWidth: Int?
  /// The maximum width in pixels.
  public var maxWidth: Int?
  /// The minimum height in pixels.
  public var minHeight: Int?
  /// The maximum height in pixels.
  public var maxHeight: Int?
  /// The minimum frame rate.
  public var minFrameRate: Double?
  /// The maximum frame rate.
  public var maxFrameRate: Double?

  /// Creates constraints without limits.
  public init() {}

  /// From 360 to 720 rows, as usual for cameras of phones.
  public static var usual: VideoConstraints {
    var constraints = VideoConstraints()
    (constraints.minHeight, constraints.maxHeight) = (360, 720)
    return constraints
  }

  /// Whether a format satisfies the constraints.
  public func admits(_ format: VideoFormat) -> Bool {
    func isWithin<Value: Comparable>(_ value: Value, _ least: Value?, _ most: Value?) -> Bool {
      (least.map { value >= $0 } ?? true) && (most.map { value <= $0 } ?? true)
    }
    return isWithin(format.width, minWidth, maxWidth)
      && isWithin(format.height, minHeight, maxHeight)
      && isWithin(format.framesPerSecond, minFrameRate, maxFrameRate)
  }
}

extension VideoCapturer {
  /// The first supported format that satisfies constraints, if any.
  public func supportedFormat(within constraints: VideoConstraints) -> VideoFormat? {
    supportedFormats.first { constraints.admits($0) }
  }
}

extension VideoCaptureSession {
  /// Starts capturing in the first supported format that satisfies constraints.
  /// - Returns: whether the capturer started; false if no format does.
  @discardableResult
  public func start(within constraints: VideoConstraints) async -> Bool {
    guard let format = capturer.supportedFormat(within: constraints) else { return false }
    return await start(format)
  }
}
