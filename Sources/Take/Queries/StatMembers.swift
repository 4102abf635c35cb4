/// Splits the members of a `stat` row, which a recorder of Retake wrote and anybody may have
/// altered.
enum StatMembers {
  /// The names with their values as JSON text, in the order of the text; the members of a nested
  /// record are named `record.member`.
  static func list(_ json: String) -> [(name: String, value: String)] {
    var members: [(name: String, value: String)] = []
    let bytes = Array(json.utf8)
    var place = 0
    read(bytes, &place, prefix: "", depth: 0, into: &members)
    return members
  }

  /// No statistic has a record in a record of a record.
  private static let depthLimit = 3

  private static func read(
    _ bytes: [UInt8], _ place: inout Int, prefix: String, depth: Int,
    into members: inout [(name: String, value: String)]
  ) {
    guard place < bytes.count, bytes[place] == UInt8(ascii: "{") else { return }
    place += 1
    while place < bytes.count, bytes[place] == UInt8(ascii: "\"") {
      let name = prefix + text(bytes, skipString(bytes, &place), trim: 1)
      guard place < bytes.count, bytes[place] == UInt8(ascii: ":") else { return }
      place += 1
      if place < bytes.count, bytes[place] == UInt8(ascii: "{"), depth < depthLimit {
        read(bytes, &place, prefix: name + ".", depth: depth + 1, into: &members)
      } else {
        members.append((name, text(bytes, skipValue(bytes, &place), trim: 0)))
      }
      guard place < bytes.count, bytes[place] == UInt8(ascii: ",") else { break }
      place += 1
    }
    if place < bytes.count { place += 1 }
  }

  private static func text(_ bytes: [UInt8], _ range: Range<Int>, trim: Int) -> String {
    let end = max(range.lowerBound + trim, range.upperBound - trim)
    return String(decoding: bytes[min(range.lowerBound + trim, end)..<end], as: UTF8.self)
  }

  private static func skipString(_ bytes: [UInt8], _ place: inout Int) -> Range<Int> {
    let start = place
    place += 1
    while place < bytes.count, bytes[place] != UInt8(ascii: "\"") {
      place += bytes[place] == UInt8(ascii: "\\") ? 2 : 1
    }
    place = min(place + 1, bytes.count)
    return start..<place
  }

  private static func skipValue(_ bytes: [UInt8], _ place: inout Int) -> Range<Int> {
    guard place < bytes.count else { return place..<place }
    if bytes[place] == UInt8(ascii: "\"") { return skipString(bytes, &place) }
    let start = place
    while place < bytes.count, bytes[place] != UInt8(ascii: ","), bytes[place] != UInt8(ascii: "}")
    {
      place += 1
    }
    return start..<place
  }
}
