import Crypto
package import Peer
package import Wire

/// A step without its rows, as stored in the `tape` table.
package struct StepHead: Hashable, Sendable {
  /// The step's number, counted from 1 over all actors.
  package var number: Int
  package var kind: StepKind
  /// The actor's number, counted from 1.
  package var actor: UInt32
  package var at: Instant
  /// The machine's deadline after the step.
  package var deadline: Instant?
  /// The number of random bytes that the actor has drawn, up to and including this step.
  package var entropyDrawn: UInt64
  /// The number of the step's rows in all other tables.
  package var rowCount: Int
  /// The first four bytes of the chained digest after the step.
  package var check: UInt32 = 0

  package init(
    number: Int, kind: StepKind, actor: UInt32, at: Instant, deadline: Instant?,
    entropyDrawn: UInt64, rowCount: Int
  ) {
    self.number = number
    self.kind = kind
    self.actor = actor
    self.at = at
    self.deadline = deadline
    self.entropyDrawn = entropyDrawn
    self.rowCount = rowCount
  }
}

/// An actor's step: the input, its time, and all outputs.
package struct StepRecord: Sendable {
  /// The actor's number in its take, counted from 1.
  package var actor: UInt32
  package var at: Instant
  package var input: any RecordedInput
  package var outputs: any RecordedOutputs
  /// The machine's deadline after the step.
  package var deadline: Instant?
  /// The number of random bytes that the actor has drawn, up to and including this step.
  package var entropyDrawn: UInt64

  package init(
    actor: UInt32, at: Instant, input: any RecordedInput, outputs: any RecordedOutputs,
    deadline: Instant?, entropyDrawn: UInt64
  ) {
    self.actor = actor
    self.at = at
    self.input = input
    self.outputs = outputs
    self.deadline = deadline
    self.entropyDrawn = entropyDrawn
  }
}

// MARK: - StepChain

/// A digest chained over everything in a take.
///
/// The digest after a step is the SHA-256 of the previous digest, the step's head and all its rows
/// in order, each value with its type and length. So any change, removal or insertion in a file
/// shows at its step, without a replay.
struct StepChain: ~Copyable {
  private(set) var digest: [UInt8]
  private var sha = SHA256()
  private var message = ValueBytes()

  /// Starts with the `take` row's digest.
  init(takeDigest: [UInt8]) { digest = takeDigest }

  /// Adds a step; returns the new digest's first four bytes.
  mutating func advance(_ head: borrowing StepHead, _ rows: borrowing RowList, _ range: Range<Int>)
    -> UInt32
  {
    message.removeAll()
    digest.withUnsafeBytes { message.append($0) }
    message.append(word: UInt64(head.number))
    message.append(byte: head.kind.rawValue)
    message.append(word: UInt64(head.actor))
    message.append(word: UInt64(bitPattern: head.at.nanoseconds))
    message.append(byte: head.deadline == nil ? 0 : 1)
    message.append(word: UInt64(bitPattern: head.deadline?.nanoseconds ?? 0))
    message.append(word: head.entropyDrawn)
    message.append(word: UInt64(range.count))
    message.update(&sha, 0..<message.count)
    // Rows are hashed in place, in the form in which they are stored.
    rows.bytes.update(&sha, rows.range(range))
    sha.finish(into: &digest)
    return UInt32(digest[0]) << 24 | UInt32(digest[1]) << 16 | UInt32(digest[2]) << 8
      | UInt32(digest[3])
  }
}

extension [UInt8] {
  static func digest(of values: [Value]) -> [UInt8] {
    var sha = SHA256()
    let message = ValueBytes(values)
    message.update(&sha, 0..<message.count)
    return sha.finish()
  }
}

// MARK: - TapeBody

