import FoundationEssentials
import Observer
package import Tape
import Wire

/// Creates one take per call in a capture.
///
/// The capture is read several times: once to find the calls, and once for each batch of takes.
/// Only one batch of takes is open at a time, which limits memory.
package struct CallFolder {
  private struct Open {
    var call: Int
    var file: WholeFile
    var recorder: CaptureRecorder
    var path: String
  }

  private let capture: String
  private let folder: String
  private let settings: ImportSettings
  /// What happens if a take already exists: it is replaced, or it is kept and writing fails.
  private let present: WholeFile.Present
  private let reports: ImportReports

  /// - Parameters:
  ///   - capture: the file, which is read more than once.
  ///   - folder: the folder for the takes; created if it does not exist.
  package init(
    capture: String, folder: String, settings: ImportSettings,
    present: WholeFile.Present = .kept, reports: ImportReports = ImportReports()
  ) {
    self.capture = capture
    self.folder = folder
    self.settings = settings
    self.present = present
    self.reports = reports
  }

  /// The maximum number of takes that are open simultaneously; each needs a file, its journal and a
  /// thread.
  private static let openMaximum = 64

  /// Writes the takes, reading the capture once for each batch of up to `openMaximum` takes.
  package func write() throws -> CallsReport {
    let survey = CallSurvey(
      descriptions: settings.descriptions, pathsMaximum: settings.pathsMaximum)
    let counters = try read("looking for calls", isAgain: false) { survey.look(at: $0, of: $1) }
    survey.finish()
    guard !survey.calls.isEmpty else {
      throw TapeError(
        path: PrintableText.line(capture), place: "",
        reason: "it contains no call\(counters.placesForCalls)")
    }
    if case .failure(let code) = WholeFile.makeFolder(folder) {
      throw TapeError(
        path: folder, place: "",
        reason: "the folder cannot be created: \(code); choose another one", kind: .failed)
    }
    var report = CallsReport()
    for first in stride(from: 0, to: survey.calls.count, by: Self.openMaximum) {
      let calls = first..<min(first + Self.openMaximum, survey.calls.count)
      try write(calls, survey, &report)
    }
    reportUnusedKeys(survey, &report)
    return report
  }

  /// Reports key logs that fit none of the calls, and keeps only the notes that all takes have in
  /// common.
  ///
  /// A key normally fits only one call, so it is not worth reporting that a key was useless for one
  /// take.
  private func reportUnusedKeys(_ survey: CallSurvey, _ report: inout CallsReport) {
    let logs = settings.keyLogs + survey.notes.keyLogs
    if !logs.isEmpty,
      survey.calls.indices.allSatisfy({ survey.keyLogs(logs, for: $0).isEmpty })
    {
      report.notes.append(CaptureSummary.noFittingSecret(logs))
    }
    let first = report.takes.first?.notes ?? []
    report.notes += first.filter { note in report.takes.allSatisfy { $0.notes.contains(note) } }
    for take in report.takes.indices { report.takes[take].notes = [] }
  }

  private func write(_ calls: Range<Int>, _ survey: CallSurvey, _ report: inout CallsReport) throws
  {
    let open = try calls.map { try begin($0, survey) }
    var ofNoCall: UInt64 = 0
    let counters = try read("importing", isAgain: true) { event, reader in
      let found: Set<Int>
      switch event {
      case .datagram(let datagram): found = survey.calls(of: datagram.tuple)
      case .stream(let piece): found = survey.calls(of: piece.tuple)
      case .dropped: found = Set(calls)
      case .secrets, .comment: return
      }
      if found.isEmpty { ofNoCall += 1 }
      for call in found where calls.contains(call) {
        try open[call - calls.lowerBound].recorder.show(event, of: reader)
      }
    }
    report.ofNoCall = ofNoCall
    for take in open {
      guard var summary = try take.recorder.finish(counters) else { continue }
      try take.file.finish()
      summary.take = take.path
      report.takes.append(summary)
    }
  }

  private func begin(_ call: Int, _ survey: CallSurvey) throws -> Open {
    let name = name(call, of: survey.calls.count)
    let path = folder.hasSuffix("/") ? folder + name : "\(folder)/\(name)"
    let file = try WholeFile(path, present, isTake: true)
    let found = survey.calls[call]
    var settings = settings
    if settings.label.isEmpty {
      settings.label = found.addresses.map(\.description).joined(separator: " and ")
    }
    settings.keyLogs = survey.keyLogs(settings.keyLogs + survey.notes.keyLogs, for: call)
    settings.keepsIncomplete = false
    settings.srtpKeys += survey.notes.srtpKeys
    settings.descriptions = (settings.descriptions + survey.notes.descriptions)
      .filter { found.descriptions.contains($0) }
    settings.signaling = found.signaling
    settings.notSeen = survey.notes.notSeen
    settings.payloadTypes = settings.payloadTypes ?? survey.notes.genesis?.payloadTypes
    settings.isClear = settings.isClear || survey.notes.genesis?.isClear == true
    return Open(
      call: call, file: file, recorder: CaptureRecorder(settings, writing: file.temporary),
      path: path)
  }

  /// Returns a name such as `meeting-07.take` for `meeting.pcapng.gz`.
  private func name(_ call: Int, of count: Int) -> String {
    var name = FileBytes.name(of: capture)
    for ending in ["gz", "zst", "pcapng", "pcap", "cap"] where name.hasSuffix(".\(ending)") {
      name.removeLast(ending.count + 1)
    }
    let number = String(call + 1)
    let width = String(count).count
    return "\(name)-\(String(repeating: "0", count: width - number.count))\(number).take"
  }

  private func read(
    _ what: String, isAgain: Bool,
    _ each: (CaptureEvent, borrowing CaptureReader) throws -> Void
  ) throws -> CaptureCounters {
    try CaptureFeed.read(capture, what, isAgain: isAgain, reports, each)
  }
}

