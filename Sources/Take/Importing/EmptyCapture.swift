package import Observer
package import Tape
import Wire

extension CaptureCounters {
  /// Why a capture gives no take: what is in it in place of UDP and TCP.
  ///
  /// - Parameter name: what the capture is called.
  package func nothingFound(in name: String) -> TapeError {
    let name = PrintableText.line(name)
    guard frames > 0 else {
      return TapeError(path: name, place: "", reason: "no packet is in it")
    }
    let contents = [
      unread.words(),
      Self.words(malformed, "whose headers are damaged or cut off"),
      Self.words(fragmentsDropped +| waitingFragments, "that are fragments of incomplete ones"),
    ].filter { !$0.isEmpty }
    let only = contents.isEmpty ? "" : ", only " + contents.joined(separator: ", ")
    return TapeError(
      path: name, place: "", reason: "it holds no data of UDP or TCP that can be read\(only)")
  }

  /// Fragments whose datagram was neither complete nor given up at the end.
  private var waitingFragments: UInt64 {
    reassembled == 0 ? fragments - min(fragments, fragmentsDropped) : 0
  }

  /// Why a capture with packets has no call: empty, or where one may be that was not seen.
  var placesForCalls: String {
    unread.hidingMedia > 0 ? "; not opened: \(unread.words(hidingMedia: true))" : ""
  }

  private static func words(_ count: UInt64, _ kind: String) -> String {
    switch count {
    case 0: ""
    case 1: "1 packet \(kind)"
    default: "\(count) packets \(kind)"
    }
  }
}
