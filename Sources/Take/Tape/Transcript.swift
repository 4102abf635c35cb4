import Crypto
import FoundationEssentials
import Media
package import Peer
package import Wire

/// Turns steps into rows: the only definition of how a take describes a step.
///
/// A recording inserts the rows. A replay produces them again and compares them. Repeated values
/// (paths, frame formats and captured media) are numbered in the order of their first use, so both
/// runs assign the same numbers.
package struct Transcript {
  /// The rows of the current step.
  package private(set) var rows = RowList()

  /// Whether the bytes of encoded frames are stored.
  let keepsMedia: Bool
  /// Whether decoded media is hashed; a replay that skips codecs has no decoded media.
  let hashesMedia: Bool
  /// The format of the take; older formats lack some tables and columns.
  let format: Int64

  /// The actor of the current step, and the peer number in its rows; 0 if it is not an endpoint.
  package private(set) var actor: UInt32 = 0
  package private(set) var peer: UInt32 = 0
  package private(set) var at = Instant.zero

  private var paths = Numbering<PathKey>()
  /// The most recently used paths; the oldest is replaced.
  ///
  /// Nearly all packets use one of them, and comparing a few paths costs less than hashing a path.
  private var recentPaths: [(key: PathKey, number: Int64)] = []
  private var oldestPath = 0
  private static let recentPathsLimit = 4
  private var formats = Numbering<FormatRow>()
  private var contents = Numbering<[UInt8]>()
  private var known = ByActor<Known>()
  /// The notes of the current step's actor; nil until its rows need them.
  private var present: ActorNotes?

  package init(
    keepsMedia: Bool, hashesMedia: Bool = true, format: Int64 = TakeHeader.currentFormat
  ) {
    self.keepsMedia = keepsMedia
    self.hashesMedia = hashesMedia
    self.format = format
  }

  /// Sets the description of an actor, which its first step's rows contain.
  package mutating func adopt(_ words: ActorWords, of actor: UInt32) {
    known[actor] = Known(words, notes: known[actor]?.notes)
  }

  /// Discards the state of an actor that has no more steps.
  ///
  /// The numbers of its paths, formats and media are not used again.
  package mutating func forget(actor: UInt32) {
    known[actor] = nil
    if actor == self.actor { present = nil }
  }

  /// Begins the rows of a step.
  package mutating func begin(actor: UInt32, at: Instant) {
    rows.removeAll()
    self.actor = actor
    // An actor without a description is an endpoint with the same peer number.
    let known = known[actor]
    peer = known.map { $0.words.peer ?? 0 } ?? actor
    present = known?.notes
    self.at = at
  }

  // MARK: Rows

  /// Adds a row, unless the take's format does not have its table.
  package mutating func add<Row: TableRow>(_ row: Row) {
    guard Row.since <= format else { return }
    rows.append(row, format: format)
  }

  /// Adds a row with the current step's peer and time.
  package mutating func add<Row: StampedRow>(_ row: Row) {
    guard Row.since <= format else { return }
    var row = row
    row.peer = PeerNumber(number: peer)
    row.at = at
    rows.append(row, format: format)
  }

  /// Adds a row with the current step's time and another peer, such as one that the actor observes.
  package mutating func add<Row: StampedRow>(_ row: Row, of peer: UInt32) {
    let own = self.peer
    self.peer = peer
    add(row)
    self.peer = own
  }

  /// Adds rows with another peer and another time, which is usually earlier than the current
  /// step's.
  package mutating func add(
    of peer: UInt32, at instant: Instant, _ add: (_ transcript: inout Transcript) -> Void
  ) {
    let own = (self.peer, at)
    (self.peer, at) = (peer, instant)
    add(&self)
    (self.peer, at) = own
  }

  /// Adds an actor's row, which is the input of the first step of a machine other than an endpoint.
  ///
  /// - Parameters:
  ///   - configuration: the configuration as JSON.
  ///   - seed: the seed for the machine's random values.
  package mutating func addActor(_ kind: MachineKind, configuration: String, seed: [UInt8]) {
    add(
      ActorRow(
        actor: ActorNumber(number: actor), at: at, kind: kind.rawValue, label: words.label,
        configuration: configuration, seed: seed))
  }

  /// Adds a row about something that could not be seen between two times.
  ///
  /// - Parameter peer: the peer whose packets could not be seen; nil for the entire actor.
  package mutating func addCoverage(
    peer: UInt32? = nil, from: Instant, to: Instant, what: String, reason: String
  ) {
    add(
      CoverageRow(
        actor: ActorNumber(number: actor), at: at, peer: peer.map { PeerNumber(number: $0) },
        from: from, to: to, what: what, reason: reason))
  }

  // MARK: Numbered rows

  /// Returns the number of a datagram's path, adding a row if the path is new.
  mutating func path(of datagram: borrowing Datagram, isInbound: Bool) -> Reference<PathRow> {
    Reference(number: pathNumber(datagram, isInbound: isInbound))
  }

  private mutating func pathNumber(
    _ datagram: borrowing Datagram, isInbound: Bool
  ) -> Int64 {
    let key = PathKey(
      peer: peer, isInbound: isInbound, local: datagram.local, remote: datagram.remote)
    for index in recentPaths.indices where recentPaths[index].key == key {
      return recentPaths[index].number
    }
    let (number, isNew) = paths.number(of: key)
    if isNew {
      add(
        PathRow(
          number: number, peer: PeerNumber(number: peer),
          direction: Direction(isInbound: isInbound), local: key.local.description,
          remote: key.remote.description))
    }
    if recentPaths.count < Transcript.recentPathsLimit {
      recentPaths.append((key, number))
    } else {
      oldestPath = (oldestPath + 1) % Transcript.recentPathsLimit
      recentPaths[oldestPath] = (key, number)
    }
    return number
  }

  /// Returns the number of a frame's format, adding a row if the format is new.
  ///
  /// - Parameter format: the row without its number and peer, which are set here.
  mutating func format(of format: FormatRow) -> Reference<FormatRow> {
    var row = format
    row.peer = PeerNumber(number: peer)
    let (number, isNew) = formats.number(of: row)
    if isNew {
      row.number = number
      add(row)
    }
    return Reference(number: number)
  }

  /// Returns the number of captured media, adding a row if it is new.
  mutating func content(_ bytes: [UInt8]) -> Reference<ContentRow> {
    let digest = SHA256.hash(bytes)
    let (number, isNew) = contents.number(of: digest)
    if isNew { add(ContentRow(number: number, digest: digest, bytes: bytes)) }
    return Reference(number: number)
  }

  // MARK: Actors

  /// The description of the step's actor, such as its label.
  var words: ActorWords { known[actor]?.words ?? ActorWords() }

  /// Returns the notes of the current step's actor, and creates them if there are none yet.
  mutating func notes<Notes: ActorNotes>(_ make: () -> Notes) -> Notes {
    if let notes = present as? Notes { return notes }
    let notes = make()
    known[actor] = Known(known[actor]?.words ?? .endpoint(actor), notes: notes)
    present = notes
    return notes
  }

  /// Returns the digest of decoded media; nil if media is not hashed.
  func digest(of media: DecodedMedia) -> [UInt8]? { hashesMedia ? media.digest : nil }
}

