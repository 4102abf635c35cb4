/// What an application asks of the format of a capturer: a size and a pace between two limits.
///
/// The names are those of the W3C's constraints; nil leaves a side open.
public struct VideoConstraints: Hashable, Sendable, Codable {
  /// The least pixels of a row.
  public var minWidth: Int?
  /// The most pixels of a row.
  public var maxWidth: Int?
  /// The least rows.
  public var minHeight: Int?
  /// The most rows.
  public var maxHeight: Int?
  /// The fewest frames per second.
  public var minFrameRate: Double?
  /// The most frames per second.
  public var maxFrameRate: Double?

  /// Creates constraints that everything keeps to.
  public init() {}

  /// From 360 to 720 rows, as cameras of phones are used.
  public static var usual: VideoConstraints {
    var constraints = VideoConstraints()
    (constraints.minHeight, constraints.maxHeight) = (360, 720)
    return constraints
  }

  /// Whether a format keeps to them.
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
  /// The first supported format that keeps to constraints; nil if none does.
  public func supportedFormat(within constraints: VideoConstraints) -> VideoFormat? {
    supportedFormats.first { constraints.admits($0) }
  }
}

extension VideoCaptureSession {
  /// Starts to capture in the first supported format that keeps to constraints.
  /// - Returns: whether the capturer started; false where no format is admitted.
  @discardableResult
  public func start(within constraints: VideoConstraints) async -> Bool {
    guard let format = capturer.supportedFormat(within: constraints) else { return false }
    return await start(format)
  }
}
