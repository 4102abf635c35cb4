import Crypto
import FoundationEssentials
import Media
package import Peer
package import Wire

/// Turns steps into rows: the one definition of what a take says about a step.
///
/// Recording inserts these rows; a replay makes them again from the re-executed step and compares.
/// What repeats (paths, frame formats, contents) is numbered in order of first use, so the numbers
/// are the same both times.
package struct Transcript {
  /// The rows of the present step.
  package private(set) var rows = RowList()

  /// Whether encoded frames are kept in the clear.
  let keepsMedia: Bool
  /// Whether decoded results are hashed; a replay that skips the codecs has none.
  let hashesMedia: Bool
  /// The format of the take: an older one says less.
  let format: Int64

  /// The actor whose step it is, and its number among the peers, which rows are stamped with; 0 for
  /// a machine that is no peer.
  package private(set) var actor: UInt32 = 0
  package private(set) var peer: UInt32 = 0
  package private(set) var at = Instant.zero

  private var paths = Numbering<PathKey>()
  /// The paths that were asked for lately, each in the place of the one that stands there longest:
  /// nearly all packets take one of them, and comparing costs less than hashing.
  private var recentPaths: [(key: PathKey, number: Int64)] = []
  private var oldestPath = 0
  private static let recentPathsLimit = 4
  private var formats = Numbering<FormatRow>()
  private var contents = Numbering<[UInt8]>()
  private var known = ByActor<Known>()
  /// The notes of the present step's actor.
  private var present: ActorNotes?

  package init(
    keepsMedia: Bool, hashesMedia: Bool = true, format: Int64 = TakeHeader.currentFormat
  ) {
    self.keepsMedia = keepsMedia
    self.hashesMedia = hashesMedia
    self.format = format
  }

  /// Tells what an actor's first step says and no input has.
  package mutating func adopt(_ words: ActorWords, of actor: UInt32) {
    known[actor] = Known(words, notes: known[actor]?.notes)
  }

  /// Forgets what only the steps of an actor need, when there are no more of them.
  ///
  /// What was numbered keeps its numbers.
  package mutating func forget(actor: UInt32) {
    known[actor] = nil
    if actor == self.actor { present = nil }
  }

  /// Begins the rows of a step.
  package mutating func begin(actor: UInt32, at: Instant) {
    rows.removeAll()
    self.actor = actor
    // Whoever was not named is an endpoint, and those are numbered alike.
    let known = known[actor]
    peer = known.map { $0.words.peer ?? 0 } ?? actor
    present = known?.notes
    self.at = at
  }

  // MARK: Rows

  /// Adds a row; nothing when the take's format does not have its table.
  package mutating func add<Row: TableRow>(_ row: Row) {
    guard Row.since <= format else { return }
    rows.append(row, format: format)
  }

  /// Adds a row of the present step's peer, at the step's time.
  package mutating func add<Row: StampedRow>(_ row: Row) {
    guard Row.since <= format else { return }
    var row = row
    row.peer = PeerNumber(number: peer)
    row.at = at
    rows.append(row, format: format)
  }

  /// Adds a row of another peer than the step's own: one of those that an actor sees.
  package mutating func add<Row: StampedRow>(_ row: Row, of peer: UInt32) {
    let own = self.peer
    self.peer = peer
    add(row)
    self.peer = own
  }

  /// Adds rows of another peer than the step's own, of an instant before the step's.
  package mutating func add(
    of peer: UInt32, at instant: Instant, _ add: (_ transcript: inout Transcript) -> Void
  ) {
    let own = (self.peer, at)
    (self.peer, at) = (peer, instant)
    add(&self)
    (self.peer, at) = own
  }

  /// Adds the row of a machine that is no endpoint: the input of its first step.
  ///
  /// - Parameters:
  ///   - configuration: JSON.
  ///   - seed: what its random values come from.
  package mutating func addActor(_ kind: MachineKind, configuration: String, seed: [UInt8]) {
    add(
      ActorRow(
        actor: ActorNumber(number: actor), at: at, kind: kind.rawValue, label: words.label,
        configuration: configuration, seed: seed))
  }

  /// Adds a row that says what could not be seen, from one instant to another.
  ///
  /// - Parameter peer: whose side it is; nil for the actor as a whole.
  package mutating func addCoverage(
    peer: UInt32? = nil, from: Instant, to: Instant, what: String, reason: String
  ) {
    add(
      CoverageRow(
        actor: ActorNumber(number: actor), at: at, peer: peer.map { PeerNumber(number: $0) },
        from: from, to: to, what: what, reason: reason))
  }

  // MARK: What is written down once

  /// The number of a path; its row comes first when it is new.
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

  /// The number of a frame format; its row comes first when it is new.
  ///
  /// - Parameter format: the row without a number and a peer.
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

  /// The number of samples that an application handed in; their row comes first when it is new.
  mutating func content(_ bytes: [UInt8]) -> Reference<ContentRow> {
    let digest = SHA256.hash(bytes)
    let (number, isNew) = contents.number(of: digest)
    if isNew { add(ContentRow(number: number, digest: digest, bytes: bytes)) }
    return Reference(number: number)
  }

  // MARK: What is remembered

  /// What the present step's actor said at first.
  var words: ActorWords { known[actor]?.words ?? ActorWords() }

  /// What the writer of a kind's rows remembers of the present step's actor.
  mutating func notes<Notes: ActorNotes>(_ make: () -> Notes) -> Notes {
    if let notes = present as? Notes { return notes }
    let notes = make()
    known[actor] = Known(known[actor]?.words ?? .endpoint(actor), notes: notes)
    present = notes
    return notes
  }

  /// The digest of decoded media; nil when there is none.
  func digest(of media: DecodedMedia) -> [UInt8]? { hashesMedia ? media.digest : nil }
}

