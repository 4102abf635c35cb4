import Wire

/// The compact form of the heads of consecutive steps: `tape.body`.
///
/// Per step: one byte of kind (low 4 bits) and flags, then the actor when it is not that of the
/// step before, the time since the step before, the deadline after that time when it changed, the
/// newly drawn random bytes when there are any, the number of rows, and 4 bytes of the chained
/// digest. Numbers are LEB128, signed ones in zigzag form. Nothing is carried over from one body to
/// the next.
struct TapeBody {
  private static let otherActor: UInt8 = 0x10
  private static let newDeadline: UInt8 = 0x20
  private static let noDeadline: UInt8 = 0x40
  private static let moreEntropy: UInt8 = 0x80

  /// How many steps and actors a body may have; a writer begins a new one long before.
  static let stepLimit = 65_536
  private static let actorLimit = 4_096

  /// What the next step is told relative to.
  private struct Memory {
    var actor: UInt32 = 0
    var at: Int64
    var actors: [(actor: UInt32, deadline: Instant?, entropyDrawn: UInt64)] = []

    /// Where an actor's last deadline and counter stand.
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
  /// The time that the first step is told relative to.
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

  /// Reads the heads of a body; throws when it does not hold exactly so many.
  static func heads(_ bytes: RawSpan, first: Int, count: Int, start: Int64) throws(ReadError)
    -> [StepHead]
  {
    // A step takes at least 7 bytes, so a body cannot claim more steps than it can hold.
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
  /// Reads an unsigned integer in 7-bit groups, lowest first (LEB128).
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
