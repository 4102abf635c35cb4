import Flow
import ICE
import Secure
import Transport
import Wire

/// The m-sections that share a transport (RFC 9143), or one that is alone: their transport, and the
/// RTP session over it (RFC 3550 section 3).
final class Bundle {
  var transport: PeerTransport
  var flow: MediaFlow
  var transportOutputs = Outbox<PeerTransport.Output>()
  var flowOutputs = Outbox<MediaFlow.Output>()

  /// The media sections that were agreed on.
  var mids: [String] = []
  /// The states as they were told last.
  var iceState = ICEConnectionState.new
  var gatheringState = ICEGatheringState.new
  var dtlsState = DTLSTransportState.new
  /// Whether all candidates of the present generation were told.
  var hasAllCandidates = false
  /// What the video encoders of the sections may spend together, once the flow said so.
  var videoBitrate: UInt64?
  /// Among how many bundles the bit rate of the peer is shared.
  var bitrateShare: UInt64 = 1
  /// When the peer's last RTCP packet came, if it was a goodbye.
  var goodbye: Instant?
  /// The pair in use, as it was told last.
  var selectedPair: ICEPairReport?
  /// The own ends of its sockets.
  private(set) var addresses: [SocketAddress] = []

  init(transport: consuming PeerTransport, flow: MediaFlow) {
    self.transport = transport
    self.flow = flow
  }

  /// The number of the transport.
  var number: Int { transport.number }

  /// The name of the DTLS association among the state machines of the peer.
  var dtlsMachine: String { number == 0 ? "dtls" : "dtls \(number + 1)" }

  func bind(_ address: SocketAddress) { addresses.append(address) }

  func unbind(_ address: SocketAddress) { addresses.removeAll { $0 == address } }
}

/// The bundles of a peer in the order of their numbers; there always is one.
struct BundleTable {
  private(set) var all: [Bundle]
  /// What an application said since genesis of what all video may spend, in bits per second.
  var bitrateLimits: (minimum: UInt64?, maximum: UInt64?) = (nil, nil)

  init(_ first: Bundle) { all = [first] }

  var first: Bundle { all[0] }

  /// The bundle with a number.
  subscript(number: Int) -> Bundle? { all.first { $0.number == number } }

  /// The bundle that carries a media section.
  func carrying(_ mid: String) -> Bundle { all.first { $0.mids.contains(mid) } ?? first }

  /// The bundle that a socket belongs to.
  func bound(to local: SocketAddress) -> Bundle {
    all.count == 1 ? first : all.first { $0.addresses.contains(local) } ?? first
  }

  /// The bundle that asked the system for something; nil when it is gone.
  func asking(_ request: UInt32) -> Bundle? {
    let ordinal = ICEAgent.ordinal(ofRequest: request)
    return all.count == 1 && ordinal == 0 ? first : all.first { $0.number & 0xff == ordinal }
  }

  mutating func add(_ bundle: Bundle) {
    let place = all.firstIndex { $0.number > bundle.number } ?? all.endIndex
    all.insert(bundle, at: place)
  }

  /// Takes out the bundles that are none of those with these numbers; one stays in any case.
  mutating func removeAll(besides numbers: [Int]) -> [Bundle] {
    let kept = all.filter { numbers.contains($0.number) }
    guard !kept.isEmpty else { return [] }
    defer { all = kept }
    return all.filter { !numbers.contains($0.number) }
  }
}

// MARK: - Streams

extension BundleTable {
  /// What is or was sent.
  var outboundStreams: [OutboundStreamCounters] { all.flatMap(\.flow.outbound) }

  /// What is received.
  var inboundStreams: [InboundStreamCounters] {
    all.flatMap { $0.flow.inbound.filter { !$0.hasEnded } }
  }
}

// MARK: - States of the connection (webrtc-pc sections 4.4.2 to 4.4.4)

extension BundleTable {
  /// W3C RTCIceConnectionState.
  var iceConnectionState: ICEConnectionState {
    let states = all.map(\.iceState)
    func allAre(_ allowed: ICEConnectionState...) -> Bool {
      states.allSatisfy { allowed.contains($0) }
    }
    if allAre(.closed) { return .closed }
    if states.contains(.failed) { return .failed }
    if states.contains(.disconnected) { return .disconnected }
    if allAre(.new, .closed) { return .new }
    if states.contains(.new) || states.contains(.checking) { return .checking }
    return allAre(.completed, .closed) ? .completed : .connected
  }

  /// W3C RTCIceGatheringState.
  var iceGatheringState: ICEGatheringState {
    let states = all.map(\.gatheringState)
    if states.contains(.gathering) { return .gathering }
    return states.allSatisfy { $0 == .complete } ? .complete : .new
  }

  /// W3C RTCPeerConnectionState of a connection that is not closed; every step asks for it.
  var connectionState: ConnectionState {
    var (isDisconnected, isNew, isUp) = (false, true, true)
    for bundle in all {
      let (ice, dtls) = (bundle.iceState, bundle.dtlsState)
      if ice == .failed || dtls == .failed { return .failed }
      if ice == .disconnected { isDisconnected = true }
      if ice != .new || dtls != .new { isNew = false }
      if ice != .connected && ice != .completed || dtls != .connected && dtls != .closed {
        isUp = false
      }
    }
    if isDisconnected { return .disconnected }
    return isNew ? .new : isUp ? .connected : .connecting
  }
}
