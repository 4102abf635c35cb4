/// Writes JSON directly into bytes, for texts written many times a second (RFC 8259).
///
/// Members and elements keep the order in which they are written.
package struct JSONWriter {
  private var bytes: [UInt8] = []
  /// Whether a value precedes in the current object or list, so that a comma is needed.
  private var isBehindValue = false

  /// Creates an empty text with a capacity in bytes.
  package init(capacity: Int) { bytes.reserveCapacity(capacity) }

  /// The text that was written.
  package var text: String { String(decoding: bytes, as: UTF8.self) }

  package mutating func beginObject() { begin(UInt8(ascii: "{")) }
  package mutating func endObject() { end(UInt8(ascii: "}")) }
  package mutating func beginList() { begin(UInt8(ascii: "[")) }
  package mutating func endList() { end(UInt8(ascii: "]")) }

  /// The name of the next member; it must need no escapes.
  package mutating func name(_ name: StaticString) {
    separate()
    bytes.append(UInt8(ascii: "\""))
    name.withUTF8Buffer { bytes.append(contentsOf: $0) }
    bytes.append(UInt8(ascii: "\""))
    bytes.append(UInt8(ascii: ":"))
    isBehindValue = false
  }

  package mutating func unsigned(_ value: UInt64) {
    separate()
    digits(value)
    isBehindValue = true
  }

  package mutating func integer(_ value: Int64) {
    separate()
    if value < 0 { bytes.append(UInt8(ascii: "-")) }
    digits(value.magnitude)
    isBehindValue = true
  }

  /// A value that is JSON already.
  package mutating func value(_ json: JSONText) {
    separate()
    bytes.append(contentsOf: json.text.utf8)
    isBehindValue = true
  }

  // MARK: Members

  package mutating func member(_ name: StaticString, _ value: UInt64) {
    self.name(name)
    unsigned(value)
  }

  package mutating func member(_ name: StaticString, _ value: UInt32) {
    member(name, UInt64(value))
  }

  package mutating func member(_ name: StaticString, _ value: Int64) {
    self.name(name)
    integer(value)
  }

  package mutating func member(_ name: StaticString, _ value: JSONText) {
    self.name(name)
    self.value(value)
  }

  // MARK: Bytes

  private mutating func begin(_ mark: UInt8) {
    separate()
    bytes.append(mark)
    isBehindValue = false
  }

  private mutating func end(_ mark: UInt8) {
    bytes.append(mark)
    isBehindValue = true
  }

  private mutating func separate() {
    if isBehindValue { bytes.append(UInt8(ascii: ",")) }
  }

  private mutating func digits(_ value: UInt64) {
    var rest = value
    var low = bytes.count
    repeat {
      let (quotient, digit) = rest.quotientAndRemainder(dividingBy: 10)
      bytes.append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: digit))
      rest = quotient
    } while rest > 0
    // Bytes are packed with the first one lowest.
    var high = bytes.count - 1
    while low < high {
      bytes.swapAt(low, high)
      low += 1
      high -= 1
    }
  }
}
