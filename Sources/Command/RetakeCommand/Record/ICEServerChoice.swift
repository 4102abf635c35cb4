public import ArgumentParser
public import JSEP
public import Peer

/// A server on the command line: its URI, with name and password before the host when it is TURN.
struct ICEServerChoice: ExpressibleByArgument {
  let server: ICEServerConfiguration

  /// What is wanted, for who gave something else.
  static let wanted =
    "a server is stun:HOST[:PORT], or turn:NAME:PASSWORD@HOST[:PORT], with ports from 1 to 65535"

  init?(argument: String) {
    guard let colon = argument.firstIndex(of: ":") else { return nil }
    let scheme = argument[..<colon]
    let rest = argument[argument.index(after: colon)...]
    // The last @ ends the password, which may hold others; hosts have none.
    if let at = rest.lastIndex(of: "@") {
      let words = rest[..<at].split(
        separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
      guard words.count == 2, !words[0].isEmpty else { return nil }
      server = ICEServerConfiguration(
        urls: ["\(scheme):\(rest[rest.index(after: at)...])"], username: String(words[0]),
        credential: String(words[1]))
    } else {
      server = ICEServerConfiguration(urls: [argument])
    }
    var configuration = PeerConfiguration()
    configuration.iceServers = [server]
    guard configuration.firstUnusableICEServer == nil else { return nil }
  }
}

extension ICETransportPolicy: ExpressibleByArgument {}

extension ICETCPPolicy: ExpressibleByArgument {}

extension BundlePolicy: ExpressibleByArgument {}
