package import Media
package import Tape
package import Wire

/// Runs the stack with a take's inputs and writes its behaviour into a new take.
///
/// Unlike a replay, it continues after a difference. A recorded timer fires if this stack has set
/// it too. A timer that only this stack has set fires when it is due. If the stack behaves as
/// recorded, the new take therefore has the same steps as the recorded one.
package final class Redrive {
  /// How the new take is made.
  package struct Options: Sendable {
    /// Whether recorded frames replace the codecs.
    package var skipsCodecs = false
    /// The parts of DTLS and SRTP that come from the recording.
    package var security: RecordedSecurity.Parts = []
    /// The `take` row of the new take; nil copies the old one.
    package var header: TakeHeader?
    /// Changes an input before it is applied, for example the settings in a genesis.
    package var adapt: @Sendable (any RecordedInput) -> any RecordedInput = { $0 }
    package init() {}
  }

  /// How the new take compares with the recorded one.
  package struct Summary: Hashable, Sendable {
    /// The number of steps in the recorded take, and in the new one.
    package var recordedSteps = 0
    package var steps = 0
    /// The first recorded step that came out differently; nil if none did.
    package var firstDifference: Int?
    /// The number of recorded timers that this stack had not set, and of timers that only this
    /// stack had set.
    package var timersLeftOut = 0
    package var timersAdded = 0
  }

  private let path: String
  private let reader: TapeReader
  private let source: StepSource
  private let copy: TakeCopy
  private let adapt: @Sendable (any RecordedInput) -> any RecordedInput
  private var actors: DrivenActors
  /// Each actor's deadline in the recording, after the last step so far.
  private var recordedDeadlines: [Instant?] = []
  private var transcript: Transcript
  /// A second transcript in the recorded take's format; nil if the new take is written in the same
  /// format and contains media exactly if the recorded take does.
  private var comparison: Transcript?
  private var now = Instant.zero
  private var summary = Summary()

  /// The maximum number of timers that fire one after another without time advancing.
  private static let timersPerInstant = 256

  /// Opens a take, and creates the new one, which must not exist.
  package init(
    path: String, output: String, options: Options = Options(),
    kinds: MachineKinds = MachineKinds(), codecs: @escaping () -> any CodecFactory,
    peer: @escaping (any CodecFactory) -> any ReplayedPeer
  ) throws(TapeError) {
    self.path = path
    var options = options
    let reader = try TapeReader(path: path, kinds: kinds)
    if try OwnCodecCheck.needsFrames(reader, codecs: codecs) { options.skipsCodecs = true }
    if let redacted = reader.header.redacted {
      options.security.formUnion(redacted.security)
      options.skipsCodecs = options.skipsCodecs || redacted.parts.contains(.media)
    }
    adapt = options.adapt
    self.reader = reader
    source = StepSource { () throws(TapeFault) in try reader.next() }
    let script =
      options.skipsCodecs
      ? try FrameScript(path: path, keepsMedia: reader.header.keepsMedia) : nil
    actors = DrivenActors(
      script: script, security: options.security, kinds: kinds, codecs: codecs, peer: peer)
    actors.scriptsObservers = reader.header.redacted?.parts.contains(.media) ?? false
    script?.follow(source)
    let header = options.header ?? reader.header
    copy = try TakeCopy(path: output, header: header)
    transcript = Transcript(
      keepsMedia: header.keepsMedia, hashesMedia: !options.skipsCodecs, format: header.format)
    if header.format != reader.header.format || header.keepsMedia != reader.header.keepsMedia {
      comparison = Transcript(
        keepsMedia: reader.header.keepsMedia, hashesMedia: !options.skipsCodecs,
        format: reader.header.format)
    }
  }

  var drivenActors: [DrivenActor] { actors.all }

  /// Applies all inputs; throws if the take cannot be read or the new one cannot be written.
  package func run(progress: (Instant) -> Void = { _ in }) throws(TapeError) -> Summary {
    let isComplete = reader.ending != nil
    while let chunk = try nextChunk() {
      for step in chunk.steps { try follow(step, chunk.rows) }
      try actors.requireKnown(path)
      progress(now)
    }
    try copy.finish(isComplete: isComplete)
    summary.steps = copy.steps
    return summary
  }

  private func nextChunk() throws(TapeError) -> TapeChunk? {
    do throws(TapeFault) {
      return try source.next()
    } catch {
      throw error.reason(path)
    }
  }

  // MARK: Steps

  private func follow(_ step: TapeChunk.Step, _ rows: RowList) throws(TapeError) {
    try fireTimers(before: step.head.at)
    summary.recordedSteps += 1
    let index = actors.index(of: step, rows)
    if index == recordedDeadlines.count {
      recordedDeadlines.append(nil)
      let words = ActorWords(step, rows)
      transcript.adopt(words, of: step.head.actor)
      comparison?.adopt(words, of: step.head.actor)
    }
    defer { recordedDeadlines[index] = step.head.deadline }
    if step.head.kind == .deadline, !wantsTimer(index, at: step.head.at) {
      summary.timersLeftOut += 1
      record(step.head.number)
      return
    }
    now = max(now, step.head.at)
    var step = step
    let recordedAt = step.head.at
    step.head.at = now
    step.input = adapt(step.input)
    let (outputs, actor) = actors.execute(step, rows)
    let head = try write(step.input, outputs, actor)
    if now != recordedAt || head.deadline != step.head.deadline
      || head.entropyDrawn != step.head.entropyDrawn || !isSame(rows, step.rows)
    {
      record(step.head.number)
    }
  }

  /// Returns the deadline that only this stack has set; nil if its deadline is as recorded or it
  /// has none.
  private func freeTimer(_ index: Int) -> Instant? {
    let due = actors.all[index].deadline
    return due == recordedDeadlines[index] ? nil : due
  }

  /// Returns whether the stack has set the same timer as the recording, or has one that is due.
  private func wantsTimer(_ index: Int, at instant: Instant) -> Bool {
    guard let due = actors.all[index].deadline else { return false }
    return due == recordedDeadlines[index] || due <= instant
  }

  /// Fires the timers that only this stack has set and that are due before an instant.
  private func fireTimers(before limit: Instant) throws(TapeError) {
    var budget = Redrive.timersPerInstant
    while budget > 0 {
      var chosen: (index: Int, due: Instant)?
      for index in actors.all.indices {
        guard let due = freeTimer(index), due < limit, due < chosen?.due ?? limit else { continue }
        chosen = (index, due)
      }
      guard let chosen else { return }
      budget = chosen.due > now ? Redrive.timersPerInstant : budget - 1
      now = max(now, chosen.due)
      summary.timersAdded += 1
      record(summary.recordedSteps + 1)
      let actor = actors.all[chosen.index]
      let input = actor.machine.deadlineInput
      _ = try write(input, actor.apply(input, at: now), actor)
    }
  }

  private func record(_ step: Int) {
    if summary.firstDifference == nil { summary.firstDifference = step }
  }

  /// Writes an input and its outputs to the new take, and to the second transcript if there is one.
  private func write(
    _ input: any RecordedInput, _ outputs: any RecordedOutputs, _ actor: DrivenActor
  ) throws(TapeError) -> StepHead {
    transcript.begin(actor: actor.number, at: now)
    input.write(to: &transcript)
    outputs.write(to: &transcript)
    if var other = comparison {
      comparison = nil
      other.begin(actor: actor.number, at: now)
      input.write(to: &other)
      outputs.write(to: &other)
      comparison = other
    }
    let rows = transcript.rows
    let head = StepHead(
      number: copy.steps + 1, kind: input.stepKind, actor: actor.number, at: now,
      deadline: actor.deadline, entropyDrawn: actor.entropyDrawn, rowCount: rows.count)
    try copy.append(head, rows, 0..<rows.count)
    return head
  }

  /// Returns whether the step's rows equal the recorded rows.
  private func isSame(_ rows: RowList, _ range: Range<Int>) -> Bool {
    StepDifference(
      recorded: rows, range, replayed: (comparison ?? transcript).rows,
      comparesMedia: actors.script == nil) == nil
  }
}

