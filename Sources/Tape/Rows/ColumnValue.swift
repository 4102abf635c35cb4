package import Wire

/// What a field of a row holds: how it is stored and what it means.
package protocol ColumnValue: Sendable {
  static var kind: ColumnKind { get }
  /// Whether the column may be null.
  static var isOptional: Bool { get }
  /// The field as it is stored.
  var value: Value { get }
  /// Appends the same as bytes.
  func write(to bytes: inout ValueBytes)
  /// Reads a stored value; nil for one that the column cannot have.
  init?(_ value: Value)
}

extension ColumnValue {
  package static var isOptional: Bool { false }
  @inline(__always)
  package func write(to bytes: inout ValueBytes) { bytes.append(value) }
}

/// What the values of a column are.
package enum ColumnKind: Hashable, Sendable {
  case integer
  case real
  case text
  case bytes
  /// Nanoseconds on the clock of the take.
  case instant
  case actor
  case peer
  /// The number of a row in another table.
  case reference(Table)
  /// An unsigned number of the wire, stored as the signed one of the same width.
  case wire(bits: Int)
  /// The second byte of an RTP header.
  case markerAndPayloadType

  /// The type in SQL.
  package var sqlType: String {
    switch self {
    case .real: "REAL"
    case .text: "TEXT"
    case .bytes: "BLOB"
    default: "INTEGER"
    }
  }

  /// A value for people: numbers of the wire without their sign.
  package func text(_ value: Value) -> String {
    guard case .integer(let number) = value else { return value.summary }
    switch self {
    case .wire(let bits): return String(number & (1 << Int64(bits) - 1))
    case .markerAndPayloadType:
      return "payload type \(number & 0x7f)\(number & 0x80 == 0 ? "" : " with marker")"
    default: return String(number)
    }
  }
}

extension Optional: ColumnValue where Wrapped: ColumnValue {
  package static var kind: ColumnKind { Wrapped.kind }
  package static var isOptional: Bool { true }
  package var value: Value {
    if let wrapped = self { return wrapped.value }
    return .null
  }
  @inline(__always)
  package func write(to bytes: inout ValueBytes) {
    if let wrapped = self { wrapped.write(to: &bytes) } else { bytes.appendNull() }
  }
  package init?(_ value: Value) {
    if value == .null {
      self = .none
    } else {
      guard let wrapped = Wrapped(value) else { return nil }
      self = wrapped
    }
  }
}

extension ColumnValue where Self: FixedWidthInteger {
  package static var kind: ColumnKind { .integer }
  package var value: Value { .integer(Int64(truncatingIfNeeded: self)) }
  package init?(_ value: Value) {
    guard case .integer(let number) = value else { return nil }
    self.init(exactly: number)
  }
}

extension Int: ColumnValue {}
extension Int64: ColumnValue {}
extension Int32: ColumnValue {}
extension UInt32: ColumnValue {}
extension UInt16: ColumnValue {}
extension UInt8: ColumnValue {}

extension UInt64: ColumnValue {
  /// A number of 64 unsigned bits keeps its bits.
  package init?(_ value: Value) {
    guard case .integer(let number) = value else { return nil }
    self.init(bitPattern: number)
  }
}

extension Bool: ColumnValue {
  package static var kind: ColumnKind { .integer }
  package var value: Value { .integer(self ? 1 : 0) }
  package init?(_ value: Value) {
    guard case .integer(let number) = value else { return nil }
    self = number != 0
  }
}

extension Double: ColumnValue {
  package static var kind: ColumnKind { .real }
  package var value: Value { .measure(self) }
  package init?(_ value: Value) {
    guard case .real(let number) = value else { return nil }
    self = number
  }
}

extension String: ColumnValue {
  package static var kind: ColumnKind { .text }
  package var value: Value { .text(self) }
  package func write(to bytes: inout ValueBytes) { bytes.append(text: self) }
  package init?(_ value: Value) {
    guard case .text(let text) = value else { return nil }
    self = text
  }
}

extension [UInt8]: ColumnValue {
  package static var kind: ColumnKind { .bytes }
  package var value: Value { .blob(self) }
  package func write(to bytes: inout ValueBytes) { bytes.append(blob: self) }
  package init?(_ value: Value) {
    guard case .blob(let bytes) = value else { return nil }
    self = bytes
  }
}

extension Instant: ColumnValue {
  package static var kind: ColumnKind { .instant }
  package var value: Value { .integer(nanoseconds) }
  package init?(_ value: Value) {
    guard case .integer(let number) = value else { return nil }
    self.init(nanoseconds: number)
  }
}

/// The number of a peer in its take; 0 for a machine that is none.
package struct PeerNumber: ColumnValue, Hashable {
  package var number: UInt32

  package init(number: UInt32 = 0) { self.number = number }

  package static var kind: ColumnKind { .peer }
  package var value: Value { .integer(Int64(number)) }
  package init?(_ value: Value) {
    guard let number = UInt32(value) else { return nil }
    self.number = number
  }
}

/// The number of an actor in its take.
package struct ActorNumber: ColumnValue, Hashable {
  package var number: UInt32

  package init(number: UInt32 = 0) { self.number = number }

  package static var kind: ColumnKind { .actor }
  package var value: Value { .integer(Int64(number)) }
  package init?(_ value: Value) {
    guard let number = UInt32(value) else { return nil }
    self.number = number
  }
}

/// The number of a row in another table.
package struct Reference<Row: TableRow>: ColumnValue, Hashable {
  package var number: Int64

  package init(number: Int64 = 0) { self.number = number }

  package static var kind: ColumnKind { .reference(Row.table) }
  package var value: Value { .integer(number) }
  package init?(_ value: Value) {
    guard case .integer(let number) = value else { return nil }
    self.number = number
  }
}

/// An unsigned number of the wire, stored as the signed one of the same width, which takes no more
/// bytes than that.
package struct WireNumber<Number: FixedWidthInteger & UnsignedInteger & Sendable>: ColumnValue {
  package var number: Number

  package init(number: Number = 0) { self.number = number }

  package static var kind: ColumnKind { .wire(bits: Number.bitWidth) }
  package var value: Value {
    let unused = 64 - Number.bitWidth
    return .integer((Int64(truncatingIfNeeded: number) << unused) >> unused)
  }
  package init?(_ value: Value) {
    guard case .integer(let number) = value else { return nil }
    self.number = Number(truncatingIfNeeded: number)
  }
}

/// The marker and the payload type of an RTP packet (RFC 3550 section 5.1).
package struct MarkerAndPayloadType: ColumnValue {
  package var byte: UInt8

  package static var kind: ColumnKind { .markerAndPayloadType }
  package var value: Value { WireNumber(number: byte).value }
  package init(byte: UInt8) { self.byte = byte }
  package init?(_ value: Value) {
    guard let wire = WireNumber<UInt8>(value) else { return nil }
    byte = wire.number
  }
}

/// Which way something went.
package enum Direction: String, ColumnValue {
  case inbound = "in"
  case outbound = "out"

  package init(isInbound: Bool) { self = isInbound ? .inbound : .outbound }

  package var isInbound: Bool { self == .inbound }

  package static var kind: ColumnKind { .text }
  package var value: Value { .text(rawValue) }
  package init?(_ value: Value) {
    guard case .text(let text) = value else { return nil }
    self.init(rawValue: text)
  }
}