// MARK: - CallSurvey

/// Scans a capture to find out which packets belong to which call.
final class CallSurvey {
  /// A call, and the parts of the capture that concern only it.
  struct Call {
    var addresses: [SocketAddress]
    /// The client randoms that identify the call's DTLS associations in key logs.
    var associations: Set<String> = []
    var descriptions: Set<String> = []
    var signaling: [String] = []
  }

  private(set) var calls: [Call] = []
  /// Secrets and notes from all parts of the capture.
  private(set) var notes = CaptureNotes()
  private var observer: Observer
  private var gate: CallGate
  private var outbox = Outbox<Observer.Output>()
  private var began: Int64?
  private var now = Instant.zero
  /// Each transport's call number, as the observer last reported it; an earlier report may be
  /// wrong, because a transport may turn out to belong to an earlier call.
  private var callOfTransport: [Int: Int] = [:]
  /// The transports between two addresses, as the observer reported them.
  private var transports: [FiveTuple: Set<Int>] = [:]
  private var atAddress: [SocketAddress: Set<Int>] = [:]
  private var associations: [(transport: Int, name: String)] = []
  private var descriptions: [(transport: Int, text: String, how: Knowledge)] = []

  /// Returns settings that separate calls without decrypting anything.
  private static func settings(_ pathsMaximum: Int) -> ObserverSettings {
    var settings = ObserverSettings()
    settings.awaitsKeys = false
    settings.pathsMaximum = pathsMaximum
    return settings
  }

  init(descriptions: [String], pathsMaximum: Int = ObserverSettings.usualPathsMaximum) {
    observer = Observer(CallSurvey.settings(pathsMaximum))
    gate = CallGate(pathsMaximum: pathsMaximum)
    for text in descriptions { step(.description(text), nil) }
  }

  func look(at event: CaptureEvent, of reader: borrowing CaptureReader) {
    switch event {
    case .datagram(let datagram):
      pass(to: datagram.unixNanoseconds)
      look(datagram, [UInt8](reader.bytes(datagram.payload)))
    case .stream(let piece):
      pass(to: piece.unixNanoseconds)
      look(piece, [UInt8](reader.bytes(piece.payload)))
    default: read(event, of: reader)
    }
  }

  /// Reads an event that is not a packet, and passes its descriptions to the observer.
  private func read(_ event: CaptureEvent, of reader: borrowing CaptureReader) {
    let (descriptions, signaling) = (notes.descriptions.count, notes.signaling.count)
    notes.read(event, of: reader)
    for text in notes.descriptions.dropFirst(descriptions) { step(.description(text), nil) }
    for text in notes.signaling.dropFirst(signaling) { step(.description(text, .wire), nil) }
  }

