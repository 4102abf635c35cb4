import ICE
import RTP
import Secure
import Wire

// What comes from the network, and what goes there.
extension PeerTransport {
  private static let tellInterval = Interval.milliseconds(500)

  // MARK: In

  /// Sorts a datagram by its first byte (RFC 7983 section 7).
  mutating func receive(_ datagram: Datagram, arrival: Instant) {
    guard !isClosed else { return }
    self.arrival = arrival
    receivingPath = (datagram.local, datagram.remote)
    switch DatagramClass(datagram.bytes.span.bytes) {
    case .stun, .channelData:
      drive(
        .datagram(local: datagram.local, remote: datagram.remote, bytes: datagram.bytes))
    case .dtls:
      count(received: datagram)
      drive(DTLSTransport.Input.datagram(datagram.bytes))
    case .rtp: receiveProtected(datagram, isRTCP: false)
    case .rtcp: receiveProtected(datagram, isRTCP: true)
    default: emit(.refused(layer: "transport", "datagram of unknown kind"))
    }
  }

  private mutating func receiveProtected(_ datagram: Datagram, isRTCP: Bool) {
    guard srtp != nil else {
      emit(.refused(layer: "srtp", "packet before the keys are known"))
      return
    }
    var packet = datagram.bytes
    do throws(SRTPContext.Refusal) {
      if isRTCP {
        try srtp?.unprotectRTCP(&packet)
      } else {
        try srtp?.unprotectRTP(&packet)
      }
    } catch {
      emit(.refused(layer: "srtp", error.reason))
      return
    }
    count(received: datagram)
    tellTrafficReceived(datagram)
    show(isRTCP ? .rtcp : .rtp, received: packet)
    emit(isRTCP ? .rtcp(packet, arrival: arrival) : .rtp(packet, arrival: arrival))
  }

  private mutating func count(received datagram: Datagram) {
    counters.packetsReceived += 1
    counters.bytesReceived += UInt64(datagram.bytes.count)
    traffic.count(
      datagram.bytes.count, isInbound: true, datagram.local, datagram.remote, at: now)
  }

  private mutating func tellTrafficReceived(_ datagram: Datagram) {
    guard now - PeerTransport.tellInterval >= lastReceivedTold else { return }
    lastReceivedTold = now
    drive(.trafficReceived(local: datagram.local, remote: datagram.remote))
  }

  // MARK: Out

  mutating func send(_ bytes: consuming [UInt8]) {
    guard let path else { return }
    counters.packetsSent += 1
    counters.bytesSent += UInt64(bytes.count)
    traffic.count(bytes.count, isInbound: false, path.local, path.remote, at: now)
    if pathIsRelayed {
      drive(ICEAgent.Input.relay(local: path.local, remote: path.remote, bytes: bytes))
    } else {
      emit(.datagram(Datagram(local: path.local, remote: path.remote, bytes: bytes)))
    }
    guard now - PeerTransport.tellInterval >= lastSentTold else { return }
    lastSentTold = now
    drive(ICEAgent.Input.trafficSent)
  }

  mutating func sendProtected(_ packet: consuming [UInt8], isRTCP: Bool) {
    guard srtp != nil, path != nil else { return }
    show(isRTCP ? .rtcp : .rtp, sent: packet)
    do throws(SRTPContext.Refusal) {
      if isRTCP {
        try srtp?.protectRTCP(&packet)
      } else {
        try srtp?.protectRTP(&packet)
      }
    } catch {
      emit(.refused(layer: "srtp", "own packet: \(error.reason)"))
      return
    }
    send(packet)
  }
}

extension SRTPContext.Refusal {
  /// The refusal in words.
  var reason: String {
    switch self {
    case .authentication: "authentication failed"
    case .replayed: "replayed packet"
    case .malformed(let status): "malformed packet (status \(status))"
    }
  }
}
