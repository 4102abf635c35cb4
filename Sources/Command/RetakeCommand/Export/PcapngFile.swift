import FoundationEssentials
import Glibc
import Importing
import Peer
import Secure
import Tape
import Wire

/// A pcapng capture (draft-ietf-opsawg-pcapng) with two interfaces: packets on the wire with their
/// secrets, and the same packets decrypted.
final class PcapngFile {
  /// The interfaces, numbered in the order in which the file describes them.
  enum Interface: UInt32, CaseIterable {
    case wire = 0
    case clear = 1

    /// The if_name option, by which readers recognize derived packets.
    var name: String { self == .wire ? "wire" : "retake-clear" }
  }

  /// The maximum number of comments per block; some readers drop further ones.
  static let commentsMaximum = 64
  /// Packets begin with IP headers, as in other exports.
  private static let linkTypeRaw: UInt16 = 101
  private static let flushCount = 1 << 20

  private let whole: WholeFile
  private let path: String
  private let descriptor: Int32
  private var writer = ByteWriter()
  /// The number of packets on each interface.
  private(set) var counts = [0, 0]

  /// Creates the file and writes its header.
  init(
    _ path: String, _ present: WholeFile.Present, comments: [String], secrets: [String]
  ) throws {
    self.path = path
    whole = try WritingWhole.file(path, present)
    do throws(WholeFile.Failure) {
      descriptor = try whole.open()
    } catch {
      throw CommandFailure(error)
    }
    block(0x0a0d_0d0a) { writer in
      // Byte order, version 1.0, and an unspecified section length.
      writer.uint32(0x1a2b_3c4d)
      writer.uint16(1)
      writer.uint16(0)
      writer.uint64(.max)
      for comment in comments.prefix(Self.commentsMaximum) { writer.option(1, Array(comment.utf8)) }
      writer.option(4, Array("Retake".utf8))
      writer.endOptions()
    }
    for interface in Interface.allCases {
      block(1) { writer in
        writer.uint16(Self.linkTypeRaw)
        writer.uint16(0)
        writer.uint32(0)
        writer.option(2, Array(interface.name.utf8))
        // Timestamps are in nanoseconds.
        writer.option(9, [9])
        writer.endOptions()
      }
    }
    for text in secrets {
      block(10) { writer in
        writer.uint32(0x544c_534b)
        writer.uint32(UInt32(text.utf8.count))
        writer.padded(Array(text.utf8))
      }
    }
  }

  deinit { close(descriptor) }

  /// Appends a packet; `length` is its length on the wire, if the packet is truncated.
  func append(
    _ packet: [UInt8], length: Int? = nil, to interface: Interface, unixNanoseconds: Int64
  ) throws {
    block(6) { writer in
      writer.uint32(interface.rawValue)
      writer.uint64(UInt64(max(0, unixNanoseconds)))
      writer.uint32(UInt32(packet.count))
      writer.uint32(UInt32(length ?? packet.count))
      writer.padded(packet)
    }
    counts[Int(interface.rawValue)] += 1
    if writer.count >= Self.flushCount { try flush() }
  }

  /// Flushes the buffer and gives the file its final name.
  func finish() throws {
    try flush()
    try WritingWhole.finish(whole)
  }

  private func flush() throws {
    let code = WholeFile.write(writer.bytes, into: descriptor)
    guard code == 0 else { throw CommandFailure(WholeFile.Failure(path: path, code: code)) }
    writer = ByteWriter(capacity: Self.flushCount + 100_000)
  }

  /// Appends a block with its length before and after the body.
  private func block(_ type: UInt32, _ body: (inout ByteWriter) -> Void) {
    var content = ByteWriter()
    body(&content)
    let length = UInt32(content.count + 12)
    writer.uint32(type)
    writer.uint32(length)
    writer.append(content.bytes)
    writer.uint32(length)
  }
}

extension ByteWriter {
  /// Appends bytes padded to a multiple of four.
  fileprivate mutating func padded(_ bytes: [UInt8]) {
    append(bytes)
    zeros((4 - bytes.count % 4) % 4)
  }

  /// Appends an option (section 3.5), unless it is too long.
  fileprivate mutating func option(_ code: UInt16, _ value: [UInt8]) {
    guard let length = UInt16(exactly: value.count) else { return }
    uint16(code)
    uint16(length)
    padded(value)
  }

  fileprivate mutating func endOptions() { uint32(0) }
}

// MARK: - CaptureHead

/// The contents of an exported capture's header: a take's secrets, descriptions, and observer
/// inputs.
struct CaptureHead {
  private(set) var startUnixNanoseconds: Int64 = 0
  private(set) var comments: [String] = []
  /// NSS key logs.
  private(set) var secrets: [String] = []
  private(set) var formats: [ClearSession.Format] = []

  init(_ take: String) throws(TapeError) {
    let connection = try TakeFile.openForQueries(take)
    let header = try TakeHeader.read(from: connection, path: take)
    startUnixNanoseconds = header.startUnixNanoseconds
    do throws(SQLiteError) {
      try readObserver(connection)
      try readKeyLogs(connection)
      try readFormats(connection)
    } catch {
      throw TapeError(path: take, place: "call", error)
    }
  }

  private mutating func readObserver(_ connection: borrowing SQLiteConnection)
    throws(SQLiteError)
  {
    let actors = try connection.prepare(
      "SELECT configuration FROM actor WHERE kind = 'observer' ORDER BY row LIMIT 1")
    if try actors.step() {
      comments.append(CaptureMark.observer.rawValue + actors.values(String.self))
    }
    let calls = try connection.prepare(
      """
      SELECT name, iif(name = 'notSeen', arguments, arguments ->> '$._0') FROM call_request
      WHERE name IN ('keyLog', 'srtpKey', 'description', 'signaling', 'notSeen') ORDER BY row
      """)
    while try calls.step() {
      let (name, text) = calls.values(String.self, String?.self)
      guard let text else { continue }
      switch name {
      case "keyLog": secrets.append(text)
      case "notSeen": comments.append(CaptureMark.notSeen.rawValue + text)
      case "signaling": comments.append(CaptureMark.signaling.rawValue + text)
      case "srtpKey": comments.append(CaptureMark.srtpKey.rawValue + text)
      default: comments.append(CaptureMark.description.rawValue + text)
      }
    }
  }

  /// Reads local calls' secrets, which are the same at both ends.
  private mutating func readKeyLogs(_ connection: borrowing SQLiteConnection)
    throws(SQLiteError)
  {
    let events = try connection.prepare(
      """
      SELECT DISTINCT 'CLIENT_RANDOM ' || (detail ->> '$.clientRandom') || ' '
        || (detail ->> '$.masterSecret') || char(10)
      FROM event WHERE type = 'keylog'
      """)
    while try events.step() { secrets.append(events.values(String.self)) }
  }

  private mutating func readFormats(_ connection: borrowing SQLiteConnection)
    throws(SQLiteError)
  {
    let tracks = try connection.prepare(
      """
      SELECT payload_type, codec, clock_rate, kind FROM track
      WHERE codec <> '' GROUP BY payload_type ORDER BY kind, payload_type
      """)
    while try tracks.step() {
      let (type, codec, clockRate, kind) = tracks.values(
        Int.self, String.self, Int.self, String.self)
      formats.append(
        ClearSession.Format(
          payloadType: UInt8(clamping: type), codec: codec, clockRate: UInt32(clamping: clockRate),
          isAudio: kind == "audio"))
    }
  }
}