/// The state, besides the current step, that an actor's rows depend on.
package class ActorNotes {
  package init() {}
}

/// The words and notes of an actor; a class, because every step looks them up.
private final class Known {
  let words: ActorWords
  let notes: ActorNotes?

  init(_ words: ActorWords, notes: ActorNotes?) {
    self.words = words
    self.notes = notes
  }
}

/// Numbers values that are stored once, in the order of their first use.
///
/// The table is cleared when it is full; otherwise a remote peer could exhaust memory by sending
/// from one new address after another. A value that occurs again is then stored again, under a new
/// number.
struct Numbering<Key: Hashable> {
  private var numbers: [Key: Int64] = [:]
  private var last: Int64 = 0

  /// The maximum number of values to remember.
  private static var limit: Int { 65_536 }

  /// Returns the number of a value, and whether the value is new.
  mutating func number(of key: Key) -> (number: Int64, isNew: Bool) {
    if let known = numbers[key] { return (known, false) }
    if numbers.count == Self.limit { numbers.removeAll(keepingCapacity: true) }
    last += 1
    numbers[key] = last
    return (last, true)
  }
}

/// Returns the name of a direction in rows: `in` or `out`.
package func directionName(_ isInbound: Bool) -> String { isInbound ? "in" : "out" }

/// A peer's path in one direction, identified by its two addresses.
private struct PathKey: Hashable {
  var peer: UInt32
  var isInbound: Bool
  var local: SocketAddress
  var remote: SocketAddress
}

// MARK: - Packets

// Writes datagrams as rows, with the fields of RTP headers that SRTP does not encrypt.
extension Transcript {
  mutating func append(
    _ datagram: borrowing Datagram, at time: Instant, isInbound: Bool, transportSequenceID: UInt8
  ) {
    let header = RTPFields(datagram.bytes.span.bytes, transportSequenceID: transportSequenceID)
    var row = PacketRow(at: time, path: path(of: datagram, isInbound: isInbound))
    row.ssrc = header.ssrc.map { WireNumber(number: $0) }
    if header.isRTP {
      row.markerAndType = MarkerAndPayloadType(byte: header.markerAndType)
      row.sequence = WireNumber(number: header.sequence)
      row.rtpTime = WireNumber(number: header.time)
    }
    row.transportSequence = header.transportSequence.map { WireNumber(number: $0) }
    row.bytes = datagram.bytes
    if isInbound { row.ecn = datagram.ecn?.rawValue }
    add(row)
  }
}

