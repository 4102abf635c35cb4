/// How the messages of a stream are told apart.
package protocol MessageFraming: Sendable {
  /// Where the first message of the bytes stands, and with how many bytes the next one begins; nil
  /// until more bytes are there.
  ///
  /// Throws when the bytes begin no message.
  static func first(in bytes: RawSpan) throws(FramingError) -> (message: Range<Int>, next: Int)?
  /// A message as it goes onto the stream.
  static func framed(_ message: [UInt8]) -> [UInt8]
}

/// Bytes of a stream that begin no message: whatever follows cannot be told apart any more.
package struct FramingError: Error, Hashable, Sendable {
  package init() {}
}

/// Cuts a stream into its messages, however its bytes arrive.
package struct StreamCutter: Sendable {
  private let framing: any MessageFraming.Type
  private var waiting: [UInt8] = []
  private var start = 0

  package init(_ framing: any MessageFraming.Type) { self.framing = framing }

  /// Adds bytes of the stream.
  package mutating func append(_ bytes: some Sequence<UInt8>) {
    if start > 0 {
      waiting.removeFirst(start)
      start = 0
    }
    waiting.append(contentsOf: bytes)
  }

  /// The next whole message; nil until more bytes are there.
  package mutating func next() throws(FramingError) -> [UInt8]? {
    let begin = start
    guard let (message, next) = try framing.first(in: waiting.span.extracting(begin...).bytes)
    else { return nil }
    start = begin + next
    return Array(waiting[begin + message.lowerBound..<begin + message.upperBound])
  }
}
