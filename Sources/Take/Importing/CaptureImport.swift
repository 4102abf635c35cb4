import FoundationEssentials
package import Observer
import Peer
package import Tape
import Wire

/// Feeds a packet capture to an observer, and records the observer's inputs and outputs.
///
/// Packets that belong to no call are counted and dropped.
package final class CaptureImport {
  private let writer: TapeWriter
  private let actor: UInt32
  private let machine = ObserverMachine()
  private var gate: CallGate
  private var keyLogs = KeyLogGate()
  private var outbox = Outbox<ObserverOutput>()
  private var now = Instant.zero
  private let began: Int64
  package private(set) var summary: CaptureSummary
  private(set) var steps = 0
  /// The reasons why parts of the capture could not be observed, reported at the end.
  private var obstacles: [(kind: CoverageKind, count: UInt64, detail: String)] = []

  /// Records the observer's genesis as the first step.
  ///
  /// - Parameter began: the Unix time of the take's zero instant, in nanoseconds.
  init(_ writer: TapeWriter, _ genesis: ObserverGenesis, began: Int64, take: String) {
    self.writer = writer
    self.began = began
    gate = CallGate(pathsMaximum: genesis.pathsMaximum ?? ObserverSettings.usualPathsMaximum)
    summary = CaptureSummary(take: take)
    actor = writer.addActor(.observer, label: "observer")
    step(.genesis(genesis))
  }

  /// The error after which nothing more can be written to the take; nil if there was none.
  package var error: TapeError? { writer.error }

  /// Calls the observer, for example to add keys, and records the call as a step.
  package func apply(_ call: ObserverCall) { step(.call(call)) }

  /// Applies the key log lines for calls seen so far; the other lines wait until their calls
  /// appear.
  package func receive(keyLog lines: String) {
    if let lines = keyLogs.receive(lines) { step(.call(.keyLog(lines))) }
  }

  /// Passes a capture event to the observer.
  package func show(_ event: CaptureEvent, of reader: borrowing CaptureReader) {
    switch event {
    case .datagram(let datagram): show(RingPacket(datagram, reader))
    case .stream(let piece): show(RingPacket(piece, reader))
    case .secrets(.tlsKeyLog, let place):
      let text = String(decoding: [UInt8](reader.bytes(place)), as: UTF8.self)
      receive(keyLog: text)
    case .dropped(let count): recordDropped(count)
    case .secrets, .comment: break
    }
  }

  /// Records frames that the capturing system lost.
  package func recordDropped(_ count: UInt64) {
    guard count > 0 else { return }
    summary.dropped +|= count
    apply(
      .notSeen(
        kind: CoverageKind.dropped.rawValue, count: count,
        detail: "the capturing system lost frames"))
  }

  /// Ends the capture; returns its summary.
  func finish(_ counters: CaptureCounters) throws(TapeError) -> CaptureSummary {
    if counters.cutBytes > 0 {
      obstacles.append((.cutCapture, counters.cutBytes, "bytes of a record that is not whole"))
    } else if counters.hasIncompleteCompression {
      obstacles.append((.cutCapture, 1, "the compressed data end early"))
    }
    if counters.damagedRecords > 0 {
      obstacles.append(
        (.damagedCapture, counters.damagedRecords, "records of \(counters.damagedBytes) bytes"))
    }
    if counters.framesOutsideOfTime > 0 {
      obstacles.append(
        (
          .outsideOfTime, counters.framesOutsideOfTime,
          "dated before 1823 or after 2116; their times go on from the frames before"
        ))
    }
    if counters.unread.hidingMedia > 0 {
      obstacles.append(
        (.unread, counters.unread.hidingMedia, counters.unread.words(hidingMedia: true)))
    }
    if summary.ofNoCall > 0 { obstacles.append((.ignored, summary.ofNoCall, "of no call")) }
    if keyLogs.secrets > 0, keyLogs.fitting == 0 {
      obstacles.append(
        (.unusedKeyLog, keyLogs.secrets, "secrets of a key log, none of an association seen here"))
      summary.notes.append(CaptureSummary.noFittingSecret(keyLogs.secrets))
    } else if keyLogs.logs > 0, keyLogs.secrets == 0 {
      summary.notes.append(CaptureSummary.noSecrets("the key log"))
    }
    for (kind, count, detail) in obstacles {
      apply(.notSeen(kind: kind.rawValue, count: count, detail: detail))
    }
    step(.call(.end))
    let written = try writer.finish()
    summary.steps = written.steps
    summary.bytes = written.bytes
    summary.frames = counters.frames
    summary.duplicates = counters.duplicates
    return summary
  }

  /// Advances to a time; an earlier time is ignored, because captures from several interfaces are
  /// not always in order.
  package func pass(to unixNanoseconds: Int64) {
    let at = instant(unixNanoseconds)
    while let due = machine.deadline, due < at {
      now = max(now, due)
      step(.deadline)
    }
    now = max(now, at)
  }

  private func instant(_ unixNanoseconds: Int64) -> Instant {
    Instant(nanoseconds: unixNanoseconds -| began)
  }

  // MARK: Packets

  /// Feeds a packet to the observer unless it belongs to no call.
  func show(_ packet: RingPacket) {
    packet.tuple.transport == .tcp ? showPiece(packet) : showDatagram(packet)
  }

  private func showDatagram(_ datagram: RingPacket) {
    summary.datagrams += 1
    let (tuple, bytes) = (datagram.tuple, datagram.bytes)
    let descriptions = SignalingText.descriptions(in: bytes)
    if !descriptions.isEmpty { pass(to: datagram.at) }
    for description in descriptions { apply(.signaling(description)) }
    let verdict = gate.examine(
      tuple, bytes, isTruncated: datagram.isTruncated, at: instant(datagram.at),
      ecn: datagram.ecn, isKnown: machine.knows(tuple), isRelay: machine.knowsRelay(tuple),
      isFull: machine.isFull)
    switch verdict {
    case .refused: summary.ofNoCall += 1
    // A datagram counts as belonging to no call until its association is identified.
    case .waiting: summary.ofNoCall += 1
    case .admitted:
      pass(to: datagram.at)
      step(
        .datagram(
          Datagram(
            local: tuple.source, remote: tuple.destination, bytes: bytes, ecn: datagram.ecn),
          isTruncated: datagram.isTruncated, arrival: now))
    case .admittedWith(let packets):
      pass(to: datagram.at)
      // All these packets except the current one were counted as belonging to no call when they
      // arrived.
      summary.ofNoCall -= min(summary.ofNoCall, UInt64(packets.dropFirst().count))
      for packet in packets {
        step(
          .datagram(
            Datagram(
              local: packet.tuple.source, remote: packet.tuple.destination, bytes: packet.bytes,
              ecn: packet.ecn),
            isTruncated: packet.isTruncated, arrival: min(packet.at, now)))
      }
    }
  }

  private func showPiece(_ piece: RingPacket) {
    let verdict = gate.examine(piece.tuple, piece.bytes, lost: piece.lost, isEnd: piece.isEnd)
    if let (kind, detail) = verdict.obstacle {
      count(kind, detail)
    } else if verdict.isRefused {
      summary.ofNoCall += 1
    }
    guard !verdict.isRefused else { return }
    pass(to: piece.at)
    for description in verdict.descriptions { apply(.signaling(description)) }
    guard let bytes = verdict.bytes else { return }
    apply(
      .segment(
        source: piece.tuple.source.description, destination: piece.tuple.destination.description,
        bytes: Data(bytes), lost: piece.lost, isEnd: piece.isEnd))
  }

  private func count(_ kind: CoverageKind, _ detail: String) {
    if let known = obstacles.firstIndex(where: { $0.kind == kind }) {
      obstacles[known].count += 1
    } else {
      obstacles.append((kind, 1, detail))
    }
  }

  // MARK: Steps

  private func step(_ input: ObserverInput) {
    record(input)
    // If the observer has not finished its work, it continues in deadline steps.
    while machine.isBehind { record(.deadline) }
  }

  private func record(_ input: ObserverInput) {
    machine.step(input, at: now, into: &outbox)
    var outputs: [ObserverOutput] = []
    var secrets: [String] = []
    while let output = outbox.next() {
      // Most outputs are packets, which need no rows of their own, because they use those of the
      // input.
      if let isClear = output.isPacketInClear {
        if !output.isData { summary.countPacket(isClear: isClear) }
        if output.hasRows { outputs.append(output) }
        continue
      }
      summary.count(output)
      if case .output(.handshake(_, let facts)) = output.content,
        let lines = keyLogs.open(facts.name)
      {
        secrets.append(lines)
      }
      outputs.append(output)
    }
    steps += 1
    writer.record(
      StepRecord(
        actor: actor, at: now, input: input, outputs: OutputList(outputs),
        deadline: machine.deadline, entropyDrawn: machine.entropyDrawn))
    for lines in secrets { step(.call(.keyLog(lines))) }
  }
}

