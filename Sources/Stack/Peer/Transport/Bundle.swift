import Flow
import ICE
import Secure
import Wire

/// The m-sections that share a transport (RFC 9143), or a single m-section, with the transport and
/// the RTP session (RFC 3550 section 3).
final class Bundle {
  private(set) var transport: PeerTransport
  private(set) var flow: MediaFlow
  private var transportOutputs = Outbox<PeerTransport.Output>()
  private var flowOutputs = Outbox<MediaFlow.Output>()

  /// The MIDs of the negotiated media sections.
  private(set) var mids: [String] = []
  /// The states as last reported.
  private(set) var iceState = ICEConnectionState.new
  private(set) var gatheringState = ICEGatheringState.new
  private(set) var dtlsState = DTLSTransportState.new
  /// Whether all of the current generation's candidates were reported.
  private(set) var hasAllCandidates = false
  /// The combined target of the sections' video encoders in bit/s; nil until it is known.
  private(set) var videoBitrate: UInt64?
  /// The number of bundles that share the peer's bit rate.
  private(set) var bitrateShare: UInt64 = 1
  /// The instant of the last RTCP block, if that was a BYE from the remote peer.
  private var goodbye: Instant?
  /// The selected pair as last reported.
  private var selectedPair: ICEPairReport?
  /// The local addresses of the bundle's sockets.
  private(set) var addresses: [SocketAddress] = []

  init(transport: consuming PeerTransport, flow: MediaFlow) {
    self.transport = transport
    self.flow = flow
  }

  var number: Int { transport.number }

  /// The DTLS association's name among the peer's state machines.
  var dtlsMachine: String { number == 0 ? "dtls" : "dtls \(number + 1)" }

  /// Passes each packet in the clear to a closure, for inspecting a replay.
  func show(packetsTo onlooker: ((ClearPacket) -> Void)?) { transport.onlooker = onlooker }

  // MARK: Inputs

  /// Passes an input to the transport.
  /// - Returns: whether to process its outputs; false if an outer call already does.
  func step(_ input: consuming PeerTransport.Input, at now: Instant) -> Bool {
    let isOutermost = transportOutputs.isEmpty
    transport.step(input, at: now, into: &transportOutputs)
    return isOutermost
  }

  func step(_ input: MediaFlow.Input, at now: Instant) -> Bool {
    let isOutermost = flowOutputs.isEmpty
    flow.step(input, at: now, into: &flowOutputs)
    return isOutermost
  }

  func nextTransportOutput() -> PeerTransport.Output? { transportOutputs.next() }

  func nextFlowOutput() -> MediaFlow.Output? { flowOutputs.next() }

  // MARK: Negotiated and reported values

  func carry(_ mids: [String]) { self.mids = mids }

  /// Sets the number of bundles that share the bit rate; returns false if it is unchanged.
  func share(among count: UInt64) -> Bool {
    defer { bitrateShare = count }
    return bitrateShare != count
  }

  func setVideoBitrate(_ bitrate: UInt64) { videoBitrate = bitrate }

  func follow(_ state: ICEConnectionState) { iceState = state }

  func follow(_ state: ICEGatheringState) { gatheringState = state }

  /// Records the DTLS association's state; returns the transition, or nil if the state is
  /// unchanged.
  func follow(_ state: DTLSTransportState) -> StateTransition? {
    guard state != dtlsState else { return nil }
    defer { dtlsState = state }
    return StateTransition(machine: dtlsMachine, from: dtlsState.rawValue, to: state.rawValue)
  }

  /// Records a reported candidate, or the end of candidates.
  func record(_ candidate: ICECandidate?) { hasAllCandidates = candidate == nil }

  /// Records a pair report; returns the reason if the selected pair changed, otherwise nil.
  func follow(_ pair: ICEPairReport) -> SelectedPairChange.Reason? {
    let before = selectedPair
    guard pair.selected || before?.id == pair.id else { return nil }
    selectedPair = pair
    return pair.selected && pair.id != before?.id ? pair.reason(after: before) : nil
  }

  /// Records whether the latest RTCP block, sent or received, is a BYE from the remote peer.
  func record(isGoodbye: Bool, at now: Instant) { goodbye = isGoodbye ? now : nil }

