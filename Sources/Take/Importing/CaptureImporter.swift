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

// MARK: - ImportSettings

/// What is known of calls between others beside their packets, and how their takes are made.
public struct ImportSettings: Sendable {
  /// What the take is called.
  public var label = ""
  /// Whether encoded frames are kept in the clear.
  public var keepsMedia = true
  /// The codecs of payload types, as in `96=vp8,97=rtx`; nil for those stated at the capture's
  /// beginning.
  public var payloadTypes: String?
  /// Whether media without keys is in the clear, whatever it looks like.
  public var isClear = false
  /// Whether what the ends receive is decoded, for levels and digests.
  public var decodes = false
  /// The texts of key logs in the format of NSS.
  public var keyLogs: [String] = []
  /// SRTP keys with their salts, in hexadecimal or base64.
  public var srtpKeys: [String] = []
  /// Session descriptions of the ends.
  public var descriptions: [String] = []
  /// How many paths are told apart.
  public var pathsMaximum = ObserverSettings.usualPathsMaximum
  /// Whether what waits for keys is kept until they come.
  package var awaitsKeys = true
  /// Whether a take that cannot be written any further stays as it is.
  package var keepsIncomplete = true
  /// Whether key logs are read while the capture goes on.
  package var followsKeyLogs = false
  /// What ends are called.
  package var names: [ObserverGenesis.EndName] = []
  /// Descriptions that stood in signaling of the same capture.
  var signaling: [String] = []

  /// Creates the settings of a capture of which nothing more is known.
  public init() {}
}

/// Where an import reports to while it works.
package struct ImportReports {
  /// Gets a sentence for each kind of damage in the capture.
  package var notice: (String) -> Void
  /// Gets what is done, and how many bytes of the capture are read.
  package var progress: (_ what: String, _ bytes: Int) -> Void
  /// The capture is read to its end, or given up.
  package var end: () -> Void

  /// Creates reports; without arguments nobody hears of them.
  package init(
    notice: @escaping (String) -> Void = { _ in },
    progress: @escaping (String, Int) -> Void = { _, _ in }, end: @escaping () -> Void = {}
  ) {
    self.notice = notice
    self.progress = progress
    self.end = end
  }
}

/// What comments of a capture begin with that an export of Retake put there, and an import
/// understands.
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
