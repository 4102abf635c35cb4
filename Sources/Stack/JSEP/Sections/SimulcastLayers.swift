import RTP
import SDP

/// A stream of the simulcast that a transceiver sends (RFC 8853).
package struct SimulcastLayer: Hashable, Sendable {
  /// Its name in descriptions and packets (RFC 8851 section 4).
  package let rid: String
  package let ssrc: UInt32
  package let rtxSSRC: UInt32

  /// How many layers a simulcast has at most.
  package static let countMaximum = 3

  /// Whether a text may name a layer: letters and digits, as one-byte header extensions carry them
  /// (RFC 8852 section 3.1, RFC 8285 section 4.2).
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

/// A layer of a simulcast as an exchange agreed on it.
package struct NegotiatedLayer: Hashable, Sendable {
  package let rid: String
  /// Whether the peer wants nothing of it for now (RFC 8853 section 5.1).
  package let isPaused: Bool
  /// The most that the peer takes of it: in bits per second and in video frames per second (RFC
  /// 8851 section 5); nil for no limit.
  package let maxBitrate: UInt64?
  package let maxFramerate: Double?
}

extension NegotiatedLayer {
  /// The layers that one side sends and the other takes, in the order of the sender.
  ///
  /// What is listed and has no line of its own is not there (RFC 8853 section 5.2); of alternatives
  /// the first one that both have is meant.
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
  /// The names of the layers that a peer's offer takes.
  func layers(takenBy offered: SDPSection) -> [String] {
    let taken = Simulcast.streams(offered.simulcast?.received).joined()
    return layers.map(\.rid).filter { rid in
      taken.contains { $0.rid == rid } && offered.rids.contains { !$0.isSent && $0.id == rid }
    }
  }
}

extension SDPSection {
  /// The layers that the section's sender wants to get: of alternatives the first, each with a line
  /// of its own (RFC 8853 section 5.2).
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
