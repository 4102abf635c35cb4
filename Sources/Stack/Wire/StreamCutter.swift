/// How the messages of a stream are delimited.
package protocol MessageFraming: Sendable {
  /// Returns the range of the first message and where the next one starts; nil if more bytes are
  /// needed.
  ///
  /// Throws if the bytes are not the start of a message.
  static func first(in bytes: RawSpan) throws(FramingError) -> (message: Range<Int>, next: Int)?
  /// Frames a message for the stream.
  static func framed(_ message: [UInt8]) -> [UInt8]
}

/// The bytes of a stream do not start a message, so nothing after them can be delimited.
package struct FramingError: Error, Hashable, Sendable {
  package init() {}
}

/// Splits a stream into its messages, however its bytes arrive.
package struct StreamCutter: Sendable {
  private let framing: any MessageFraming.Type
  private var waiting: [UInt8] = []
  private var start = 0

  package init(_ framing: any MessageFraming.Type) { self.framing = framing }

  package mutating func append(_ bytes: some Sequence<UInt8>) {
    if start > 0 {
      waiting.removeFirst(start)
      start = 0
    }
    waiting.append(contentsOf: bytes)
  }

  /// The next complete message; nil if more bytes are needed.
  package mutating func next() throws(FramingError) -> [UInt8]? {
    let begin = start
    guard let (message, next) = try framing.first(in: waiting.span.extracting(begin...).bytes)
    else { return nil }
    start = begin + next
    return Array(waiting[begin + message.lowerBound..<begin + message.upperBound])
  }
}