  /// Returns whether a BYE arrived at this instant.
  func hasLeft(at now: Instant) -> Bool { goodbye == now }

  // MARK: Sockets

  func bind(_ address: SocketAddress) { addresses.append(address) }

  func unbind(_ address: SocketAddress) { addresses.removeAll { $0 == address } }
}

/// A peer's bundles by number; there is always at least one.
struct BundleTable {
  private(set) var all: [Bundle]
  /// The application's limits for all video in bit/s; nil unless set after the genesis.
  private(set) var bitrateLimits: (minimum: UInt64?, maximum: UInt64?) = (nil, nil)
  /// The addresses to gather on, once known.
  private(set) var interfaces: [IPAddress]?
  /// Each address's network type, including addresses that are gone; used only for look-ups.
  private var networkTypes: [IPAddress: NetworkType] = [:]

  /// The maximum number of stored addresses; a host has a few at a time.
  private static let networkTypesMaximum = 1_024

  init(_ first: Bundle) { all = [first] }

  var first: Bundle { all[0] }

  subscript(number: Int) -> Bundle? { all.first { $0.number == number } }

  /// Returns the bundle that carries a media section, or the first bundle if none does.
  func carrying(_ mid: String) -> Bundle { all.first { $0.mids.contains(mid) } ?? first }

  func bound(to local: SocketAddress) -> Bundle {
    all.count == 1 ? first : all.first { $0.addresses.contains(local) } ?? first
  }

  /// Returns the bundle that made a system request, or nil if it is gone.
  func asking(_ request: UInt32) -> Bundle? {
    let ordinal = ICEAgent.ordinal(ofRequest: request)
    return all.count == 1 && ordinal == 0 ? first : all.first { $0.number & 0xff == ordinal }
  }

  mutating func limitBitrate(minimum: UInt64?, maximum: UInt64?) {
    bitrateLimits = (minimum, maximum)
  }

  mutating func learn(_ addresses: [IPAddress]) { interfaces = addresses }

  mutating func learn(_ type: NetworkType, of address: IPAddress) {
    guard networkTypes[address] != nil || networkTypes.count < BundleTable.networkTypesMaximum
    else { return }
    networkTypes[address] = type
  }

  /// Returns a local address's network type, or nil if it is unknown.
  func networkType(of address: IPAddress) -> NetworkType? { networkTypes[address] }

  mutating func add(_ bundle: Bundle) {
    let place = all.firstIndex { $0.number > bundle.number } ?? all.endIndex
    all.insert(bundle, at: place)
  }

  /// Removes and returns all bundles except those with the given numbers; removes nothing if no
  /// bundle would remain.
  mutating func removeAll(besides numbers: [Int]) -> [Bundle] {
    let kept = all.filter { numbers.contains($0.number) }
    guard !kept.isEmpty else { return [] }
    defer { all = kept }
    return all.filter { !numbers.contains($0.number) }
  }
}

// MARK: - Streams

extension BundleTable {
  /// The sent streams, including earlier ones.
  var outboundStreams: [OutboundStreamCounters] { all.flatMap(\.flow.outbound) }

  /// The received streams that have not ended.
  var inboundStreams: [InboundStreamCounters] {
    all.flatMap { $0.flow.inbound.filter { !$0.hasEnded } }
  }
}

// MARK: - Connection states (webrtc-pc sections 4.4.2 to 4.4.4)

extension BundleTable {
  /// The combined ICE state (W3C RTCIceConnectionState).
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

  /// The combined gathering state (W3C RTCIceGatheringState).
  var iceGatheringState: ICEGatheringState {
    let states = all.map(\.gatheringState)
    if states.contains(.gathering) { return .gathering }
    return states.allSatisfy { $0 == .complete } ? .complete : .new
  }

  /// The combined connection state (W3C RTCPeerConnectionState) of a peer that is not closed.
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
  /// Returns the reason that this pair replaced another.
  fileprivate func reason(after before: ICEPairReport?) -> SelectedPairChange.Reason {
    guard let before else { return .first }
    if before.local.usernameFragment != local.usernameFragment { return .restart }
    if before.state == .failed { return .lost }
    return nominated && !before.nominated ? .nominated : .preferred
  }
}
