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
  /// What the observer of the exported take was made from.
  private(set) var genesis: ObserverGenesis?

  /// Takes an event that is no packet.
  mutating func take(_ event: CaptureEvent, of reader: CaptureReader) {
    switch event {
    case .secrets(.tlsKeyLog, let place):
      keyLogs.append(String(decoding: [UInt8](reader.bytes(place)), as: UTF8.self))
    case .comment(let text):
      if let description = CaptureHead.Mark.description.content(of: text) {
        descriptions.append(description)
      } else if let key = CaptureHead.Mark.srtpKey.content(of: text) {
        srtpKeys.append(key)
      } else if let configuration = CaptureHead.Mark.observer.content(of: text) {
        genesis = CanonicalJSON.value(ObserverGenesis.self, from: configuration)
      }
    case .secrets, .dropped, .datagram, .stream: break
    }
  }
}
