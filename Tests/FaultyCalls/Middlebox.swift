import Lab
import Media
package import Peer
import Secure
package import Wire

/// A box on the path between two peers, which inspects their datagrams.
package final class Middlebox {
  /// What a datagram contains, judged by its first bytes.
  package enum Content: Equatable { case audio, video, repair, rtcp, dtls, stun, other }

  /// The datagrams that replace a single datagram, each sent after a delay.
  package typealias Pieces = [(bytes: [UInt8], after: Interval)]

  /// Returns what replaces a peer's datagram; a result of nil passes the datagram unchanged.
  package var treat: ((_ sender: Int, _ content: Content, _ bytes: [UInt8], Instant) -> Pieces?)?
  /// The maximum jitter of each peer's datagrams, in milliseconds; they stay in order.
  package var jitter = [0, 0]
  /// The number of datagrams that the fault dropped, delayed or changed.
  ///
  /// If the fault is in a microphone, this is the number of speech blocks during the fault.
  package var touched = 0
  /// The number of datagrams of the affected kinds that the peer at fault sent in the whole call.
  ///
  /// If the fault is in a microphone, this is the number of speech blocks before the fault.
  package var seen = 0

  private let addresses: [IPAddress]
  private var kinds: [UInt8: MediaKind] = [:]
  private var secured: SecuredTransport?
  private var opener: Keys?
  private var sealer: Keys?
  private var clear: Middlebox.Rewriter?
  private var rewritten: Int?
  private var lastLeft = [Instant.zero, Instant.zero]
  private let chance: Chance

  package typealias Rewriter = (_ content: Content, _ clear: inout [UInt8], Instant) -> Bool

  package init(addresses: [IPAddress], chance: Chance) {
    (self.addresses, self.chance) = (addresses, chance)
  }

  /// Decrypts a peer's packets, changes them and protects them again, as if the peer's stack were
  /// faulty.
  ///
  /// - Parameter change: changes a packet in the clear; false drops it.
  package func rewrite(_ peer: Int, _ change: @escaping Rewriter) {
    (rewritten, clear) = (peer, change)
  }

  /// Learns payload types and keys from a peer's events.
  package func learn(_ event: PeerEvent, of peer: Int) {
    switch event {
    case .trackNegotiated(let track): kinds[track.payloadType] = track.kind
    case .secured(let transport) where peer == rewritten: secured = transport
    case .keyLog(let log) where peer == rewritten: makeKeys(log)
    default: break
    }
  }

  private func makeKeys(_ log: KeyLog) {
    guard let secured, let profile = SRTPProtection(rawValue: secured.profile)?.profile,
      let keys = log.secrets.srtpKeys(
        profile, cipherSuite: secured.cipherSuite,
        role: secured.role == "client" ? .client : .server)
    else { return }
    // The opener receives what this peer sends, so its two keys are exchanged.
    opener = try? Keys(SRTPContext(profile: profile, sendKey: keys.receive, receiveKey: keys.send))
    sealer = try? Keys(SRTPContext(profile: profile, sendKey: keys.send, receiveKey: keys.receive))
  }

  /// Carries a datagram through this box, on its way from one peer to the other.
  package func carry(
    from source: SocketAddress, to destination: SocketAddress, _ bytes: [UInt8], at now: Instant
  ) -> Pieces {
    guard let sender = addresses.firstIndex(of: source.ip), addresses.contains(destination.ip)
    else { return [(bytes, .zero)] }
    let content = content(of: bytes)
    var bytes = bytes
    if sender == rewritten, let clear, let opener, let sealer,
      [.audio, .video, .repair, .rtcp].contains(content)
    {
      guard opener.open(&bytes, isRTCP: content == .rtcp), clear(content, &bytes, now) else {
        return []
      }
      guard sealer.seal(&bytes, isRTCP: content == .rtcp) else { return [] }
    }
    let pieces = treat?(sender, content, bytes, now) ?? [(bytes, .zero)]
    guard jitter[sender] > 0 else { return pieces }
    let wait = Interval(nanoseconds: Int64(chance.below(jitter[sender] * 1_000_000)))
    let leaves = max(lastLeft[sender], now + wait)
    lastLeft[sender] = leaves
    return pieces.map { ($0.bytes, leaves - now + $0.after) }
  }

  private func content(of bytes: [UInt8]) -> Content {
    guard bytes.count > 1 else { return .other }
    switch bytes[0] {
    case 0..<4: return .stun
    case 20..<64: return .dtls
    case 128..<192:
      if (192..<224).contains(bytes[1]) { return .rtcp }
      switch kinds[bytes[1] & 127] {
      case .audio?: return .audio
      case .video?: return .video
      default: return .repair
      }
    default: return .other
    }
  }

  /// The keys of one direction.
  private final class Keys {
    private var context: SRTPContext

    init(_ context: consuming SRTPContext) { self.context = context }

    func open(_ packet: inout [UInt8], isRTCP: Bool) -> Bool {
      do {
        if isRTCP { try context.unprotectRTCP(&packet) } else { try context.unprotectRTP(&packet) }
        return true
      } catch { return false }
    }

    func seal(_ packet: inout [UInt8], isRTCP: Bool) -> Bool {
      do {
        if isRTCP { try context.protectRTCP(&packet) } else { try context.protectRTP(&packet) }
        return true
      } catch { return false }
    }
  }
}
