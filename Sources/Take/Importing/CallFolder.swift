import FoundationEssentials
import Observer
package import Tape
import Wire

/// Creates a take of each call that a capture holds.
///
/// The capture is read more than once: first to find the calls, then for as many takes at a time as
/// may be open together. Memory grows with neither.
package struct CallFolder {
  /// A take that is being written.
  private struct Open {
    var call: Int
    var file: WholeFile
    var recorder: CaptureRecorder
    var path: String
  }

  private let capture: String
  private let folder: String
  private let settings: ImportSettings
  /// What becomes of takes that are there.
  private let present: WholeFile.Present
  private let reports: ImportReports

  /// - Parameters:
  ///   - capture: the file, which is read more than once.
  ///   - folder: where the takes go; it is made if it is not there.
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

  /// Each has a file, its journal and a thread's attention.
  private static let openMaximum = 64

  /// Writes the takes.
  package func write() throws -> CallsReport {
    let survey = CallSurvey(
      descriptions: settings.descriptions, pathsMaximum: settings.pathsMaximum)
    let counters = try read("looking for calls", isAgain: false) { survey.look(at: $0, of: $1) }
    survey.finish()
    guard !survey.calls.isEmpty else {
      throw TapeError(
        path: PrintableText.line(capture), place: "",
        reason: "no call is in it\(counters.placesForCalls)")
    }
    if case .failure(let code) = NewFile.makeFolder(folder) {
      throw TapeError(
        path: folder, place: "",
        reason: "the folder cannot be made: \(code); choose another one", kind: .failed)
    }
    var report = CallsReport()
    for first in stride(from: 0, to: survey.calls.count, by: Self.openMaximum) {
      let calls = first..<min(first + Self.openMaximum, survey.calls.count)
      try write(calls, survey, &report)
    }
    reportUnusedKeys(survey, &report)
    return report
  }

  /// A key log or a key may be of one of the calls alone; of none is worth a word.
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
    settings.payloadTypes = settings.payloadTypes ?? survey.notes.genesis?.payloadTypes
    settings.isClear = settings.isClear || survey.notes.genesis?.isClear == true
    return Open(
      call: call, file: file, recorder: CaptureRecorder(settings, writing: file.temporary),
      path: path)
  }

  /// `meeting-07.take` of `meeting.pcapng.gz`.
  private func name(_ call: Int, of count: Int) -> String {
    var name = FileBytes.name(of: capture)
    for ending in ["gz", "zst", "pcapng", "pcap", "cap"] where name.hasSuffix(".\(ending)") {
      name.removeLast(ending.count + 1)
    }
    let number = String(call + 1)
    let width = String(count).count
    return "\(name)-\(String(repeating: "0", count: width - number.count))\(number).take"
  }

  /// Reads the capture from its beginning to its end.
  private func read(
    _ what: String, isAgain: Bool,
    _ each: (CaptureEvent, borrowing CaptureReader) throws -> Void
  ) throws -> CaptureCounters {
    try CaptureFeed.read(capture, what, isAgain: isAgain, reports, each)
  }
}
