import Tape
public import Wire

/// One value of a row.
public enum TakeValue: Hashable, Sendable {
  /// No value.
  case null
  /// An integer.
  case integer(Int64)
  /// A floating-point number.
  case real(Double)
  /// A text.
  case text(String)
  /// Bytes.
  case bytes([UInt8])

  init(_ value: Value) {
    self =
      switch value {
      case .null: .null
      case .integer(let number): .integer(number)
      case .real(let number): .real(number)
      case .text(let text): .text(text)
      case .blob(let bytes): .bytes(bytes)
      }
  }

  /// The kind of the value, for error messages.
  var kind: String {
    switch self {
    case .null: "nothing"
    case .integer(let number): "the whole number \(number)"
    case .real(let number): "the number \(number)"
    case .text: "a text"
    case .bytes: "bytes"
    }
  }
}

/// A type that a value of a row can be read as: integers that fit, `Double`, `Bool`, `String`,
/// bytes, `Instant`, `TakeValue` itself, and any of them as an optional.
public protocol TakeReadable {
  /// The name of the type in an error.
  static var kindOfValue: String { get }
  /// Reads a value; nil when it has another type.
  init?(_ value: TakeValue)
}

extension TakeValue: TakeReadable {
  /// Any value.
  public static var kindOfValue: String { "a value" }
  /// The value itself.
  public init?(_ value: TakeValue) { self = value }
}

extension Optional: TakeReadable where Wrapped: TakeReadable {
  /// The wrapped type, or nothing.
  public static var kindOfValue: String { Wrapped.kindOfValue + " or nothing" }
  /// Nil for null.
  public init?(_ value: TakeValue) {
    if value == .null {
      self = .none
    } else {
      guard let wrapped = Wrapped(value) else { return nil }
      self = wrapped
    }
  }
}

extension TakeReadable where Self: FixedWidthInteger {
  /// An integer within the range of the type.
  public static var kindOfValue: String { "a whole number from \(Self.min) to \(Self.max)" }
  /// Reads an integer that fits.
  public init?(_ value: TakeValue) {
    guard case .integer(let number) = value else { return nil }
    self.init(exactly: number)
  }
}

extension Int: TakeReadable {}
extension Int64: TakeReadable {}
extension Int32: TakeReadable {}
extension UInt32: TakeReadable {}
extension UInt16: TakeReadable {}
extension UInt8: TakeReadable {}
extension Int16: TakeReadable {}
extension Int8: TakeReadable {}
extension UInt: TakeReadable {}
extension UInt64: TakeReadable {}

extension Bool: TakeReadable {
  /// 0 or another integer.
  public static var kindOfValue: String { "a whole number" }
  /// False for 0.
  public init?(_ value: TakeValue) {
    guard case .integer(let number) = value else { return nil }
    self = number != 0
  }
}

extension Double: TakeReadable {
  /// A number, integers included.
  public static var kindOfValue: String { "a number" }
  /// Reads a number.
  public init?(_ value: TakeValue) {
    switch value {
    case .integer(let number): self = Double(number)
    case .real(let number): self = number
    case .null, .text, .bytes: return nil
    }
  }
}

extension String: TakeReadable {
  /// A text.
  public static var kindOfValue: String { "a text" }
  /// Reads a text.
  public init?(_ value: TakeValue) {
    guard case .text(let text) = value else { return nil }
    self = text
  }
}

extension [UInt8]: TakeReadable {
  /// Bytes.
  public static var kindOfValue: String { "bytes" }
  /// Reads bytes.
  public init?(_ value: TakeValue) {
    guard case .bytes(let bytes) = value else { return nil }
    self = bytes
  }
}

extension Instant: TakeReadable {
  /// Nanoseconds.
  public static var kindOfValue: String { "a time in nanoseconds" }
  /// Reads nanoseconds since the take began.
  public init?(_ value: TakeValue) {
    guard case .integer(let number) = value else { return nil }
    self.init(nanoseconds: number)
  }
}

/// As a column has it, in nanoseconds since the take began.
extension Instant: Decodable {
  /// Reads nanoseconds.
  public init(from decoder: any Decoder) throws {
    self.init(nanoseconds: try decoder.singleValueContainer().decode(Int64.self))
  }
}
