import FoundationEssentials
import Observer
public import Tape
import Wire

/// Makes takes of the calls between others in a packet capture, as `retake import` does.
///
/// A capture is a pcap or pcapng file, also one that gzip or zstd compressed. What is of no call is
/// counted and not kept.
public struct CaptureImporter {
  private let capture: String
  private let settings: ImportSettings
  private let reports: ImportReports

  /// - Parameters:
  ///   - capture: the path of the capture; `-` is standard input.
  ///   - notice: gets a sentence for each kind of damage in the capture.
  public init(
    _ capture: String, settings: ImportSettings = ImportSettings(),
    notice: @escaping (String) -> Void = { _ in }
  ) {
    self.init(capture, settings: settings, reports: ImportReports(notice: notice))
  }

  /// Creates an importer that reports its progress.
  package init(_ capture: String, settings: ImportSettings, reports: ImportReports) {
    self.capture = capture
    self.settings = settings
    self.reports = reports
  }

  /// Makes one take of all calls in the capture.
  ///
  /// - Parameter take: the file, which must not be there; it gets its name when it is complete.
  public func write(to take: String) throws(TapeError) -> CaptureSummary {
    try Self.whole {
      let file = try WholeFile(take, .kept, isTake: true)
      let summary = try record(writing: file.temporary, named: take)
      try file.finish()
      return summary
    }
  }

  /// Makes a take of each call, named after the capture: `meeting-1.take` and so on.
  ///
  /// - Parameter folder: where the takes go; it is made if it is not there.
  public func writeCalls(to folder: String) throws(TapeError) -> CallsReport {
    try Self.whole {
      try CallFolder(capture: capture, folder: folder, settings: settings, reports: reports).write()
    }
  }

  /// Records into a file that gets its name later.
  package func record(writing path: String, named take: String) throws -> CaptureSummary {
    let recorder = CaptureRecorder(settings, writing: path)
    let counters = try CaptureFeed.read(capture, "importing", reports) {
      try recorder.show($0, of: $1)
    }
    guard var summary = try recorder.finish(counters) else {
      throw counters.nothingFound(in: capture)
    }
    summary.take = take
    return summary
  }

  private static func whole<Value>(_ body: () throws -> Value) throws(TapeError) -> Value {
    do {
      return try body()
    } catch let error as TapeError {
      throw error
    } catch {
      // Names of files may hold anything.
      throw TapeError(
        path: "", place: "", reason: PrintableText.line(String(describing: error)), kind: .failed)
    }
  }
}
