import FoundationEssentials
import Observer
import Tape
import Wire

/// What stands at the head of a capture, before its packets: secrets, and what an export of Retake
/// noted there.
struct CaptureNotes {
  private(set) var keyLogs: [String] = []
  private(set) var srtpKeys: [String] = []
  private(set) var descriptions: [String] = []
  /// Descriptions that stood in signaling.
  private(set) var signaling: [String] = []
  /// What the observer of the exported take was told that it does not see.
  private(set) var notSeen: [ObserverCall] = []
  /// What the observer of the exported take was made from.
  private(set) var genesis: ObserverGenesis?

  /// When the exported take began, which was before its first packet if others were left out.
  func start(before first: Int64) -> Int64? {
    let start = genesis?.startUnixNanoseconds ?? 0
    return start > 0 && start <= first && first - start < CaptureNotes.leadMaximum ? start : nil
  }

  /// A day, in nanoseconds.
  private static let leadMaximum: Int64 = 86_400_000_000_000
  /// How much of each kind is kept: a capture may have anything at its head, and any amount of it.
  private static let bytesMaximum = 64 << 20
  private static let textsMaximum = 4096
  private var bytes = 0

  /// Whether there is room for one more text.
  private mutating func keeps(_ text: String, _ count: Int) -> Bool {
    guard count < CaptureNotes.textsMaximum, bytes + text.utf8.count <= CaptureNotes.bytesMaximum
    else { return false }
    bytes += text.utf8.count
    return true
  }

  /// Handles an event that is no packet.
  mutating func take(_ event: CaptureEvent, of reader: borrowing CaptureReader) {
    switch event {
    case .secrets(.tlsKeyLog, let place):
      let lines = String(decoding: [UInt8](reader.bytes(place)), as: UTF8.self)
      if keeps(lines, keyLogs.count) { keyLogs.append(lines) }
    case .comment(let text):
      if let description = CaptureHead.Mark.description.content(of: text) {
        if keeps(description, descriptions.count) { descriptions.append(description) }
      } else if let key = CaptureHead.Mark.srtpKey.content(of: text) {
        if keeps(key, srtpKeys.count) { srtpKeys.append(key) }
      } else if let description = CaptureHead.Mark.signaling.content(of: text) {
        if keeps(description, signaling.count) { signaling.append(description) }
      } else if let arguments = CaptureHead.Mark.notSeen.content(of: text) {
        if let call = CanonicalJSON.value(
          ObserverCall.self, from: "{\"notSeen\":\(arguments)}")
        {
          if keeps(arguments, notSeen.count) { notSeen.append(call) }
        }
      } else if let configuration = CaptureHead.Mark.observer.content(of: text) {
        genesis = CanonicalJSON.value(ObserverGenesis.self, from: configuration)?.ofAFile
      }
    case .secrets, .dropped, .datagram, .stream: break
    }
  }
}