// MARK: - CaptureNotes

/// The parts of a capture that are not packets: secrets, and notes that a Retake export wrote.
struct CaptureNotes {
  private(set) var keyLogs: [String] = []
  private(set) var srtpKeys: [String] = []
  private(set) var descriptions: [String] = []
  /// Descriptions found in signaling.
  private(set) var signaling: [String] = []
  /// The parts of calls that the exported take's observer was configured not to see.
  private(set) var notSeen: [ObserverCall] = []
  /// The genesis of the exported take's observer; nil if the capture states none.
  private(set) var genesis: ObserverGenesis?

  /// Returns the Unix time in nanoseconds at which the exported take began; nil if it is unknown or
  /// implausible.
  ///
  /// The take began before the first packet if the export left out earlier packets.
  func start(before first: Int64) -> Int64? {
    let start = genesis?.startUnixNanoseconds ?? 0
    return start > 0 && start <= first && first - start < CaptureNotes.leadMaximum ? start : nil
  }

  /// The maximum time between the take's beginning and the first packet: a day, in nanoseconds.
  private static let leadMaximum: Int64 = 86_400_000_000_000
  /// The maximum size of all notes in bytes, and the maximum number of notes of each kind; a
  /// capture may contain any number.
  private static let bytesMaximum = 64 << 20
  private static let textsMaximum = 4096
  private var bytes = 0