  private func pass(to unixNanoseconds: Int64) {
    let began = began ?? unixNanoseconds
    self.began = began
    now = max(now, Instant(nanoseconds: unixNanoseconds -| began))
    if let due = observer.deadline, due <= now { step(.deadline, nil) }
  }

  private func look(_ datagram: CapturedDatagram, _ bytes: [UInt8]) {
    let tuple = datagram.tuple
    for text in SignalingText.descriptions(in: bytes) { step(.description(text, .wire), nil) }
    let verdict = gate.examine(
      tuple, bytes, isTruncated: datagram.isTruncated, at: now, isKnown: observer.knows(tuple),
      isRelay: observer.knowsRelay(tuple), isFull: observer.isFull)
    switch verdict {
    case .refused, .waiting: break
    case .admitted:
      step(.datagram(tuple, bytes, isTruncated: datagram.isTruncated), tuple)
    case .admittedWith(let packets):
      for packet in packets {
        step(.datagram(packet.tuple, packet.bytes, isTruncated: packet.isTruncated), packet.tuple)
      }
    }
  }

  private func look(_ piece: CapturedStreamPiece, _ bytes: [UInt8]) {
    let verdict = gate.examine(piece.tuple, bytes, lost: piece.lost, isEnd: piece.isEnd)
    for text in verdict.descriptions { step(.description(text, .wire), nil) }
    guard let bytes = verdict.bytes else { return }
    step(.stream(piece.tuple, bytes, lost: piece.lost, isEnd: piece.isEnd), piece.tuple)
  }

  private func step(_ input: Observer.Input, _ tuple: FiveTuple?) {
    observer.step(input, at: now, into: &outbox)
    while let output = outbox.next() {
      if let tuple, let transport = output.transport {
        transports[tuple, default: []].insert(transport)
      }
      switch output {
      case .transport(let transport): callOfTransport[transport.number] = transport.call
      case .candidate(let candidate):
        atAddress[candidate.address, default: []].insert(candidate.transport)
      case .handshake(let transport, let facts): associations.append((transport, facts.name))
      case .description(let description):
        descriptions.append((description.transport, description.text, description.how))
      default: break
      }
    }
  }

  // MARK: Results

  /// Ends the survey and assigns transports, associations and descriptions to calls.
  func finish() {
    step(.end, nil)
    calls = observer.calls.map { Call(addresses: $0.addresses) }
    for pair in observer.pairs {
      let tuple = FiveTuple(
        pair.transportProtocol, from: pair.addresses[0], to: pair.addresses[1])
      transports[tuple, default: []].insert(pair.transport)
      for address in pair.addresses { atAddress[address, default: []].insert(pair.transport) }
    }
    for (transport, name) in associations {
      if let call = place(transport) { calls[call].associations.insert(name) }
    }
    for (transport, text, how) in descriptions {
      guard let call = place(transport) else { continue }
      if how == .wire {
        if !calls[call].signaling.contains(text) { calls[call].signaling.append(text) }
      } else {
        calls[call].descriptions.insert(text)
      }
    }
  }

  /// Returns the calls that a packet belongs to.
  ///
  /// If no transport of a call uses the packet's pair of addresses, for example because the packet
  /// was sent to a STUN server, returns the calls that use one of the two addresses.
  func calls(of tuple: FiveTuple) -> Set<Int> {
    var found = transports[tuple, default: []].union(transports[tuple.reversed, default: []])
    if found.isEmpty {
      found = atAddress[tuple.source, default: []].union(atAddress[tuple.destination, default: []])
    }
    return Set(found.compactMap { place($0) })
  }

  /// Returns the key log lines for a call's DTLS associations.
  func keyLogs(_ logs: [String], for call: Int) -> [String] {
    let names = calls[call].associations
    return logs.compactMap { log in
      let lines = log.split(whereSeparator: \.isNewline).filter { line in
        let words = line.split(separator: " ")
        return words.count > 1 && names.contains(words[1].lowercased())
      }
      return lines.isEmpty ? nil : lines.joined(separator: "\n") + "\n"
    }
  }

  private func place(_ transport: Int) -> Int? {
    callOfTransport[transport].map { $0 - 1 }.flatMap { calls.indices.contains($0) ? $0 : nil }
  }
}
