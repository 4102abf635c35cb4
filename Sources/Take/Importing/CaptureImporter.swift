import FoundationEssentials
import Observer
public import Tape
import Wire

/// Creates takes of the calls between others in a packet capture, like `retake import`.
///
/// A capture is a pcap or pcapng file, optionally compressed with gzip or zstd. Packets of no call
/// are counted and dropped.
public struct CaptureImporter {
  private let capture: String
  private let settings: ImportSettings
  private let reports: ImportReports

  /// - Parameters:
  ///   - capture: the path of the capture; `-` is standard input.
  ///   - notice: receives a sentence for each kind of damage in the capture.
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

  /// Creates one take of all calls in the capture.
  ///
  /// - Parameter take: the file, which must not exist; it gets its name when it is complete.
  public func write(to take: String) throws(TapeError) -> CaptureSummary {
    try Self.whole {
      let file = try WholeFile(take, .kept, isTake: true)
      let summary = try record(writing: file.temporary, named: take)
      try file.finish()
      return summary
    }
  }

  /// Creates a take of each call, named after the capture: `meeting-1.take` and so on.
  ///
  /// - Parameter folder: the folder for the takes; created if it does not exist.
  public func writeCalls(to folder: String) throws(TapeError) -> CallsReport {
    try Self.whole {
      try CallFolder(capture: capture, folder: folder, settings: settings, reports: reports).write()
    }
  }

  /// Records into a file that is renamed later.
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
      // File names may contain anything.
      throw TapeError(
        path: "", place: "", reason: PrintableText.line(String(describing: error)), kind: .failed)
    }
  }
}

// MARK: - ImportSettings

/// Facts about calls between others that a capture does not contain, and options for their takes.
public struct ImportSettings: Sendable {
  /// The label of the take.
  public var label = ""
  /// What is said of the take by keys, such as the site or the build.
  public var tags: [String: String] = [:]
  /// Whether encoded frames are kept in the clear.
  public var keepsMedia = true
  /// The codecs of payload types, as in `96=vp8,97=rtx`; nil for those stated at the capture's
  /// beginning.
  public var payloadTypes: String?
  /// Whether media without keys is unencrypted, even if it does not look like it.
  public var isClear = false
  /// Whether media that the ends receive is decoded, for levels and digests.
  public var decodes = false
  /// The texts of key logs in the format of NSS.
  public var keyLogs: [String] = []
  /// SRTP keys with their salts, in hexadecimal or base64.
  public var srtpKeys: [String] = []
  /// Session descriptions of the ends.
  public var descriptions: [String] = []
  /// The maximum number of distinguished paths.
  public var pathsMaximum = ObserverSettings.usualPathsMaximum
  /// Whether protected packets are retained until their keys arrive.
  package var awaitsKeys = true
  /// Whether a take that cannot be written any further is kept.
  package var keepsIncomplete = true
  /// Whether key logs are read while the capture goes on.
  package var followsKeyLogs = false
  /// The names of ends.
  package var names: [ObserverGenesis.EndName] = []
  /// Descriptions found in signaling of the same capture.
  var signaling: [String] = []

  /// Creates the default settings.
  public init() {}
}

/// Callbacks for the progress of an import.
package struct ImportReports {
  /// Receives a sentence for each kind of damage in the capture.
  package var notice: (String) -> Void
  /// Receives the current activity, and how many bytes of the capture were read.
  package var progress: (_ what: String, _ bytes: Int) -> Void
  /// The capture was read to its end, or abandoned.
  package var end: () -> Void

  /// Creates reports; by default they are ignored.
  package init(
    notice: @escaping (String) -> Void = { _ in },
    progress: @escaping (String, Int) -> Void = { _, _ in }, end: @escaping () -> Void = {}
  ) {
    self.notice = notice
    self.progress = progress
    self.end = end
  }
}

/// The prefixes of a capture's comments that Retake's export writes and its import reads.
package enum CaptureMark: String, CaseIterable {
  case observer = "Retake observer "
  case description = "Retake description "
  case srtpKey = "Retake SRTP key "
  case signaling = "Retake signaling "
  case notSeen = "Retake not seen "

  /// The content of a comment under this mark.
  func content(of comment: String) -> String? {
    comment.hasPrefix(rawValue) ? String(comment.dropFirst(rawValue.count)) : nil
  }
}