/// Consecutive step heads in compact form: the column `tape.body`.
///
/// Per step: one byte with kind (low 4 bits) and flags; the actor, if it is not the previous
/// step's; the time since the previous step; the deadline relative to that time, if it changed; the
/// number of newly drawn random bytes, if any; the number of rows; and 4 bytes of the chained
/// digest. Numbers are LEB128, signed ones zigzag-encoded. Each body is independent of the previous
/// one.
struct TapeBody {
  private static let otherActor: UInt8 = 0x10
  private static let newDeadline: UInt8 = 0x20
  private static let noDeadline: UInt8 = 0x40
  private static let moreEntropy: UInt8 = 0x80

  /// A body's step limit; a writer begins a new body long before.
  static let stepLimit = 65_536
  private static let actorLimit = 4_096

  /// The values that the next step is encoded relative to.
  private struct Memory {
    var actor: UInt32 = 0
    var at: Int64
    var actors: [(actor: UInt32, deadline: Instant?, entropyDrawn: UInt64)] = []

    /// Returns the index of an actor's last deadline and counter.
    mutating func index(of actor: UInt32) -> Int {
      if let known = actors.firstIndex(where: { $0.actor == actor }) { return known }
      actors.append((actor, nil, 0))
      return actors.count - 1
    }
  }

  // MARK: Writing

  private(set) var count = 0
  private var writer = ByteWriter()
  private var memory: Memory
  /// The time that the first step is encoded relative to.
  let start: Int64

  init(start: Int64) {
    self.start = start
    memory = Memory(at: start)
  }

  var bytes: [UInt8] { writer.bytes }

  mutating func append(_ head: StepHead) {
    let index = memory.index(of: head.actor)
    let last = memory.actors[index]
    var flags = head.kind.rawValue
    if head.actor != memory.actor { flags |= TapeBody.otherActor }
    if head.deadline != last.deadline {
      flags |= head.deadline == nil ? TapeBody.noDeadline : TapeBody.newDeadline
    }
    if head.entropyDrawn != last.entropyDrawn { flags |= TapeBody.moreEntropy }
    writer.uint8(flags)
    if flags & TapeBody.otherActor != 0 { writer.variable(UInt64(head.actor)) }
    writer.variable(zigzag(head.at.nanoseconds &- memory.at))
    if flags & TapeBody.newDeadline != 0, let deadline = head.deadline {
      writer.variable(zigzag(deadline.nanoseconds &- head.at.nanoseconds))
    }
    if flags & TapeBody.moreEntropy != 0 {
      writer.variable(head.entropyDrawn &- last.entropyDrawn)
    }
    writer.variable(UInt64(head.rowCount))
    writer.uint32(head.check)
    memory.actor = head.actor
    memory.at = head.at.nanoseconds
    memory.actors[index] = (head.actor, head.deadline, head.entropyDrawn)
    count += 1
  }

  // MARK: Reading

  /// Parses a body's heads; throws if it does not contain exactly `count`.
  static func heads(_ bytes: RawSpan, first: Int, count: Int, start: Int64) throws(ReadError)
    -> [StepHead]
  {
    // A step has at least 7 bytes, so a body cannot claim more steps than it has room for.
    guard count >= 0, count <= min(stepLimit, bytes.byteCount / 7) else { throw .malformed }
    var reader = ByteReader(bytes)
    var memory = Memory(at: start)
    var heads: [StepHead] = []
    heads.reserveCapacity(count)
    for offset in 0..<count {
      heads.append(try head(&reader, number: first + offset, &memory))
      guard memory.actors.count <= actorLimit else { throw .malformed }
    }
    guard reader.isAtEnd else { throw .malformed }
    return heads
  }

