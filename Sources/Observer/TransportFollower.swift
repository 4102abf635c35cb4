import Decryption
import Wire

/// What is known of one transport of a call.
struct TransportFollower {
  var facts: ObservedTransport
  var checks = CheckFollower()
  var dtls = DTLSFollower()
  var dtlsStates = DTLSStates()
  var media = MediaOpener()
  /// The numbers of the descriptions of both ends.
  var descriptions: [Int?] = [nil, nil]
  /// The addresses of both ends that were told already.
  var addresses: Set<EndAddress> = []
  /// The path that was nominated last.
  var selectedPath: Int?
  var extensions = ExtensionDeduction()
  /// The streams that each end sends, by their indices.
  var streams: [Int] = []
  /// Whether an end sent anything.
  var hasSent = [false, false]
  /// Whether the beginning was seen: a check or a ClientHello before media.
  var hasBeginning = false

  struct EndAddress: Hashable {
    var end: Int
    var address: SocketAddress
  }

  init(_ facts: ObservedTransport) { self.facts = facts }
}
