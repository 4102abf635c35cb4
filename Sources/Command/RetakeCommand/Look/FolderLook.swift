import FoundationEssentials
import Queries
import Synchronization
import Tape
import Wire

/// Many takes, read through their catalogue.
struct FolderLook {
  let catalogue: TakeCatalogue
  /// The name by which messages refer to the takes.
  private let title: String

  /// Updates the catalogue, using all cores.
  init(_ paths: [String], _ reading: CatalogueReading = CatalogueReading()) throws {
    let list = try RetakeCommand.reading { () throws(TapeError) in try TakeList(paths) }
    title = list.title
    let work = FolderWork("reading")
    catalogue = try work.follow {
      try RetakeCommand.reading { () throws(TapeError) in
        try TakeCatalogue(list, reading: reading, jobs: FolderWork.jobs, progress: work.progress)
      }
    }
    guard !Interruption.isAsked else {
      throw CommandFailure(
        .interrupted, "\(title): reading was interrupted; what was read so far is kept")
    }
    if reading.isPart, catalogue.takeCount == 0, catalogue.failures.isEmpty {
      throw CommandFailure(
        .unmet, "\(title): no take has anything that --peer, --from and --to select")
    }
  }

  /// Shows a verb's output, then reports failures as `end` does.
  func show(
    _ verb: String, _ options: TakesOptions, _ pager: PagerOptions,
    _ findings: FindingOptions? = nil, text: (FolderLook) throws(TapeError) -> String
  ) throws {
    if options.json {
      try printJSON(verb)
    } else {
      try pager.show(try reading { () throws(TapeError) in try text(self) })
    }
    try end(findings)
  }

  /// Prints each take's JSON in the same form as for a single take.
  func printJSON(_ verb: String) throws {
    let pieces = OutputPieces(.json)
    var isFirst = true
    pieces.add("{\"takes\":[")
    try reading { () throws(TapeError) in
      try catalogue.documents(verb) { json in
        let text = verb == "info" ? JSONForm.info.text(json) : json
        pieces.add((isFirst ? "" : ",\n") + text)
        isFirst = false
      }
    }
    let unread = catalogue.failures.map { failure in
      JSONText.object([
        ("take", .text(failure.path)),
        (
          "reason",
          .text([failure.place, failure.reason].filter { !$0.isEmpty }.joined(separator: ": "))
        ),
      ])
    }
    pieces.add("],\"unread\":" + JSONText.list(unread).text + "}\n")
    try pieces.check()
  }

  /// Reports unreadable takes, and takes with findings that `--fail-on` selects, and exits with a
  /// failure status if there are any; if there are both, the status is that for findings.
  func end(_ findings: FindingOptions? = nil) throws {
    Self.report(catalogue.failures)
    let offences = try findings.map { options in
      try reading { () throws(TapeError) in try options.offences(in: catalogue) }
    }
    for offence in offences ?? [] {
      printError(
        "retake: \(offence.take): \(counted(offence.count, "finding")) for --fail-on; the first: "
          + CommandReading.oneLine(offence.first))
    }
    if offences?.isEmpty == false { throw CommandFailure(.difference, "") }
    try Self.fail(of: catalogue.failures)
  }

  /// Reports why takes could not be read, in one sentence each.
  static func report(_ failures: [TapeError]) {
    for failure in failures { printError("retake: \(failure.description)") }
  }

  /// Exits with the status for the first take that could not be read, if any.
  static func fail(of failures: [TapeError]) throws {
    guard let first = failures.first else { return }
    throw CommandFailure(CommandFailure(first).status, "")
  }
}

/// Interruptible work on many takes, with a progress line.
final class FolderWork: Sendable {
  /// The number of takes read in parallel.
  static var jobs: Int { max(1, ProcessInfo.processInfo.activeProcessorCount) }

  private let line: Progress
  private let done = Mutex((read: 0, all: 0))

  init(_ what: String) {
    line = Progress(what)
    Interruption.notice()
  }

  /// Callbacks for cancellation and progress.
  var progress: TakeCatalogue.Progress {
    TakeCatalogue.Progress(
      isWanted: { !Interruption.isAsked },
      report: { [self] read, all in done.withLock { $0 = (read, all) } })
  }

  /// Runs work while showing its progress line.
  func follow<Value, Failure: Error>(
    _ work: () throws(Failure) -> Value
  ) throws(Failure) -> Value {
    let result = line.follow(telling: { [self] in
      let (read, all) = done.withLock { $0 }
      return all == 0 ? "" : "\(read) of \(counted(all, "take"))"
    }) { Result { () throws(Failure) in try work() } }
    return try result.get()
  }

  /// Permanently removes the progress line before other output.
  func clear() { line.end() }
}

extension SelectionOptions {
  /// Selects part of each take; nil to select complete takes.
  ///
  /// Takes without such a part are skipped with a message.
  var ofEachTake: CatalogueReading.Selection? {
    guard !isEmpty else { return nil }
    return { take in
      do {
        return try selection(in: take)
      } catch let failure as CommandFailure {
        printError("retake: skipped: \(failure.message)")
      } catch {
        printError("retake: skipped: \(take): \(error)")
      }
      return nil
    }
  }
}

extension FindingOptions {
  /// Returns the takes that have findings selected by `--fail-on`, each with the number of these
  /// findings and the first of them.
  func offences(in catalogue: TakeCatalogue) throws(TapeError)
    -> [(take: String, count: Int, first: String)]
  {
    guard !failOn.isEmpty else { return [] }
    return try catalogue.offences(
      severities: failOn.compactMap { FindingSeverity(name: $0) },
      ids: failOn.filter { FindingSeverity(name: $0) == nil })
  }
}
