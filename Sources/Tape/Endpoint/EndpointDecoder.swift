import Media
import Peer
import RTP
import Wire

/// Makes the inputs of endpoints again from their rows: the inverse of `Transcript`'s inputs.
package struct EndpointDecoder: InputDecoder {
  private var paths: [Int64: (local: SocketAddress, remote: SocketAddress)] = [:]
  private var contents: [Int64: [UInt8]] = [:]
  private var contentBytes = 0
  private let source: ContentSource

  /// How many bytes of captured media are kept at hand for when they come again.
  private static let contentLimit = 64 << 20

  /// - Parameter source: finds a content again by its number.
  package init(_ source: ContentSource) { self.source = source }

  package mutating func input(of head: StepHead, _ rows: borrowing RowList, _ range: Range<Int>)
    -> (any RecordedInput)?
  {
    if head.kind == .deadline { return PeerInput.deadline }
    var next = range.lowerBound
    let end = range.upperBound
    if next < end, rows.table(next) == .path {
      guard addPath(rows.row(next)) else { return nil }
      next += 1
    } else if next < end, rows.table(next) == .content {
      guard addContent(rows.row(next)) else { return nil }
      next += 1
    }
    if head.kind == .genesis, next < end, rows.table(next) == .clock { next += 1 }
    guard next < end else { return nil }
    let row = Columns(rows, next)
    switch (head.kind, row.table) {
    case (.datagram, .packet): return datagram(row)
    case (.genesis, .peer): return row.genesis
    case (.call, .callRequest): return row.call
    case (.send, .message): return row.message
    case (.captured, .capture): return captured(row)
    case (.signaling, .signaling): return row.signaling
    case (.interfaces, .network), (.socketBound, .network), (.socketFailed, .network),
      (.nameResolved, .network), (.sendFailed, .network), (.streamAccepted, .network):
      return row.network(head.kind)
    default: return nil
    }
  }

  private mutating func addPath(_ row: ArraySlice<Value>) -> Bool {
    let start = row.startIndex
    guard case .integer(let number) = row[start], case .text(let local) = row[start + 3],
      case .text(let remote) = row[start + 4], let local = SocketAddress(local),
      let remote = SocketAddress(remote)
    else { return false }
    paths[number] = (local, remote)
    // The recorder has forgotten paths that are so old; see `Numbering`.
    paths[number &- 131_072] = nil
    return true
  }

  private func datagram(_ row: Columns) -> PeerInput? {
    guard let at = row.integer(0), let path = row.integer(1), let ends = paths[path],
      let bytes = row.blob(7)
    else { return nil }
    return .datagram(
      Datagram(local: ends.local, remote: ends.remote, bytes: bytes),
      arrival: Instant(nanoseconds: at))
  }

  // MARK: Captured media

  private mutating func addContent(_ row: ArraySlice<Value>) -> Bool {
    let start = row.startIndex
    guard case .integer(let number) = row[start], case .blob(let bytes) = row[start + 2] else {
      return false
    }
    keep(bytes, as: number)
    return true
  }

  private mutating func keep(_ bytes: [UInt8], as number: Int64) {
    if contentBytes + bytes.count > EndpointDecoder.contentLimit {
      contents.removeAll()
      contentBytes = 0
    }
    contents[number] = bytes
    contentBytes += bytes.count
  }

  private mutating func bytes(ofContent number: Int64) -> [UInt8]? {
    if let known = contents[number] { return known }
    guard let bytes = source.bytes(of: number) else { return nil }
    keep(bytes, as: number)
    return bytes
  }

  private mutating func captured(_ row: Columns) -> PeerInput? {
    guard let transceiver: UInt32 = row.number(2), let kind = row.text(3) else { return nil }
    var bytes: [UInt8] = []
    if let number = row.integer(8) {
      guard let found = self.bytes(ofContent: number) else { return nil }
      bytes = found
    }
    if kind == MediaKind.audio.rawValue {
      guard let channels: Int = row.number(6), let count: Int = row.number(7), channels > 0 else {
        return nil
      }
      let block =
        bytes.isEmpty
        ? AudioBlock(blank: count, channels: channels)
        : AudioBlock(samples: samples(littleEndian: bytes), channels: channels)
      return .captured(transceiver: transceiver, .audio(block))
    }
    if let codec = Codec.named(kind) {
      return .captured(transceiver: transceiver, .encoded(codec.name, bytes))
    }
    guard let width: Int32 = row.number(4), let height: Int32 = row.number(5), width >= 0,
      height >= 0
    else { return nil }
    return .captured(
      transceiver: transceiver,
      .picture(Picture(width: Int(width), height: Int(height), samples: bytes)))
  }
}

