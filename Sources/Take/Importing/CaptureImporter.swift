import FoundationEssentials
import Observer
public import Tape
import Wire

/// Creates takes from the calls in a packet capture, like `retake import`.
///
/// A capture is a pcap or pcapng file, optionally compressed with gzip or zstd. Packets that belong
/// to no call are counted and dropped.
public struct CaptureImporter {
  private let capture: String
  private let settings: ImportSettings
  private let reports: ImportReports

  /// - Parameters:
  ///   - capture: the capture's path; `-` is standard input.
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

  /// Creates one take with all calls in the capture.
  ///
  /// - Parameter take: the file, which must not exist; it gets its name once it is complete.
  public func write(to take: String) throws(TapeError) -> CaptureSummary {
    try Self.whole {
      let file = try WholeFile(take, .kept, isTake: true)
      let summary = try record(writing: file.temporary, named: take)
      try file.finish()
      return summary
    }
  }

  /// Creates a take for each call, named after the capture: `meeting-1.take` and so on.
  ///
  /// - Parameter folder: the folder for the takes; created if it does not exist.
  public func writeCalls(to folder: String) throws(TapeError) -> CallsReport {
    try Self.whole {
      try CallFolder(capture: capture, folder: folder, settings: settings, reports: reports).write()
    }
  }

  /// Records into a file that will be renamed later.
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
      // File names may contain control characters.
      throw TapeError(
        path: "", place: "", reason: PrintableText.line(String(describing: error)), kind: .failed)
    }
  }
}

// MARK: - ImportSettings

/// Facts about the calls that the capture itself does not state, and options for the takes.
public struct ImportSettings: Sendable {
  /// The take's label, which is shown as its title; empty if there is none.
  public var label = ""
  /// Facts about the take by key, such as its site or build.
  public var tags: [String: String] = [:]
  /// Whether the takes contain the calls' encoded frames, after decryption.
  public var keepsMedia = true
  /// The codecs of payload types, as in `96=vp8,97=rtx`; nil to use the codecs stated at the start
  /// of the capture.
  public var payloadTypes: String?
  /// Whether media without keys is treated as unencrypted, even if it looks encrypted.
  public var isClear = false
  /// Whether received media is decoded, so that the takes contain its levels and digests.
  public var decodes = false
  /// The contents of key logs in NSS format.
  public var keyLogs: [String] = []
  /// SRTP keys with their salts, in hexadecimal or base64.
  public var srtpKeys: [String] = []
  /// The session descriptions of the calls' ends.
  public var descriptions: [String] = []
  /// The maximum number of network paths that the observer distinguishes.
  public var pathsMaximum = ObserverSettings.usualPathsMaximum
  /// Whether encrypted packets wait for their keys.
  package var awaitsKeys = true
  /// Whether an incomplete take is kept after an error in writing it.
  package var keepsIncomplete = true
  /// Whether key logs are read while the capture is running.
  package var followsKeyLogs = false
  /// The names of calls' ends, by address.
  package var names: [ObserverGenesis.EndName] = []
  /// Descriptions found in the same capture's signaling.
  var signaling: [String] = []
  /// The parts of calls that an exported take's observer was configured not to see.
  var notSeen: [ObserverCall] = []

  /// Creates the default settings.
  public init() {}
}

/// Callbacks for the progress of an import.
package struct ImportReports {
  /// Receives a sentence for each kind of damage in the capture.
  package var notice: (String) -> Void
  /// Receives the current activity, and how many bytes of the capture were read.
  package var progress: (_ what: String, _ bytes: Int) -> Void
  /// Called once the capture has been read to its end or abandoned.
  package var end: () -> Void

  /// Creates the callbacks; those that are omitted do nothing.
  package init(
    notice: @escaping (String) -> Void = { _ in },
    progress: @escaping (String, Int) -> Void = { _, _ in }, end: @escaping () -> Void = {}
  ) {
    self.notice = notice
    self.progress = progress
    self.end = end
  }
}

/// The prefixes of the capture comments that a Retake export writes and an import reads.
package enum CaptureMark: String, CaseIterable {
  case observer = "Retake observer "
  case description = "Retake description "
  case srtpKey = "Retake SRTP key "
  case signaling = "Retake signaling "
  case notSeen = "Retake not seen "

  /// Returns the rest of a comment that begins with this mark; nil for other comments.
  func content(of comment: String) -> String? {
    comment.hasPrefix(rawValue) ? String(comment.dropFirst(rawValue.count)) : nil
  }
}
