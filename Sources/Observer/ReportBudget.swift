/// How much may be told of what few packets can make be told again and again.
///
/// A description is told of each transport that it names, a stream with each new name of its
/// source, all streams of a path when they go on elsewhere: whoever sends such packets would fill a
/// disk with many times what was sent.
struct ReportBudget {
  private static let descriptionBytesMaximum = 64 << 20
  private static let movedStreamsMaximum = 1 << 16
  /// How often the name of one stream may change.
  static let namesMaximum = 64

  private var descriptionBytes = 0
  private var movedStreams = 0

  /// Whether a description of so many bytes may be told once more.
  mutating func tells(descriptionBytes count: Int) -> Bool {
    guard descriptionBytes + count <= Self.descriptionBytesMaximum else { return false }
    descriptionBytes += count
    return true
  }

  /// Whether so many streams may go on elsewhere.
  mutating func moves(streams count: Int) -> Bool {
    guard movedStreams + count <= Self.movedStreamsMaximum else { return false }
    movedStreams += count
    return true
  }
}
