import Crypto
package import Peer
package import Wire

/// A step without its rows, as the `tape` table stores it.
package struct StepHead: Hashable, Sendable {
  /// The number of the step, counted from 1 over the steps of all actors.
  package var number: Int
  package var kind: StepKind
  /// The number of the step's actor, counted from 1.
  package var actor: UInt32
  package var at: Instant
  /// The machine's deadline after the step; nil if it has none.
  package var deadline: Instant?
  /// The number of random bytes that the actor had drawn after this step.
  package var entropyDrawn: UInt64
  /// The number of rows that the step has in other tables.
  package var rowCount: Int
  /// The first four bytes of the digest after the step.
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

/// A step of an actor as it is recorded: the input, its time and the outputs.
package struct StepRecord: Sendable {
  /// The number of the actor in its take, counted from 1.
  package var actor: UInt32
  package var at: Instant
  package var input: any RecordedInput
  package var outputs: any RecordedOutputs
  /// The machine's deadline after the step; nil if it has none.
  package var deadline: Instant?
  /// The number of random bytes that the actor had drawn after this step.
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

/// The chain of digests, which covers everything in a take.
///
/// The digest after a step is the SHA-256 of the previous digest, the step's head and all its rows,
/// each value with its type and length. A changed, removed or inserted value in a file is therefore
/// found at its step, without a replay.
struct StepChain: ~Copyable {
  private(set) var digest: [UInt8]
  private var sha = SHA256()
  private var message = ValueBytes()

  /// Begins the chain with the digest in the `take` row.
  init(takeDigest: [UInt8]) { digest = takeDigest }

  /// Adds a step; returns the first four bytes of the digest after it.
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
    // Rows are stored in the form in which they are hashed, so nothing needs to be converted.
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

/// The heads of consecutive steps in compact form: the column `tape.body`.
///
/// A step has one byte with its kind (low 4 bits) and flags; the actor, if it is not the previous
/// step's; the time since the previous step; the deadline relative to that time, if it changed; the
/// number of newly drawn random bytes, if any; the number of rows; and 4 bytes of the digest.
/// Numbers are LEB128, signed ones zigzag-encoded. Each body can be read without the others.
struct TapeBody {
  private static let otherActor: UInt8 = 0x10
  private static let newDeadline: UInt8 = 0x20
  private static let noDeadline: UInt8 = 0x40
  private static let moreEntropy: UInt8 = 0x80

  /// The maximum number of steps in a body; a writer begins a new body long before that.
  static let stepLimit = 65_536
  private static let actorLimit = 4_096

  /// The state after the previous steps, relative to which the next step is encoded.
  private struct Memory {
    var actor: UInt32 = 0
    var at: Int64
    var actors: [(actor: UInt32, deadline: Instant?, entropyDrawn: UInt64)] = []

    /// Returns the index of an actor in `actors`; a new actor is added.
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
  /// The time relative to which the first step is encoded, in nanoseconds.
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

  /// Decodes the heads in a body; throws unless there are exactly `count`.
  static func heads(_ bytes: RawSpan, first: Int, count: Int, start: Int64) throws(ReadError)
    -> [StepHead]
  {
    // A step has at least 7 bytes, so a larger count cannot be right.
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
  /// Reads an unsigned LEB128 number.
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

/// Consecutive steps with their rows, as read from a take.
package struct TapeChunk: Sendable {
  /// A recorded step, whose rows are in its chunk.
  package struct Step: Sendable {
    package var head: StepHead
    /// The peer number of the actor; nil if it is not an endpoint.
    package var peer: UInt32?
    /// The input, if the machine is an endpoint.
    ///
    /// It is stored inline, because nearly all inputs are for endpoints, and an existential would
    /// allocate memory for each.
    package private(set) var peerInput: PeerInput?
    private var otherInput: (any RecordedInput)?
    /// The indexes of the step's rows: first the input's, then the outputs'.
    package var rows: Range<Int>
    /// The number of the step's rows that belong to the input.
    package var inputRowCount: Int

    /// Creates a step of an endpoint.
    init(
      head: StepHead, peer: UInt32?, input: consuming PeerInput, rows: Range<Int>,
      inputRowCount: Int
    ) {
      (self.head, self.peer, self.rows, self.inputRowCount) = (head, peer, rows, inputRowCount)
      peerInput = input
    }

    /// Creates a step of another machine.
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

    /// The name to show for the actor: `peer 1`, or `actor 2` if it is not an endpoint.
    package var actorName: String { ActorWords.name(actor: head.actor, peer: peer) }

    package var outputRows: Range<Int> { rows.lowerBound + inputRowCount..<rows.upperBound }
    package var inputRows: Range<Int> { rows.lowerBound..<rows.lowerBound + inputRowCount }
  }

  package internal(set) var steps: [Step] = []
  package internal(set) var rows = RowList()

  package init() {}

  /// Removes all steps, but keeps the memory for new ones.
  mutating func removeAll() {
    steps.removeAll(keepingCapacity: true)
    rows.removeAll()
  }
}
