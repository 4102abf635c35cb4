import Media
import Peer
import RTP
import Wire

/// Restores the inputs of endpoints from their rows, which `Transcript+Inputs.swift` writes.
package struct EndpointDecoder: InputDecoder {
  private var paths = PathMemory()
  private var contents: [Int64: [UInt8]] = [:]
  private var contentBytes = 0
  private let source: ContentSource
  private var calls = CallMemory()

  /// The maximum number of bytes of captured media that are cached in case later rows refer to
  /// them.
  private static let contentLimit = 64 << 20

  /// - Parameter source: loads captured media by number.
  package init(_ source: ContentSource) { self.source = source }

  package mutating func input(of head: StepHead, _ rows: borrowing RowList, _ range: Range<Int>)
    -> (any RecordedInput)?
  {
    peerInput(of: head, rows, range)
  }

  /// Restores a step's input; nil if the rows do not match the step.
  mutating func peerInput(of head: StepHead, _ rows: borrowing RowList, _ range: Range<Int>)
    -> PeerInput?
  {
    if head.kind == .deadline { return .deadline }
    var next = range.lowerBound
    let end = range.upperBound
    if let path = next < end ? PathRow(rows, next) : nil {
      guard paths.add(path) else { return nil }
      next += 1
    } else if let content = next < end ? ContentRow(rows, next) : nil {
      store(content.bytes, as: content.number)
      next += 1
    }
    if head.kind == .genesis, next < end, rows.table(next) == .clock { next += 1 }
    guard next < end else { return nil }
    switch head.kind {
    case .datagram:
      guard let row = PacketRow(rows, next) else { return nil }
      return datagram(row)
    case .genesis: return PeerRow(rows, next)?.genesis
    case .call:
      guard let row = CallRequestRow(rows, next) else { return nil }
      return calls.call(row.name, row.arguments).map { .call(id: row.call, $0) }
    case .send: return MessageRow(rows, next)?.input
    case .captured: return CaptureRow(rows, next).flatMap { captured($0) }
    case .relayed:
      if let row = RelayedRow(rows, next) { return row.input }
      return CaptureRow(rows, next).flatMap { relayed($0) }
    case .signaling: return SignalingRow(rows, next)?.input
    default: return NetworkRow(rows, next)?.input(head.kind)
    }
  }

  private mutating func datagram(_ row: PacketRow) -> PeerInput? {
    paths.datagram(row).map { .datagram($0, arrival: row.at) }
  }

  // MARK: Captured media

  private mutating func store(_ bytes: [UInt8], as number: Int64) {
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
    store(bytes, as: number)
    return bytes
  }

  /// Restores a relayed packet in an older format, which stored its bytes like captured media.
  private mutating func relayed(_ row: CaptureRow) -> PeerInput? {
    guard row.isRelayed,
      let kind = ClearPacket.Kind(
        rowName: row.kind.dropFirst(RelayedRow.formerKindPrefix.count)),
      let content = row.content,
      let bytes = bytes(ofContent: content.number)
    else { return nil }
    return .relayed(RelayedPacket(kind: kind, transport: Int(row.track), bytes: bytes))
  }

  private mutating func captured(_ row: CaptureRow) -> PeerInput? {
    var bytes: [UInt8] = []
    if let content = row.content {
      guard let found = self.bytes(ofContent: content.number) else { return nil }
      bytes = found
    }
    if row.kind == MediaKind.audio.rawValue {
      guard let channels = row.channels, let count = row.samples, channels > 0 else { return nil }
      let block =
        bytes.isEmpty
        ? AudioBlock(blank: count, channels: channels)
        : AudioBlock(samples: samples(littleEndian: bytes), channels: channels)
      return .captured(transceiver: row.track, .audio(block))
    }
    if let codec = Codec.named(row.kind) {
      return .captured(transceiver: row.track, .encoded(codec.name, bytes))
    }
    guard let width = row.width.flatMap({ Int32(exactly: $0) }),
      let height = row.height.flatMap({ Int32(exactly: $0) }), width >= 0, height >= 0
    else { return nil }
    let videoFrame = I420Buffer(width: Int(width), height: Int(height), samples: bytes)
    return .captured(
      transceiver: row.track,
      row.timestamp.map { .frame(videoFrame, timestamp: $0) } ?? .videoFrame(videoFrame))
  }
}

/// Loads captured media (rows of `content`) by number.
package final class ContentSource {
  private let statement: SQLiteStatement
  private let isCoded: Bool

  init(_ connection: borrowing SQLiteConnection, format: Int64) throws(SQLiteError) {
    isCoded = ContentRow.table.definition.hasCoding(format: format)
    statement = try connection.prepare(
      "SELECT bytes\(isCoded ? ", coding" : "") FROM content WHERE content = ?")
  }

  func bytes(of number: Int64) -> [UInt8]? {
    statement.bind(number, at: 1)
    defer { statement.reset() }
    guard (try? statement.step()) == true else { return nil }
    let bytes = statement.values([UInt8].self)
    guard isCoded, let coding = statement.text(1) else { return bytes }
    return ContentCoding(rawValue: coding)?.decoded(bytes)
  }
}

extension PeerRow {
  fileprivate var genesis: PeerInput? {
    guard let configuration = CanonicalJSON.value(PeerConfiguration.self, from: configuration)
    else { return nil }
    return .genesis(
      Genesis(
        seed: seed, wallClock: WallClock(unixNanosecondsAtZero: wallClock),
        configuration: configuration))
  }
}

extension MessageRow {
  fileprivate var input: PeerInput? {
    guard let call, let bytes else { return nil }
    return .send(id: call, DataMessage(channel: channel, isBinary: isBinary, bytes: bytes))
  }
}

extension RelayedRow {
  fileprivate var input: PeerInput? {
    ClearPacket.Kind(rowName: `protocol`).map {
      .relayed(RelayedPacket(kind: $0, transport: transport, bytes: bytes))
    }
  }
}

extension SignalingRow {
  fileprivate var input: PeerInput {
    .signaling(
      SignalingMessage(
        isInbound: direction.isInbound, transport: transport, type: type, message: message))
  }
}

extension NetworkRow {
  fileprivate func input(_ kind: StepKind) -> PeerInput? {
    let local = address.flatMap { SocketAddress($0) }
    let remote = remote.flatMap { SocketAddress($0) }
    switch kind {
    case .interfaces:
      let types = networkTypes?.split(separator: " ") ?? []
      return addresses.map {
        .interfaces($0, types: types.map { NetworkType(rawValue: String($0)) })
      }
    case .socketBound:
      guard let request, let local else { return nil }
      return .answer(.socketBound(id: request, local))
    case .socketFailed:
      guard let request, let code else { return nil }
      return .answer(.socketFailed(id: request, code: code))
    case .nameResolved:
      guard let request, let addresses else { return nil }
      return .answer(.nameResolved(id: request, addresses))
    case .sendFailed:
      guard let local, let remote, let code else { return nil }
      // Takes of format 2 did not count the datagrams that could not be sent.
      return .sendFailed(
        SendFailure(
          local: local, remote: remote, code: code, packets: packets ?? 1, bytes: bytes ?? 0))
    case .streamAccepted:
      guard let local, let remote else { return nil }
      return .answer(.streamAccepted(local: local, remote: remote))
    default: return nil
    }
  }

  /// The addresses in the column, separated by spaces; nil if one is malformed.
  private var addresses: [IPAddress]? {
    guard let text = address else { return nil }
    var found: [IPAddress] = []
    for part in text.split(separator: " ") {
      guard let address = IPAddress(part) else { return nil }
      found.append(address)
    }
    return found
  }
}