  /// Counts a note towards the maximum size; returns false if there is no room for it.
  private mutating func hasRoom(for text: String, _ count: Int) -> Bool {
    guard count < CaptureNotes.textsMaximum, bytes + text.utf8.count <= CaptureNotes.bytesMaximum
    else { return false }
    bytes += text.utf8.count
    return true
  }

  /// Reads secrets and comments; ignores all other events.
  mutating func read(_ event: CaptureEvent, of reader: borrowing CaptureReader) {
    switch event {
    case .secrets(.tlsKeyLog, let place):
      let lines = String(decoding: [UInt8](reader.bytes(place)), as: UTF8.self)
      if hasRoom(for: lines, keyLogs.count) { keyLogs.append(lines) }
    case .comment(let text):
      if let description = CaptureMark.description.content(of: text) {
        if hasRoom(for: description, descriptions.count) { descriptions.append(description) }
      } else if let key = CaptureMark.srtpKey.content(of: text) {
        if hasRoom(for: key, srtpKeys.count) { srtpKeys.append(key) }
      } else if let description = CaptureMark.signaling.content(of: text) {
        if hasRoom(for: description, signaling.count) { signaling.append(description) }
      } else if let arguments = CaptureMark.notSeen.content(of: text) {
        if let call = CanonicalJSON.value(
          ObserverCall.self, from: "{\"notSeen\":\(arguments)}")
        {
          if hasRoom(for: arguments, notSeen.count) { notSeen.append(call) }
        }
      } else if let configuration = CaptureMark.observer.content(of: text) {
        genesis = CanonicalJSON.value(ObserverGenesis.self, from: configuration)?.ofAFile
      }
    case .secrets, .dropped, .datagram, .stream: break
    }
  }
}

extension CaptureCounters {
  /// Returns the error for a capture without readable UDP or TCP data, which names what the capture
  /// contains instead.
  ///
  /// - Parameter name: the capture's name.
  package func nothingFound(in name: String) -> TapeError {
    let name = PrintableText.line(name)
    guard frames > 0 else {
      return TapeError(path: name, place: "", reason: "it contains no packet")
    }
    let contents = [
      unread.words(),
      Self.words(malformed, "with damaged or truncated headers"),
      Self.words(
        fragmentsDropped +| waitingFragments,
        "that are fragments of incomplete datagrams"),
    ].filter { !$0.isEmpty }
    let only = contents.isEmpty ? "" : ", only " + contents.joined(separator: ", ")
    return TapeError(
      path: name, place: "", reason: "it contains no readable UDP or TCP data\(only)")
  }

  /// The number of fragments that were still waiting for the rest of their datagram at the end; 0
  /// if any datagram was reassembled.
  private var waitingFragments: UInt64 {
    reassembled == 0 ? fragments - min(fragments, fragmentsDropped) : 0
  }

  /// A phrase that names the unread parts of a capture in which a call may be hidden; empty if
  /// there are none.
  var placesForCalls: String {
    unread.hidingMedia > 0 ? "; not opened: \(unread.words(hidingMedia: true))" : ""
  }

  private static func words(_ count: UInt64, _ kind: String) -> String {
    switch count {
    case 0: ""
    case 1: "1 packet \(kind)"
    default: "\(count) packets \(kind)"
    }
  }
}