/// The unencrypted fields of an RTP packet, or of the first packet in an RTCP compound.
struct RTPFields {
  var isRTP = false
  var markerAndType: UInt8 = 0
  var sequence: UInt16 = 0
  var time: UInt32 = 0
  var ssrc: UInt32?
  var transportSequence: UInt16?

  /// Parses a datagram; only RTP and RTCP have fields (RFC 7983, RFC 5761).
  init(_ bytes: RawSpan, transportSequenceID: UInt8) {
    var reader = ByteReader(bytes)
    do throws(ReadError) {
      var first = try reader.uint8()
      if (0x40...0x4f).contains(first) {
        // A packet sent through a TURN server may begin with a channel header (RFC 8656 section
        // 12.4).
        try reader.skip(3)
        first = try reader.uint8()
      }
      guard (128..<192).contains(first) else { return }
      let second = try reader.uint8()
      if DatagramClass(first: first, second: second) == .rtcp {
        _ = try reader.uint16()
        ssrc = try reader.uint32()
        return
      }
      let sequence = try reader.uint16()
      let time = try reader.uint32()
      ssrc = try reader.uint32()
      self.sequence = sequence
      self.time = time
      markerAndType = second
      isRTP = true
      guard first & 0x10 != 0, transportSequenceID != 0 else { return }
      try reader.skip(4 * Int(first & 0x0f))
      try readExtensions(&reader, transportSequenceID)
    } catch {
      // A truncated RTP packet keeps the fields that were read before its end.
      if !isRTP { ssrc = nil }
    }
  }

  /// Finds a header extension by its id (RFC 8285 sections 4.2 and 4.3).
  private mutating func readExtensions(_ reader: inout ByteReader, _ wanted: UInt8)
    throws(ReadError)
  {
    let profile = try reader.uint16()
    let end = reader.offset + 2 + 4 * Int(try reader.uint16())
    let isShort = profile == 0xbede
    guard isShort || profile & 0xfff0 == 0x1000 else { return }
    while reader.offset < end {
      let head = try reader.uint8()
      if head == 0 { continue }
      let id = isShort ? head >> 4 : head
      if isShort, id == 15 { return }
      let length = isShort ? Int(head & 0x0f) + 1 : Int(try reader.uint8())
      if id == wanted {
        if length >= 2 { transportSequence = try reader.uint16() }
        return
      }
      try reader.skip(length)
    }
  }
}

// MARK: - DecodedMedia: Digest

// Digests of decoded media.
//
// A minute of small video is a gigabyte of frames, for which a cryptographic digest would need more
// than a twentieth of the call's time. These digests only have to show that a decoder returned
// something different. The SHA-256 chain over the rows protects the file.
extension DecodedMedia {
  /// The digest of the decoded media; nil if there is none.
  package var digest: [UInt8]? {
    switch self {
    case .none: return nil
    case .audio(let block): return block.samples.isEmpty ? nil : block.digest
    case .videoFrame(let videoFrame): return videoFrame.samples.isEmpty ? nil : videoFrame.digest
    case .digest(let digest): return digest
    }
  }
}

extension AudioBlock {
  fileprivate var digest: [UInt8] {
    #if _endian(little)
      return XXH3.hash(samples.span.bytes)
    #else
      let bytes = littleEndianBytes(samples)
      return XXH3.hash(bytes.span.bytes)
    #endif
  }
}

extension I420Buffer {
  /// The digest of the samples of all planes.
  var digest: [UInt8] {
    let samples = samples
    return XXH3.hash(samples.span.bytes)
  }
}

/// JSON with sorted keys, so that equal values have equal JSON.
package enum CanonicalJSON {
  /// Encodes a value, optionally with indentation; returns `null` if it cannot be encoded.
  package static func text(_ value: some Encodable, isIndented: Bool = false) -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    if isIndented { encoder.outputFormatting.insert(.prettyPrinted) }
    // An application may pass NaN or infinity, and the take must contain what it passed.
    encoder.nonConformingFloatEncodingStrategy = .convertToString(
      positiveInfinity: "Infinity", negativeInfinity: "-Infinity", nan: "NaN")
    // Only plain values of this package are encoded, so this does not fail.
    guard let data = try? encoder.encode(value) else { return "null" }
    return String(decoding: data, as: UTF8.self)
  }

  /// Decodes a value; nil if the text does not contain one.
  package static func value<Result: Decodable>(_ type: Result.Type, from text: String) -> Result? {
    let decoder = JSONDecoder()
    decoder.nonConformingFloatDecodingStrategy = .convertFromString(
      positiveInfinity: "Infinity", negativeInfinity: "-Infinity", nan: "NaN")
    return try? decoder.decode(type, from: Data(text.utf8))
  }
}
