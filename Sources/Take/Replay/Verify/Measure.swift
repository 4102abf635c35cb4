/// The outcome of a session in one respect: a number, or words.
package enum MeasuredValue: Hashable, Sendable, Codable, CustomStringConvertible {
  case number(Double)
  case words(String)

  /// Reads a JSON number or string.
  package init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    if let number = try? container.decode(Double.self) {
      self = .number(number)
    } else {
      self = .words(try container.decode(String.self))
    }
  }

  /// Writes a JSON number or string.
  package func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    switch self {
    case .number(let number):
      if let whole = Int64(exactly: number) {
        try container.encode(whole)
      } else {
        try container.encode(number)
      }
    case .words(let words): try container.encode(words)
    }
  }

  /// The value for people.
  package var description: String {
    switch self {
    case .number(let number): Int64(exactly: number).map { String($0) } ?? String(number)
    case .words(let words): words
    }
  }
}

/// A measured value of a take with what it is called.
package struct Measure: Hashable, Sendable, Codable {
  /// `peer 1 track 2 video in: frames`.
  package var name: String
  package var value: MeasuredValue
  /// By how much a number may differ and mean the same; nil for words.
  package var tolerance: Double?
}
