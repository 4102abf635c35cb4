import Flow
import ICE
import Secure
import Wire

/// The m-sections that share a transport (RFC 9143), or one that is alone: their transport, and the
/// RTP session over it (RFC 3550 section 3).
final class Bundle {
  private(set) var transport: PeerTransport
  private(set) var flow: MediaFlow
  private var transportOutputs = Outbox<PeerTransport.Output>()
  private var flowOutputs = Outbox<MediaFlow.Output>()

  /// The media sections that were agreed on.
  private(set) var mids: [String] = []
  /// The states as they were told last.
  private(set) var iceState = ICEConnectionState.new
  private(set) var gatheringState = ICEGatheringState.new
  private(set) var dtlsState = DTLSTransportState.new
  /// Whether all candidates of the present generation were told.
  private(set) var hasAllCandidates = false
  /// What the video encoders of the sections may spend together, once the flow said so.
  private(set) var videoBitrate: UInt64?
  /// Among how many bundles the bit rate of the peer is shared.
  private(set) var bitrateShare: UInt64 = 1
  /// When the peer's last RTCP packet came, if it was a goodbye.
  private var goodbye: Instant?
  /// The pair in use, as it was told last.
  private var selectedPair: ICEPairReport?
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

  /// Shows every packet in the clear to those who look into a replay.
  func show(packetsTo onlooker: ((ClearPacket) -> Void)?) { transport.onlooker = onlooker }

  // MARK: Inputs

  /// Gives the transport an input.
  ///
  /// - Returns: whether what comes of it is to be asked for; else whoever drove it before does.
  func step(_ input: consuming PeerTransport.Input, at now: Instant) -> Bool {
    let isOutermost = transportOutputs.isEmpty
    transport.step(input, at: now, into: &transportOutputs)
    return isOutermost
  }

  /// The same for the flow.
  func step(_ input: MediaFlow.Input, at now: Instant) -> Bool {
    let isOutermost = flowOutputs.isEmpty
    flow.step(input, at: now, into: &flowOutputs)
    return isOutermost
  }

  func nextTransportOutput() -> PeerTransport.Output? { transportOutputs.next() }

  func nextFlowOutput() -> MediaFlow.Output? { flowOutputs.next() }

  // MARK: What was agreed on, and told

  func carry(_ mids: [String]) { self.mids = mids }

  /// Shares the bit rate of the peer among so many; false when that is so already.
  func share(among count: UInt64) -> Bool {
    defer { bitrateShare = count }
    return bitrateShare != count
  }

  func setVideoBitrate(_ bitrate: UInt64) { videoBitrate = bitrate }

  func follow(_ state: ICEConnectionState) { iceState = state }

  func follow(_ state: ICEGatheringState) { gatheringState = state }

  /// Handles a state of the DTLS association; a move to the present state is none.
  func follow(_ state: DTLSTransportState) -> StateTransition? {
    guard state != dtlsState else { return nil }
    defer { dtlsState = state }
    return StateTransition(machine: dtlsMachine, from: dtlsState.rawValue, to: state.rawValue)
  }

  /// Handles a candidate that is told, or that there are no more.
  func note(_ candidate: ICECandidate?) { hasAllCandidates = candidate == nil }

  /// Handles a report of a pair; why it is in use, when that is new.
  func follow(_ pair: ICEPairReport) -> SelectedPairChange.Reason? {
    let before = selectedPair
    guard pair.selected || before?.id == pair.id else { return nil }
    selectedPair = pair
    return pair.selected && pair.id != before?.id ? pair.reason(after: before) : nil
  }

  /// Handles an RTCP packet of the peer, which may say goodbye.
  func note(isGoodbye: Bool, at now: Instant) { goodbye = isGoodbye ? now : nil }

  /// Whether the packet of this very instant was a goodbye.
  func saidGoodbye(at now: Instant) -> Bool { goodbye == now }

  // MARK: Sockets

  func bind(_ address: SocketAddress) { addresses.append(address) }

  func unbind(_ address: SocketAddress) { addresses.removeAll { $0 == address } }
}

/// The bundles of a peer in the order of their numbers; there always is one.
struct BundleTable {
  private(set) var all: [Bundle]
  /// What an application said since genesis of what all video may spend, in bits per second.
  private(set) var bitrateLimits: (minimum: UInt64?, maximum: UInt64?) = (nil, nil)
  /// The addresses that may be gathered on, once they are known.
  private(set) var interfaces: [IPAddress]?

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

  mutating func limitBitrate(minimum: UInt64?, maximum: UInt64?) {
    bitrateLimits = (minimum, maximum)
  }

  mutating func learn(_ addresses: [IPAddress]) { interfaces = addresses }

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

extension ICEPairReport {
  /// Why this pair took the place of another one.
  fileprivate func reason(after before: ICEPairReport?) -> SelectedPairChange.Reason {
    guard let before else { return .first }
    if before.local.usernameFragment != local.usernameFragment { return .restart }
    if before.state == .failed { return .lost }
    return nominated && !before.nominated ? .nominated : .preferred
  }
}
