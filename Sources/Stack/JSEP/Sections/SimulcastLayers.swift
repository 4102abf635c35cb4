import RTP
import SDP

/// A simulcast layer that a transceiver sends (RFC 8853).
package struct SimulcastLayer: Hashable, Sendable {
  /// Its name in descriptions and packets (RFC 8851 section 4).
  package let rid: String
  package let ssrc: UInt32
  package let rtxSSRC: UInt32

  /// The most layers of a simulcast.
  package static let countMaximum = 3

  /// Whether a text is a valid layer name: letters and digits, short enough for one-byte header
  /// extensions (RFC 8852 section 3.1, RFC 8285 section 4.2).
  package static func isName(_ text: String) -> Bool {
    (1...16).contains(text.utf8.count)
      && text.utf8.allSatisfy { byte in
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"),
          UInt8(ascii: "A")...UInt8(ascii: "Z"):
          true
        default: false
        }
      }
  }
}

/// A negotiated simulcast layer.
package struct NegotiatedLayer: Hashable, Sendable {
  package let rid: String
  /// Whether the peer has paused it (RFC 8853 section 5.1).
  package let isPaused: Bool
  /// The peer's limits in bits per second and in frames per second (RFC 8851 section 5); nil if
  /// none.
  package let maxBitrate: UInt64?
  package let maxFramerate: Double?
}

extension NegotiatedLayer {
  /// The layers that one side sends and the other accepts, in the sender's order.
  ///
  /// A listed layer without its own `rid` line is ignored (RFC 8853 section 5.2); of alternatives
  /// the first common one is chosen.
  static func agreed(sender: SDPSection, receiver: SDPSection) -> [NegotiatedLayer] {
    let sent = Simulcast.streams(sender.simulcast?.sent)
    let wishes = Simulcast.streams(receiver.simulcast?.received).joined()
    let described = receiver.rids.filter { !$0.isSent }
    var layers: [NegotiatedLayer] = []
    for choices in sent.prefix(SimulcastLayer.countMaximum) {
      for choice in choices {
        guard let wish = wishes.first(where: { $0.rid == choice.rid }),
          let limits = described.first(where: { $0.id == choice.rid }),
          sender.rids.contains(where: { $0.isSent && $0.id == choice.rid }),
          !layers.contains(where: { $0.rid == choice.rid })
        else { continue }
        layers.append(
          NegotiatedLayer(
            rid: choice.rid, isPaused: wish.isPaused,
            maxBitrate: limits.restriction("max-br").flatMap { UInt64($0) },
            maxFramerate: limits.restriction("max-fps").flatMap { Double($0) }
              .flatMap { $0.isFinite && $0 > 0 ? $0 : nil }))
        break
      }
    }
    return layers
  }
}

extension Transceiver {
  /// The names of the layers that a peer's offer accepts.
  func layers(takenBy offered: SDPSection) -> [String] {
    let taken = Simulcast.streams(offered.simulcast?.received).joined()
    return layers.map(\.rid).filter { rid in
      taken.contains { $0.rid == rid } && offered.rids.contains { !$0.isSent && $0.id == rid }
    }
  }
}

extension SDPSection {
  /// The layers that the section's writer wants to receive: the first alternative of each, if it
  /// has its own `rid` line (RFC 8853 section 5.2).
  var wantedLayers: [String] {
    var layers: [String] = []
    for choices in Simulcast.streams(simulcast?.received) {
      guard let rid = choices.first?.rid, SimulcastLayer.isName(rid), !layers.contains(rid),
        rids.contains(where: { !$0.isSent && $0.id == rid })
      else { continue }
      layers.append(rid)
    }
    return Array(layers.prefix(SimulcastLayer.countMaximum))
  }
}

extension Simulcast {
  /// The streams of a list, each with its alternatives (RFC 8853 section 5.1).
  static func streams(_ list: String?) -> [[(rid: String, isPaused: Bool)]] {
    (list ?? "").split(separator: ";").prefix(16).map { choices in
      choices.split(separator: ",").prefix(16).map { choice in
        let isPaused = choice.hasPrefix("~")
        return (String(isPaused ? choice.dropFirst() : choice), isPaused)
      }
    }
  }
}

extension RestrictionID {
  /// The value of a restriction (RFC 8851 section 5).
  fileprivate func restriction(_ name: String) -> Substring? {
    for part in (restrictions ?? "").split(separator: ";") {
      let halves = part.split(separator: "=", maxSplits: 1)
      if halves.count == 2, halves[0] == name { return halves[1] }
    }
    return nil
  }
}