/// What the writer of one kind's rows remembers of an actor's steps; it goes with the actor.
package class ActorNotes {
  package init() {}
}

/// What is known of an actor whose steps continue; every step looks at it, and nothing changes in
/// it.
private final class Known {
  let words: ActorWords
  let notes: ActorNotes?

  init(_ words: ActorWords, notes: ActorNotes?) {
    self.words = words
    self.notes = notes
  }
}

/// Numbers for what is written down once, in order of first use.
///
/// A stranger who sends from ever new addresses must not fill the memory, so all is forgotten when
/// there is too much of it; what comes again is then written down again under a new number.
struct Numbering<Key: Hashable> {
  private var numbers: [Key: Int64] = [:]
  private var last: Int64 = 0

  /// How many keys are remembered.
  private static var limit: Int { 65_536 }

  /// The number of a key, and whether it was given just now.
  mutating func number(of key: Key) -> (number: Int64, isNew: Bool) {
    if let known = numbers[key] { return (known, false) }
    if numbers.count == Self.limit { numbers.removeAll(keepingCapacity: true) }
    last += 1
    numbers[key] = last
    return (last, true)
  }
}

/// The words for directions in every table.
package func directionName(_ isInbound: Bool) -> String { isInbound ? "in" : "out" }

/// A path of one peer in one direction.
private struct PathKey: Hashable {
  var peer: UInt32
  var isInbound: Bool
  var local: SocketAddress
  var remote: SocketAddress
}

// MARK: - Packets

// The rows of datagrams, with what can be told from an RTP header that SRTP leaves in the clear.
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

/// What the fixed header and the extensions of an RTP packet say, or the head of an RTCP compound.
struct RTPFields {
  var isRTP = false
  var markerAndType: UInt8 = 0
  var sequence: UInt16 = 0
  var time: UInt32 = 0
  var ssrc: UInt32?
  var transportSequence: UInt16?

  /// Reads a datagram of any kind; what is not RTP or RTCP (RFC 7983, RFC 5761) has no fields.
  init(_ bytes: RawSpan, transportSequenceID: UInt8) {
    var reader = ByteReader(bytes)
    do throws(ReadError) {
      var first = try reader.uint8()
      if (0x40...0x4f).contains(first) {
        // What a TURN server relays stands behind a channel's header (RFC 8656 section 12.4).
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
      // Cut short: what was read so far is what there is.
      if !isRTP { ssrc = nil }
    }
  }

  /// Looks for one element among the header extensions (RFC 8285 sections 4.2 and 4.3).
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
// A minute of small video is a gigabyte of video frames: a cryptographic digest of them alone would
// cost more than a twentieth of the call. The digest has to notice that a decoder gave something
// else, nothing more: what guards the file is the chain of SHA-256 digests over the rows.
extension DecodedMedia {
  /// The digest of what was decoded; nil when that is nothing.
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
  /// The digest of the samples, planes in order.
  var digest: [UInt8] {
    let samples = samples
    return XXH3.hash(samples.span.bytes)
  }
}

/// JSON with sorted keys and nothing optional about it.
package enum CanonicalJSON {
  /// The value as JSON, for people with indented lines; `null` for what cannot be encoded.
  package static func text(_ value: some Encodable, isIndented: Bool = false) -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    if isIndented { encoder.outputFormatting.insert(.prettyPrinted) }
    // An application may ask for nonsense, and the take must hold what it asked for.
    encoder.nonConformingFloatEncodingStrategy = .convertToString(
      positiveInfinity: "Infinity", negativeInfinity: "-Infinity", nan: "NaN")
    // What is encoded here are plain values of this package; there is nothing that could fail.
    guard let data = try? encoder.encode(value) else { return "null" }
    return String(decoding: data, as: UTF8.self)
  }

  /// The value in the text; nil when the text does not hold one.
  package static func value<Result: Decodable>(_ type: Result.Type, from text: String) -> Result? {
    let decoder = JSONDecoder()
    decoder.nonConformingFloatDecodingStrategy = .convertFromString(
      positiveInfinity: "Infinity", negativeInfinity: "-Infinity", nan: "NaN")
    return try? decoder.decode(type, from: Data(text.utf8))
  }
}
