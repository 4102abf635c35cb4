import Digests
import Media
import Peer
import Stats
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
  private var lastInbound: (key: PathKey, number: Int64)?
  private var lastOutbound: (key: PathKey, number: Int64)?
  private var formats = Numbering<FormatKey>()
  private var contents = Numbering<[UInt8]>()
  private var memories: [UInt32: ActorMemory] = [:]

  package init(
    keepsMedia: Bool, hashesMedia: Bool = true, format: Int64 = TakeHeader.currentFormat
  ) {
    self.keepsMedia = keepsMedia
    self.hashesMedia = hashesMedia
    self.format = format
  }

  /// Tells what an actor's first step says and no input has.
  package mutating func adopt(_ words: ActorWords, of actor: UInt32) {
    memories[actor, default: ActorMemory()].words = words
  }

  /// Forgets what only the steps of an actor need, when there are no more of them.
  ///
  /// What was numbered keeps its numbers.
  package mutating func forget(actor: UInt32) { memories[actor] = nil }

  /// Begins the rows of a step.
  package mutating func begin(actor: UInt32, at: Instant) {
    rows.removeAll()
    self.actor = actor
    // Whoever was not named is an endpoint, and those are numbered alike.
    peer = memories[actor].map { $0.words.peer ?? 0 } ?? actor
    self.at = at
  }

  // MARK: Rows

  package mutating func row(_ table: Table) { rows.begin(table) }

  package mutating func add(_ value: consuming Value) { rows.append(value) }

  /// Begins a row of a table whose first columns are the peer and the time.
  package mutating func stampedRow(_ table: Table) {
    rows.begin(table)
    rows.append(.number(Int64(peer)))
    rows.append(.number(at.nanoseconds))
  }

  /// Adds the row of a machine that is no endpoint: the input of its first step.
  ///
  /// - Parameters:
  ///   - configuration: JSON.
  ///   - seed: what its random values come from.
  package mutating func actorRow(_ kind: MachineKind, configuration: String, seed: [UInt8]) {
    row(.actor)
    add(.number(actor))
    add(.number(at.nanoseconds))
    add(.number(kind.rawValue))
    add(.text(words.label))
    add(.text(configuration))
    add(.blob(seed))
  }

  /// Adds a row that says what could not be seen, from one instant to another.
  ///
  /// - Parameter peer: whose side it is; nil for the actor as a whole.
  package mutating func coverageRow(
    peer: UInt32? = nil, from: Instant, to: Instant, what: String, reason: String
  ) {
    row(.coverage)
    add(.number(actor))
    add(.number(at.nanoseconds))
    add(.number(peer))
    add(.number(from.nanoseconds))
    add(.number(to.nanoseconds))
    add(.text(what))
    add(.text(reason))
  }

  // MARK: What is written down once

  /// The number of a path; its row comes first when it is new.
  mutating func pathNumber(_ datagram: borrowing Datagram, isInbound: Bool) -> Int64 {
    let key = PathKey(
      peer: peer, isInbound: isInbound, local: datagram.local, remote: datagram.remote)
    if let last = isInbound ? lastInbound : lastOutbound, last.key == key { return last.number }
    let (number, isNew) = paths.number(of: key)
    if isNew {
      rows.append(
        .path,
        [
          .number(number), .number(peer), .text(directionName(isInbound)),
          .text(key.local.description), .text(key.remote.description),
        ])
    }
    if isInbound { lastInbound = (key, number) } else { lastOutbound = (key, number) }
    return number
  }

  /// The number of a frame format; its row comes first when it is new.
  mutating func formatNumber(_ key: FormatKey) -> Int64 {
    let (number, isNew) = formats.number(of: key)
    if isNew { rows.append(.format, key.values(number: number)) }
    return number
  }

  /// The number of samples that an application handed in; their row comes first when it is new.
  mutating func contentNumber(_ bytes: [UInt8]) -> Int64 {
    let digest = SHA256.hash(bytes)
    let (number, isNew) = contents.number(of: digest)
    if isNew { rows.append(.content, [.number(number), .blob(digest), .blob(bytes)]) }
    return number
  }

  // MARK: Small memories

  /// What the present step's actor said at first.
  var words: ActorWords { memories[actor]?.words ?? ActorWords() }

  /// What is remembered of the present step's actor.
  private var memory: ActorMemory {
    get { memories[actor] ?? ActorMemory() }
    _modify { yield &memories[actor, default: ActorMemory.endpoint(actor)] }
  }

  var transportSequenceID: UInt8 {
    get { memory.transportSequenceID }
    set { memory.transportSequenceID = newValue }
  }

  /// Takes a block of sound into the sums of its track; gives that of a tenth of a second when it
  /// is full.
  mutating func sum(_ frame: borrowing FrameRecord, samples: Int) -> LevelMeter.Sum? {
    memory.meter.add(frame, samples: samples, at: at)
  }

  /// Whether a stats object differs from the one that the peer's last report had under its name.
  mutating func isNews(_ id: String, _ members: String) -> Bool {
    memory.samples.updateValue(members, forKey: id) != members
  }

  /// The objects of the peer's last whole report that the present one no longer has.
  mutating func gone(_ report: StatsReport) -> [String] {
    let present = report.objects.map(\.id)
    let known = Set(present)
    let gone = memory.reported.filter { !known.contains($0) }
    memory.reported = present
    // An object that comes back is news again, whatever it says.
    for id in gone { memory.samples[id] = nil }
    return gone
  }

  /// The digest of decoded media; null when there is none.
  func digest(of media: DecodedMedia) -> Value {
    guard hashesMedia, let digest = media.digest else { return .null }
    return .blob(digest)
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

/// What the rows of one actor need of its steps before.
private struct ActorMemory {
  var words = ActorWords()
  var transportSequenceID: UInt8 = 0
  /// The members of each stats object as they were last written.
  var samples: [String: String] = [:]
  /// The objects of the last whole report, in its order.
  var reported: [String] = []
  var meter = LevelMeter()

  /// The memory of an endpoint that was not named.
  static func endpoint(_ actor: UInt32) -> ActorMemory {
    var memory = ActorMemory()
    memory.words.peer = actor
    return memory
  }
}

/// What many frames have in common.
struct FormatKey: Hashable {
  var peer: UInt32
  var frame: FrameShape

  func values(number: Int64) -> [Value] {
    [
      .number(number), .number(peer), .number(frame.transceiver), .text(frame.kind.rawValue),
      .text(directionName(frame.isInbound)), .text(frame.codec), .number(frame.ssrc),
      .text(frame.outcome), .flag(frame.isKey), .flag(frame.isVoice), .number(frame.width),
      .number(frame.height), .number(frame.channels), .number(frame.samples),
    ]
  }
}

struct FrameShape: Hashable {
  var transceiver: UInt32
  var kind: MediaKind
  var isInbound: Bool
  var codec: String
  var ssrc: UInt32
  var outcome: String
  var isKey: Bool
  var isVoice: Bool
  var width: Int?
  var height: Int?
  var channels: Int?
  var samples: Int?
}