// MARK: - CommonRun

/// How much of two takes is equal, counted from the beginning, for example when two builds ran the
/// same session.
package struct CommonRun: Hashable, Sendable, Codable {
  /// The number of equal steps at the beginning.
  package var steps = 0
  /// The time of the last equal step.
  package var atNanoseconds: Int64 = 0
  /// A description of the first difference; nil if there is none.
  package var difference: String?
  /// The fields of both messages if a message differs.
  package var fields: [FieldPair] = []

  /// Compares two takes up to the first difference.
  package init(_ left: String, _ right: String) throws(TapeError) {
    let readers = (try TapeReader(path: left), try TapeReader(path: right))
    while true {
      let before = try readers.0.chunk(steps: 1)
      let after = try readers.1.chunk(steps: 1)
      guard let before, let after else {
        if before != nil || after != nil {
          difference = "\(before == nil ? left : right) ends after step \(steps)"
        }
        return
      }
      if let found = compare(before, after) {
        difference = found
        return
      }
      steps += 1
      atNanoseconds = before.steps[0].head.at.nanoseconds
    }
  }

  private mutating func compare(_ before: TapeChunk, _ after: TapeChunk) -> String? {
    let (left, right) = (before.steps[0], after.steps[0])
    let (here, there) = (InputText(left).line, InputText(right).line)
    let inputs =
      here != there || left.inputRowCount != right.inputRowCount
      || !before.rows.equals(left.inputRows, after.rows, right.inputRows)
    if inputs {
      fields = [FieldPair(name: "input", recorded: here, replayed: there).withoutSecrets]
      if let row = left.inputRows.last, let other = right.inputRows.last,
        before.rows.table(row) == after.rows.table(other)
      {
        fields = FieldPair.pairs(
          .value(recorded: row, replayed: other, column: 0), before.rows, after.rows
        ).filter { !$0.isEqual }
      }
      return SecretText.hidden(in: "different inputs: \(here), and \(there)")
    }
    var outputs = RowList()
    for row in right.outputRows { outputs.append(after.rows, row) }
    if let found = StepDifference(
      recorded: before.rows, left.outputRows, replayed: outputs, comparesMedia: true)
    {
      fields = FieldPair.pairs(found, before.rows, outputs).filter { !$0.isEqual }
      return "different outputs after \(here)"
    }
    if left.head.deadline != right.head.deadline {
      return "different deadlines after \(here): \(FieldPair.text(left.head.deadline)), and "
        + FieldPair.text(right.head.deadline)
    }
    if left.head.entropyDrawn != right.head.entropyDrawn {
      return "different random bytes drawn after \(here): \(left.head.entropyDrawn), and "
        + "\(right.head.entropyDrawn)"
    }
    return nil
  }
}