/// Finds what was written down once by its number.
package final class ContentSource {
  private var statement: SQLiteStatement

  init(_ connection: borrowing SQLiteConnection) throws(SQLiteError) {
    statement = try connection.prepare("SELECT bytes FROM content WHERE content = ?")
  }

  func bytes(of number: Int64) -> [UInt8]? {
    statement.bind(number, at: 1)
    defer { statement.reset() }
    guard (try? statement.step()) == true else { return nil }
    return [UInt8](statement.blob(0))
  }
}

/// One row with its values by column.
private struct Columns {
  let table: Table
  private let values: ArraySlice<Value>

  init(_ rows: borrowing RowList, _ row: Int) {
    table = rows.table(row)
    values = rows.row(row)
  }

  /// A value; null for a column that the take's format does not have.
  private subscript(column: Int) -> Value {
    column < values.count ? values[values.startIndex + column] : .null
  }

  func integer(_ column: Int) -> Int64? {
    if case .integer(let value) = self[column] { return value }
    return nil
  }

  func number<Number: FixedWidthInteger>(_ column: Int) -> Number? {
    integer(column).flatMap { Number(exactly: $0) }
  }

  func text(_ column: Int) -> String? {
    if case .text(let value) = self[column] { return value }
    return nil
  }

  func blob(_ column: Int) -> [UInt8]? {
    if case .blob(let value) = self[column] { return value }
    return nil
  }

  var genesis: PeerInput? {
    guard let seed = blob(4), let wallClock = integer(5), let text = text(6),
      let configuration = CanonicalJSON.value(PeerConfiguration.self, from: text)
    else { return nil }
    return .genesis(
      Genesis(
        seed: seed, wallClock: WallClock(unixNanosecondsAtZero: wallClock),
        configuration: configuration))
  }

  var call: PeerInput? {
    guard let id: UInt32 = number(2), let name = text(3), let arguments = text(4),
      let call = CallText(name: name, arguments: arguments).call
    else { return nil }
    return .call(id: id, call)
  }

  var message: PeerInput? {
    guard let channel: UInt32 = number(3), let id: UInt32 = number(4), let binary = integer(5),
      let bytes = blob(8)
    else { return nil }
    return .send(id: id, DataMessage(channel: channel, isBinary: binary != 0, bytes: bytes))
  }

  var signaling: PeerInput? {
    guard let direction = text(2), let transport = text(3), let type = text(4),
      let message = text(5)
    else { return nil }
    return .signaling(
      SignalingMessage(
        isInbound: direction == directionName(true), transport: transport, type: type,
        message: message))
  }

  func network(_ kind: StepKind) -> PeerInput? {
    switch kind {
    case .interfaces: return addresses.map { .interfaces($0) }
    case .socketBound:
      guard let id: UInt32 = number(4), let address = address(5) else { return nil }
      return .socketBound(id: id, address)
    case .socketFailed:
      guard let id: UInt32 = number(4), let code: Int32 = number(7) else { return nil }
      return .socketFailed(id: id, code: code)
    case .nameResolved:
      guard let id: UInt32 = number(4), let addresses else { return nil }
      return .nameResolved(id: id, addresses)
    case .sendFailed:
      guard let local = address(5), let remote = address(6), let code: Int32 = number(7) else {
        return nil
      }
      // Format 2 did not count what was refused.
      return .sendFailed(
        SendFailure(
          local: local, remote: remote, code: code, packets: number(8) ?? 1,
          bytes: number(9) ?? 0))
    case .streamAccepted:
      guard let local = address(5), let remote = address(6) else { return nil }
      return .streamAccepted(local: local, remote: remote)
    default: return nil
    }
  }

  private func address(_ column: Int) -> SocketAddress? {
    text(column).flatMap { SocketAddress($0) }
  }

  /// Several addresses with spaces between; nil when one of them is none.
  private var addresses: [IPAddress]? {
    guard let text = text(5) else { return nil }
    var found: [IPAddress] = []
    for part in text.split(separator: " ") {
      guard let address = IPAddress(part) else { return nil }
      found.append(address)
    }
    return found
  }
}
