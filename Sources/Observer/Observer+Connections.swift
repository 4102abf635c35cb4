import Wire

// What comes over TCP.
extension Observer {
  /// The next bytes of one direction of a connection.
  mutating func receiveStream(_ tuple: FiveTuple, _ bytes: [UInt8], lost: Int, isEnd: Bool) {
    let outcome = connections.take(tuple, bytes, lost: lost, isEnd: isEnd)
    for message in outcome.messages {
      switch message {
      case .datagram(let bytes):
        // The framing shows that it is one of a relay, whatever the ports.
        if bytes.first.map({ (0x40...0x7f).contains($0) }) == true { _ = relays.assume(tuple) }
        receive(tuple, bytes, isTruncated: false)
      case .text(let text):
        for description in DescriptionSearch.descriptions(in: text) {
          take(description: description, .wire)
        }
      }
    }
    if let obstacle = outcome.obstacle { tell(obstacle, detail: outcome.detail) }
  }
}
