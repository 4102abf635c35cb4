package import Wire

/// A type of column, which determines how a field is stored and shown.
package protocol ColumnValue: Sendable {
  static var kind: ColumnKind { get }
  /// Whether the column may be null.
  static var isOptional: Bool { get }
  /// The field as SQLite stores it.
  var value: Value { get }
  /// Appends the field in the form that is hashed and stored.
  func write(to bytes: inout ValueBytes)
  /// Reads a stored value; fails if the column cannot have this value.
  init?(_ value: Value)
  /// Reads the field at an offset; fails if the column cannot have the value there.
  init?(_ bytes: borrowing ValueBytes, at offset: Int)
}

extension ColumnValue {
  package static var isOptional: Bool { false }
  @inline(__always)
  package func write(to bytes: inout ValueBytes) { bytes.append(value) }
  package init?(_ bytes: borrowing ValueBytes, at offset: Int) {
    self.init(bytes.value(at: offset))
  }
}

/// A field that is stored as an integer; reading and writing it needs no `Value`.
package protocol IntegerColumn: ColumnValue {
  var stored: Int64 { get }
  /// Reads a stored integer; fails if the column cannot have this number.
  init?(stored number: Int64)
}

extension IntegerColumn {
  package var value: Value { .integer(stored) }
  @inline(__always)
  package func write(to bytes: inout ValueBytes) { bytes.append(integer: stored) }
  package init?(_ value: Value) {
    guard case .integer(let number) = value else { return nil }
    self.init(stored: number)
  }
  @inline(__always)
  package init?(_ bytes: borrowing ValueBytes, at offset: Int) {
    guard let number = bytes.integer(at: offset) else { return nil }
    self.init(stored: number)
  }
}

/// The meaning of a column's values.
package enum ColumnKind: Hashable, Sendable {
  case integer
  case real
  case text
  case bytes
  /// Nanoseconds on the take's clock.
  case instant
  case actor
  case peer
  /// The number of a row in another table.
  case reference(Table)
  /// An unsigned number from a packet, stored as a signed number with the same bits.
  case wire(bits: Int)
  /// The second byte of an RTP header (RFC 3550 section 5.1).
  case markerAndPayloadType

  package var sqlType: String {
    switch self {
    case .real: "REAL"
    case .text: "TEXT"
    case .bytes: "BLOB"
    default: "INTEGER"
    }
  }

  /// Formats a value; numbers from packets are shown as unsigned.
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
  @inline(__always)
  package init?(_ bytes: borrowing ValueBytes, at offset: Int) {
    if bytes.isNull(at: offset) {
      self = .none
    } else {
      guard let wrapped = Wrapped(bytes, at: offset) else { return nil }
      self = wrapped
    }
  }
}

extension IntegerColumn where Self: FixedWidthInteger {
  package static var kind: ColumnKind { .integer }
  package var stored: Int64 { Int64(truncatingIfNeeded: self) }
  package init?(stored number: Int64) { self.init(exactly: number) }
}

extension Int: IntegerColumn {}
extension Int64: IntegerColumn {}
extension Int32: IntegerColumn {}
extension UInt32: IntegerColumn {}
extension UInt16: IntegerColumn {}
extension UInt8: IntegerColumn {}

extension UInt64: IntegerColumn {
  /// Reads an unsigned number, which is stored as a signed one with the same 64 bits.
  package init?(stored number: Int64) { self.init(bitPattern: number) }
}

extension Bool: IntegerColumn {
  package static var kind: ColumnKind { .integer }
  package var stored: Int64 { self ? 1 : 0 }
  package init?(stored number: Int64) { self = number != 0 }
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

extension Instant: IntegerColumn {
  package static var kind: ColumnKind { .instant }
  package var stored: Int64 { nanoseconds }
  package init?(stored number: Int64) { self.init(nanoseconds: number) }
}

/// The number of a peer in its take; 0 for a machine that is not a peer.
package struct PeerNumber: IntegerColumn, Hashable {
  package var number: UInt32

  package init(number: UInt32 = 0) { self.number = number }

  package static var kind: ColumnKind { .peer }
  package var stored: Int64 { Int64(number) }
  package init?(stored: Int64) {
    guard let number = UInt32(exactly: stored) else { return nil }
    self.number = number
  }
}

/// The number of an actor in its take.
package struct ActorNumber: IntegerColumn, Hashable {
  package var number: UInt32

  package init(number: UInt32 = 0) { self.number = number }

  package static var kind: ColumnKind { .actor }
  package var stored: Int64 { Int64(number) }
  package init?(stored: Int64) {
    guard let number = UInt32(exactly: stored) else { return nil }
    self.number = number
  }
}

/// The number of a row in the table of the type parameter.
package struct Reference<Row: TableRow>: IntegerColumn, Hashable {
  package var number: Int64

  package init(number: Int64 = 0) { self.number = number }

  package static var kind: ColumnKind { .reference(Row.table) }
  package var stored: Int64 { number }
  package init?(stored number: Int64) { self.number = number }
}

/// An unsigned number from a packet, stored as a signed number with the same bits.
///
/// SQLite then needs no more bytes for it than the packet does.
package struct WireNumber<Number: FixedWidthInteger & UnsignedInteger & Sendable>: IntegerColumn {
  package var number: Number

  package init(number: Number = 0) { self.number = number }

  package static var kind: ColumnKind { .wire(bits: Number.bitWidth) }
  package var stored: Int64 {
    let unused = 64 - Number.bitWidth
    return (Int64(truncatingIfNeeded: number) << unused) >> unused
  }
  package init?(stored: Int64) { number = Number(truncatingIfNeeded: stored) }
}

/// The marker and the payload type of an RTP packet, which share a byte (RFC 3550 section 5.1).
package struct MarkerAndPayloadType: IntegerColumn {
  package var byte: UInt8

  package static var kind: ColumnKind { .markerAndPayloadType }
  package var stored: Int64 { WireNumber(number: byte).stored }
  package init(byte: UInt8) { self.byte = byte }
  package init?(stored: Int64) { byte = UInt8(truncatingIfNeeded: stored) }
}

/// Whether something was received (`in`) or sent (`out`) by the row's peer.
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
