import FoundationEssentials
package import Observer
package import Tape
import Wire

/// Creates a take from the events of a capture, which may come from any source.
///
/// The take begins at the time of the first packet, unless `begin` or a comment of a Retake export
/// sets another time.
package final class CaptureRecorder {
  private let settings: ImportSettings
  /// The path of the take to write.
  private let path: String
  /// The secrets and comments before the first packet.
  private var head = CaptureNotes()
  private var earlyKeyLogs: [String] = []
  /// Whether the capture may contain keys after its first packet.
  private var mayBringKeys = true
  package private(set) var observer: CaptureImport?

  package init(_ settings: ImportSettings, writing path: String) {
    self.settings = settings
    self.path = path
  }

  /// Starts the take before the first packet arrives.
  package func begin(unixNanoseconds: Int64) throws(TapeError) {
    if observer == nil { observer = try begun(unixNanoseconds) }
  }

  /// Handles a capture event; the first event with a time starts the take.
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

  /// Receives further lines of a key log, before or after the first packet.
  package func receive(keyLog lines: String) {
    if let observer {
      observer.receive(keyLog: lines)
    } else {
      earlyKeyLogs.append(lines)
    }
  }

  /// Ends the capture; returns nil if no take was started.
  package func finish(_ counters: CaptureCounters) throws(TapeError) -> CaptureSummary? {
    guard let observer else { return nil }
    for call in settings.notSeen + head.notSeen { observer.apply(call) }
    return try observer.finish(counters)
  }

  /// The maximum number of bytes waiting to be written: about the size of a processor's cache.
  private static let queueLimit = 16 << 20

  /// Whether there may be keys for the packets; if not, the packets do not wait for keys.
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
    options.tags = settings.tags
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
  /// The capture time of a packet; nil for other events.
  var unixNanoseconds: Int64? {
    switch self {
    case .datagram(let datagram): datagram.unixNanoseconds
    case .stream(let piece): piece.unixNanoseconds
    case .secrets, .comment, .dropped: nil
    }
  }
}

// MARK: - KeyLogGate

/// Selects the key log lines for calls in a capture.
///
/// A browser logs the secrets of all its connections, but a take contains only the secrets that
/// decrypt its packets. A line may arrive before or after the association that it belongs to.
package struct KeyLogGate {
  private var associations: Set<String> = []
  /// Key log lines for associations not seen yet, by client random.
  private var held: [String: [Substring]] = [:]
  private var heldBytes = 0
  /// The numbers of key logs read, of secrets in them, and of secrets for associations that were
  /// seen.
  private(set) var logs = 0
  private(set) var secrets: UInt64 = 0
  private(set) var fitting: UInt64 = 0

  /// The maximum size of the lines that wait, in bytes: enough for days of logs; the rest is
  /// dropped.
  private static let heldMaximum = 64 << 20

  /// Handles complete lines; returns the lines for associations that were seen, or nil if there are
  /// none.
  mutating func receive(_ lines: String) -> String? {
    var known: [Substring] = []
    logs += 1
    for line in lines.split(whereSeparator: \.isNewline) {
      let words = line.split(separator: " ", maxSplits: 2)
      guard words.count == 3, !line.hasPrefix("#") else { continue }
      let name = words[1].lowercased()
      if KeyLogGate.isSecret(words) { secrets += 1 }
      if associations.contains(name) {
        fitting += 1
        known.append(line)
      } else if heldBytes + line.utf8.count <= Self.heldMaximum {
        heldBytes += line.utf8.count
        held[name, default: []].append(line)
      }
    }
    return KeyLogGate.text(known)
  }

  /// Records an association by its client random; returns the lines that waited for it, if any.
  mutating func open(_ name: String) -> String? {
    guard associations.insert(name).inserted, let lines = held.removeValue(forKey: name) else {
      return nil
    }
    fitting += UInt64(lines.count)
    heldBytes -= lines.reduce(0) { $0 + $1.utf8.count }
    return KeyLogGate.text(lines)
  }

  /// Returns whether text contains a key log line.
  package static func hasSecrets(_ text: String) -> Bool {
    text.split(whereSeparator: \.isNewline).contains {
      !$0.hasPrefix("#") && isSecret($0.split(separator: " ", maxSplits: 2))
    }
  }

  /// Returns whether a line is a label, a client random of 32 bytes, and a secret, both in
  /// hexadecimal.
  private static func isSecret(_ words: [Substring]) -> Bool {
    words.count == 3 && words[1].utf8.count == 64 && words[1].allSatisfy(\.isHexDigit)
      && words[2].drop { $0.isHexDigit }.allSatisfy { $0 == " " }
  }

  private static func text(_ lines: [Substring]) -> String? {
    lines.isEmpty ? nil : lines.map { "\($0)\n" }.joined()
  }
}

// MARK: - KeyLogFollower

/// Follows a key log while another program writes it.
package struct KeyLogFollower {
  private let path: String
  private var offset: UInt64 = 0
  /// The beginning of an incomplete line.
  private var rest: [UInt8] = []

  /// The maximum length of a line; longer lines do not belong to a key log.
  private static let lineMaximum = 1 << 16
  /// The maximum number of bytes per read.
  private static let pieceMaximum = 4 << 20

  package init(_ path: String) { self.path = path }

  /// Returns the lines written since the last call; nil if there are none.
  ///
  /// A file that does not exist yet has no lines; a file that became shorter is read from its
  /// start.
  ///
  /// - Parameter isLast: whether to return an unterminated last line too.
  package mutating func news(isLast: Bool = false) -> String? {
    var lines: [UInt8] = []
    while let bytes = read(), !bytes.isEmpty { lines += whole(bytes) }
    if isLast {
      lines += rest
      rest = []
    }
    return lines.isEmpty ? nil : String(decoding: lines, as: UTF8.self)
  }

  private mutating func read() -> [UInt8]? {
    guard case .success(let descriptor) = FileBytes.open(path) else { return nil }
    let file = FileDescriptor(descriptor)
    guard let size = file.size else { return nil }
    if size < offset { (offset, rest) = (0, []) }
    guard size > offset else { return nil }
    let bytes = file.read(atMost: Self.pieceMaximum, from: offset)
    offset += UInt64(bytes.count)
    return bytes
  }

  /// Appends new bytes to the pending ones; returns the complete lines and keeps the rest.
  private mutating func whole(_ bytes: [UInt8]) -> [UInt8] {
    let all = rest + bytes
    guard let end = all.lastIndex(of: UInt8(ascii: "\n")) else {
      rest = all.count > Self.lineMaximum ? [] : all
      return []
    }
    rest = Array(all[(end + 1)...])
    if rest.count > Self.lineMaximum { rest = [] }
    return Array(all[...end])
  }
}