  private static func head(_ reader: inout ByteReader, number: Int, _ memory: inout Memory)
    throws(ReadError) -> StepHead
  {
    let flags = try reader.uint8()
    guard let kind = StepKind(rawValue: flags & 0x0f) else { throw .malformed }
    let actor =
      flags & otherActor != 0
      ? UInt32(truncatingIfNeeded: try reader.variable()) : memory.actor
    let index = memory.index(of: actor)
    let at = memory.at &+ unzigzag(try reader.variable())
    var deadline = memory.actors[index].deadline
    if flags & noDeadline != 0 { deadline = nil }
    if flags & newDeadline != 0 {
      deadline = Instant(nanoseconds: at &+ unzigzag(try reader.variable()))
    }
    var drawn = memory.actors[index].entropyDrawn
    if flags & moreEntropy != 0 { drawn &+= try reader.variable() }
    let rows = try reader.variable()
    guard rows <= UInt64(RowNumber.perStep) else { throw .malformed }
    var head = StepHead(
      number: number, kind: kind, actor: actor, at: Instant(nanoseconds: at), deadline: deadline,
      entropyDrawn: drawn, rowCount: Int(rows))
    head.check = try reader.uint32()
    memory.actor = actor
    memory.at = at
    memory.actors[index] = (actor, deadline, drawn)
    return head
  }
}

private func zigzag(_ value: Int64) -> UInt64 { UInt64(bitPattern: value << 1 ^ value >> 63) }

private func unzigzag(_ value: UInt64) -> Int64 {
  Int64(bitPattern: value >> 1) ^ -Int64(bitPattern: value & 1)
}

extension ByteReader {
  /// Reads an unsigned LEB128 integer.
  fileprivate mutating func variable() throws(ReadError) -> UInt64 {
    var value: UInt64 = 0
    var shift: UInt64 = 0
    while true {
      let byte = try uint8()
      guard shift < 64 else { throw .malformed }
      value |= UInt64(byte & 0x7f) << shift
      if byte & 0x80 == 0 { return value }
      shift += 7
    }
  }
}

// MARK: - TapeChunk

/// Consecutive steps with their recorded rows.
package struct TapeChunk: Sendable {
  /// A step as recorded.
  package struct Step: Sendable {
    package var head: StepHead
    /// The actor's peer number; nil if it is not an endpoint.
    package var peer: UInt32?
    /// An endpoint's input; nil for another machine.
    ///
    /// It is stored inline, because nearly all inputs belong to endpoints and an existential would
    /// allocate for each.
    package private(set) var peerInput: PeerInput?
    private var otherInput: (any RecordedInput)?
    /// The step's rows in `rows`: first the input's, then the outputs'.
    package var rows: Range<Int>
    /// The number of rows that belong to the input.
    package var inputRowCount: Int

    /// Creates an endpoint's step.
    init(
      head: StepHead, peer: UInt32?, input: consuming PeerInput, rows: Range<Int>,
      inputRowCount: Int
    ) {
      (self.head, self.peer, self.rows, self.inputRowCount) = (head, peer, rows, inputRowCount)
      peerInput = input
    }

    /// Creates another machine's step.
    init(
      head: StepHead, peer: UInt32?, other input: any RecordedInput, rows: Range<Int>,
      inputRowCount: Int
    ) {
      (self.head, self.peer, self.rows, self.inputRowCount) = (head, peer, rows, inputRowCount)
      otherInput = input
    }

    /// The input, for any kind of machine.
    package var input: any RecordedInput {
      get {
        if let peerInput { return peerInput }
        return otherInput ?? UnknownInput(stepKind: head.kind)
      }
      set {
        peerInput = newValue as? PeerInput
        otherInput = peerInput == nil ? newValue : nil
      }
    }

    package func writeInput(to transcript: inout Transcript) {
      if let peerInput {
        transcript.append(peerInput)
      } else {
        otherInput?.write(to: &transcript)
      }
    }

    /// The actor's display name: `peer 1` or `actor 2`.
    package var actorName: String { ActorWords.name(actor: head.actor, peer: peer) }

    package var outputRows: Range<Int> { rows.lowerBound + inputRowCount..<rows.upperBound }
    package var inputRows: Range<Int> { rows.lowerBound..<rows.lowerBound + inputRowCount }
  }

  package internal(set) var steps: [Step] = []
  package internal(set) var rows = RowList()

  package init() {}

  /// Removes all steps but keeps the capacity.
  mutating func removeAll() {
    steps.removeAll(keepingCapacity: true)
    rows.removeAll()
  }
}
