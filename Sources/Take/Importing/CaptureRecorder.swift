import FoundationEssentials
package import Observer
package import Tape
import Wire

/// Makes a take of what a capture holds, however its bytes arrive.
///
/// The take begins with the first packet, which sets the clock, unless its beginning is told.
package final class CaptureRecorder {
  private let settings: ImportSettings
  /// The file to write.
  private let path: String
  /// Secrets and comments stand before the first packet.
  private var head = CaptureNotes()
  private var earlyKeyLogs: [String] = []
  /// Whether the capture may have keys further on.
  private var mayBringKeys = true
  package private(set) var observer: CaptureImport?

  package init(_ settings: ImportSettings, writing path: String) {
    self.settings = settings
    self.path = path
  }

  /// Begins before the first packet.
  package func begin(unixNanoseconds: Int64) throws(TapeError) {
    if observer == nil { observer = try begun(unixNanoseconds) }
  }

  /// Handles an event of the capture.
  package func show(_ event: CaptureEvent, of reader: borrowing CaptureReader) throws(TapeError) {
    if observer == nil {
      if let first = event.unixNanoseconds {
        mayBringKeys = reader.mayBringKeys
        observer = try begun(head.start(before: first) ?? first)
      } else {
        head.read(event, of: reader)
      }
    }
    observer?.show(event, of: reader)
  }

  /// Receives further lines of a key log, before the first packet or after it.
  package func receive(keyLog lines: String) {
    if let observer {
      observer.receive(keyLog: lines)
    } else {
      earlyKeyLogs.append(lines)
    }
  }

  /// Ends the capture; nil when no packet was in it.
  package func finish(_ counters: CaptureCounters) throws(TapeError) -> CaptureSummary? {
    guard let observer else { return nil }
    for call in head.notSeen { observer.apply(call) }
    return try observer.finish(counters)
  }

  /// How many bytes wait to be written: as many as the caches of a processor hold.
  private static let queueLimit = 16 << 20

  /// Whether anything may open packets: where nothing ever does, they do not wait for it.
  private var mayHaveKeys: Bool {
    mayBringKeys || settings.followsKeyLogs || head.genesis != nil
      || !(settings.keyLogs + head.keyLogs + earlyKeyLogs).isEmpty
      || !(settings.srtpKeys + head.srtpKeys).isEmpty
      || (settings.descriptions + settings.signaling + head.descriptions + head.signaling)
        .contains { $0.contains("a=crypto") }
  }

  private func begun(_ began: Int64) throws(TapeError) -> CaptureImport {
    var options = TapeWriter.Options()
    options.label = settings.label
    options.startUnixNanoseconds = began
    options.toolVersion = retakeVersion
    options.waitsForDisk = true
    options.queueLimit = CaptureRecorder.queueLimit
    options.keepsMedia = settings.keepsMedia
    options.staysIncomplete = settings.keepsIncomplete
    options.toolchain = try Toolchain.current(for: path)
    var genesis = head.genesis ?? .ofToday
    if let payloadTypes = settings.payloadTypes { genesis.payloadTypes = payloadTypes }
    if settings.isClear { genesis.isClear = true }
    if settings.decodes { genesis.decodeAll() }
    if !settings.awaitsKeys || !mayHaveKeys { genesis.awaitsKeys = false }
    genesis.startUnixNanoseconds = began
    genesis.pathsMaximum = settings.pathsMaximum
    if !settings.names.isEmpty { genesis.names = settings.names }
    let observer = CaptureImport(
      try TapeWriter(path: path, options: options), genesis, began: began, take: path)
    for log in settings.keyLogs + head.keyLogs + earlyKeyLogs { observer.receive(keyLog: log) }
    for key in settings.srtpKeys + head.srtpKeys { observer.apply(.srtpKey(key)) }
    for text in settings.descriptions + head.descriptions { observer.apply(.description(text)) }
    for text in settings.signaling + head.signaling { observer.apply(.signaling(text)) }
    return observer
  }
}

extension CaptureEvent {
  /// When the packet was captured; nil for what is no packet.
  var unixNanoseconds: Int64? {
    switch self {
    case .datagram(let datagram): datagram.unixNanoseconds
    case .stream(let piece): piece.unixNanoseconds
    case .secrets, .comment, .dropped: nil
    }
  }
}
