import RTP
import Wire

/// Recovers lost packets from ULPFEC (RFC 5109), which browsers carry in RED.
struct PacketRecovery {
  /// How many media and FEC packets are held, as in libwebrtc.
  private static let mediaMaximum = 192
  private static let correctionsMaximum = 48

  private var media: [UInt16: [UInt8]] = [:]
  /// Their numbers, the oldest first.
  private var order: [UInt16] = []
  private var corrections: [ErrorCorrection] = []

  /// Adds a media packet as it was when its correction was computed, without a RED header, and
  /// returns the lost packets that this recovers.
  mutating func receive(_ packet: [UInt8], sequence: UInt16, ssrc: UInt32) -> [[UInt8]] {
    guard add(packet, sequence) else { return [] }
    return recover(ssrc)
  }

  /// Adds a packet that corrects errors, and returns the lost packets that it recovers.
  mutating func receive(_ correction: ErrorCorrection, ssrc: UInt32) -> [[UInt8]] {
    if corrections.count == PacketRecovery.correctionsMaximum { corrections.removeFirst() }
    corrections.append(correction)
    return recover(ssrc)
  }

  private mutating func add(_ packet: [UInt8], _ sequence: UInt16) -> Bool {
    guard media[sequence] == nil else { return false }
    if order.count == PacketRecovery.mediaMaximum { media[order.removeFirst()] = nil }
    media[sequence] = packet
    order.append(sequence)
    return true
  }

  /// Repeats as long as a recovered packet makes another one recoverable.
  private mutating func recover(_ ssrc: UInt32) -> [[UInt8]] {
    var recovered: [[UInt8]] = []
    var hasNews = true
    while hasNews {
      hasNews = false
      var index = 0
      while index < corrections.count {
        switch attempt(corrections[index], ssrc) {
        case .incomplete: index += 1
        case .useless: corrections.remove(at: index)
        case .recovered(let sequence, let packet):
          corrections.remove(at: index)
          guard add(packet, sequence) else { continue }
          recovered.append(packet)
          hasNews = true
        }
      }
    }
    return recovered
  }

  private enum Attempt {
    /// More than one packet is missing.
    case incomplete
    /// No packet is missing, or the result is invalid.
    case useless
    case recovered(UInt16, [UInt8])
  }

  private func attempt(_ correction: ErrorCorrection, _ ssrc: UInt32) -> Attempt {
    var others: [[UInt8]] = []
    var missing: UInt16?
    for sequence in correction.sequences {
      if let bytes = media[sequence] {
        others.append(bytes)
      } else if missing != nil {
        return .incomplete
      } else {
        missing = sequence
      }
    }
    guard let missing, let packet = correction.packet(missing, ssrc: ssrc, from: others) else {
      return .useless
    }
    return .recovered(missing, packet)
  }
}
