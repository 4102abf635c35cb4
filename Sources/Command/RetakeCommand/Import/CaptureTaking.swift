import FoundationEssentials
import Observer
import Tape
import Wire

/// Creates a take of what a capture holds, however its bytes arrive.
///
/// The take begins with the first packet, which sets the clock, unless its beginning is told.
final class CaptureTaking {
  /// How the take is made.
  struct Settings: Sendable {
    var label = ""
    var keepsMedia = true
    /// What payload types stand for; nil for what a capture's head says.
    var payloadTypes: String?
    /// Whether media without keys is in the clear, whatever it looks like.
    var isClear = false
    var decodes = false
    var awaitsKeys = true
    /// Whether a take that cannot be written any further stays as it is.
    var keepsIncomplete = true
    /// Whether key logs are read while the capture continues.
    var followsKeyLogs = false
    /// How many paths are told apart.
    var pathsMaximum = ObserverSettings.usualPathsMaximum
    /// What ends are called.
    var names: [ObserverGenesis.EndName] = []
    var keyLogs: [String] = []
    var srtpKeys: [String] = []
    var descriptions: [String] = []
    /// Descriptions that stood in signaling of the same capture.
    var signaling: [String] = []
  }

  private let settings: Settings
  /// The file to write.
  private let path: String
  /// Secrets and comments stand before the first packet.
  private var head = CaptureNotes()
  private var earlyKeyLogs: [String] = []
  /// Whether the capture may have keys further on.
  private var mayBringKeys = true
  private(set) var observer: CaptureImport?

  init(_ settings: Settings, writing path: String) {
    self.settings = settings
    self.path = path
  }

  /// Begins before the first packet.
  func begin(unixNanoseconds: Int64) throws(CommandFailure) {
    if observer == nil { observer = try begun(unixNanoseconds) }
  }

  /// Handles an event of the capture.
  func show(_ event: CaptureEvent, of reader: borrowing CaptureReader) throws(CommandFailure) {
    if observer == nil {
      if let first = event.unixNanoseconds {
        mayBringKeys = reader.mayBringKeys
        observer = try begun(head.start(before: first) ?? first)
      } else {
        head.take(event, of: reader)
      }
    }
    observer?.show(event, of: reader)
  }

  /// Takes further lines of a key log, before the first packet or after it.
  func tell(keyLog lines: String) {
    if let observer {
      observer.tell(keyLog: lines)
    } else {
      earlyKeyLogs.append(lines)
    }
  }

  /// Ends the capture; nil when no packet was in it.
  func finish(_ counters: CaptureCounters) throws(CommandFailure) -> CaptureSummary? {
    guard let observer else { return nil }
    for call in head.notSeen { observer.tell(call) }
    do throws(TapeError) {
      return try observer.finish(counters)
    } catch {
      throw CommandFailure(error)
    }
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

  private func begun(_ began: Int64) throws(CommandFailure) -> CaptureImport {
    do throws(TapeError) {
      var options = TapeWriter.Options()
      options.label = settings.label
      options.startUnixNanoseconds = began
      options.toolVersion = retakeVersion
      options.waitsForDisk = true
      options.queueLimit = CaptureTaking.queueLimit
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
      for log in settings.keyLogs + head.keyLogs + earlyKeyLogs { observer.tell(keyLog: log) }
      for key in settings.srtpKeys + head.srtpKeys { observer.tell(.srtpKey(key)) }
      for text in settings.descriptions + head.descriptions { observer.tell(.description(text)) }
      for text in settings.signaling + head.signaling { observer.tell(.signaling(text)) }
      return observer
    } catch {
      throw CommandFailure(error)
    }
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
