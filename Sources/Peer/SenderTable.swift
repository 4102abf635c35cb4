import Wire

/// What the application set of how transceivers send.
struct SenderTable {
  /// One sender.
  struct Sender {
    var transceiver: UInt32
    var encoding: RTPEncoding
    /// The parameters that were read last and may still be set.
    var lastRead: RTPSendParameters?
  }

  private(set) var senders: [Sender] = []

  /// The encoding of a transceiver's sender.
  func encoding(of transceiver: UInt32, _ kind: MediaKind) -> RTPEncoding {
    senders.first { $0.transceiver == transceiver }?.encoding ?? RTPEncoding(defaultsFor: kind)
  }

  /// Changes what is known of a sender.
  mutating func update(_ transceiver: UInt32, _ kind: MediaKind, _ change: (inout Sender) -> Void) {
    if let index = senders.firstIndex(where: { $0.transceiver == transceiver }) {
      change(&senders[index])
    } else {
      var sender = Sender(transceiver: transceiver, encoding: RTPEncoding(defaultsFor: kind))
      change(&sender)
      senders.append(sender)
    }
  }

  /// The parameters that were read and may still be set.
  func lastRead(of transceiver: UInt32) -> RTPSendParameters? {
    senders.first { $0.transceiver == transceiver }?.lastRead
  }

  /// Makes parameters that were read outdated, as every exchange of descriptions does.
  mutating func endTransactions() {
    for index in senders.indices { senders[index].lastRead = nil }
  }
}

extension RTPEncoding {
  init(defaultsFor kind: MediaKind) {
    self.init(scaleResolutionDownBy: kind == .video ? 1 : nil)
  }

  /// The encoding with what means nothing for a kind left out (W3C addTransceiver).
  func suited(to kind: MediaKind) -> RTPEncoding {
    var encoding = self
    if kind == .audio {
      encoding.maxFramerate = nil
      encoding.scaleResolutionDownBy = nil
    } else {
      encoding.scaleResolutionDownBy = scaleResolutionDownBy ?? 1
    }
    return encoding
  }

  /// What is out of range; nil when nothing is.
  var complaint: String? {
    if let maxFramerate, !(maxFramerate.isFinite && maxFramerate >= 0) {
      return "maxFramerate must be 0 or more"
    }
    if let scaleResolutionDownBy, !(scaleResolutionDownBy.isFinite && scaleResolutionDownBy >= 1) {
      return "scaleResolutionDownBy must be 1 or more"
    }
    return nil
  }
}
