import Capture
import Foundation
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

  /// Takes an event that is no packet.
  mutating func take(_ event: CaptureEvent, of reader: borrowing CaptureReader) {
    switch event {
    case .secrets(.tlsKeyLog, let place):
      keyLogs.append(String(decoding: [UInt8](reader.bytes(place)), as: UTF8.self))
    case .comment(let text):
      if let description = CaptureHead.Mark.description.content(of: text) {
        descriptions.append(description)
      } else if let key = CaptureHead.Mark.srtpKey.content(of: text) {
        srtpKeys.append(key)
      } else if let description = CaptureHead.Mark.signaling.content(of: text) {
        signaling.append(description)
      } else if let arguments = CaptureHead.Mark.notSeen.content(of: text) {
        if let call = CanonicalJSON.value(
          ObserverCall.self, from: "{\"notSeen\":\(arguments)}")
        {
          notSeen.append(call)
        }
      } else if let configuration = CaptureHead.Mark.observer.content(of: text) {
        genesis = CanonicalJSON.value(ObserverGenesis.self, from: configuration)
      }
    case .secrets, .dropped, .datagram, .stream: break
    }
  }
}
