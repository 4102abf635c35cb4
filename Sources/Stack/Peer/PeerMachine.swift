import Flow
import JSEP
package import Media
import RTP
package import Secure
package import Wire

/// The complete client stack of a peer connection as a single deterministic machine.
///
/// It starts with a genesis. Each input passes through all layers: a layer's outputs are passed to
/// the next layer within the same step.
package final class PeerMachine: Machine {
  private let codecs: any CodecFactory
  private var security: any SecurityFactory
  private(set) var stack: PeerStack?
  /// Called with each packet in the clear, for inspecting a replay; set it before the genesis.
  package var onlooker: ((ClearPacket) -> Void)?

  /// Creates a peer that waits for its genesis.
  package init(codecs: any CodecFactory, security: any SecurityFactory = LibrarySecurity()) {
    self.codecs = codecs
    self.security = security
  }

  /// Replaces the implementation that secures the transport; call it before the genesis.
  package func use(_ security: any SecurityFactory) { self.security = security }

  package func step(_ input: PeerInput, at now: Instant, into outbox: inout Outbox<PeerOutput>) {
    if stack == nil, case .genesis(let genesis) = input {
      stack = PeerStack(genesis, codecs: codecs, security: security)
      stack?.bundles.first.show(packetsTo: onlooker)
    }
    stack?.step(input, at: now, into: &outbox)
  }

  package var deadline: Instant? { stack?.deadline }

  /// Returns whether a datagram from an unknown endpoint is a check from the remote peer, that is,
  /// carries the local credentials.
  ///
  /// The state does not change.
  package func recognizes(_ datagram: Datagram) -> Bool {
    stack?.bundles.bound(to: datagram.local).transport.recognizes(datagram.bytes) ?? false
  }

  /// The number of random bytes drawn so far from all streams.
  package var entropyDrawn: UInt64 { stack?.entropy.drawn ?? 0 }

  /// The label of each random stream, and the number of bytes drawn from it.
  package var entropyLedger: [(label: String, drawn: UInt64)] { stack?.entropy.ledger ?? [] }
}

// MARK: - PeerStack

/// A peer's layers and their connections.
///
///     calls ──▶ Negotiation ──▶ sections, transport parameters
///     datagrams ◀──▶ PeerTransport ◀── RTP ──▶ MediaFlow ◀──▶ captures and playouts
///                                  ◀── SCTP ─▶ DataTransport ◀──▶ data channels
///
/// Sections that are not bundled have their own transport and flow.
///
/// Each part is a type that owns its data. The stack holds one of each; its extensions only pass
/// calls, inputs and outputs between them. The parts by concern:
///
/// - Calls: the application's calls, and the effects of exchanged descriptions.
/// - Transport: `BundleTable`, the transports and the flows over them.
/// - Media: `TrackTable`, captures and playouts, with `SenderTable` and `ReceiverTable`, the
///   application's settings for senders and received tracks; `LayerAllocation` and `LayerChoice`,
///   the simulcast layers that are sent and shown; `SpeakerWatch`, the detection of speakers.
/// - Data: `DataTransport`, the association and its channels.
/// - States: `ConnectionStates`, and `ConnectionLife`, which derives further states from them.
/// - Stats: `StatsCollector`, which reads the other parts.
final class PeerStack {
  let genesis: Genesis
  let entropy: Entropy

  var negotiation: Negotiation {
    didSet {
      life.negotiationChanged()
      agreed = AgreedParts(negotiation)
    }
  }
  private(set) var agreed = AgreedParts()
  /// The transports, each with its flow.
  var bundles: BundleTable
  var tracks: TrackTable
  var remoteStreams = RemoteStreams()
  var data: DataTransport
  var speakers = SpeakerWatch()
  var marks = PacketMarks()

  var states = ConnectionStates()
  var life: ConnectionLife
  private(set) var refusals = RefusalLedger()
  let statsNames: StatsNames
  /// The offer/answer exchange of a relay's leg; nil for a full stack.
  var relay: RelayedExchange?

  var dataOutputs = Outbox<DataTransport.Output>()
  /// The current step's outputs.
  private var outbox = Outbox<PeerOutput>()
  /// The current step's instant.
  private(set) var now = Instant.zero

  init(_ genesis: Genesis, codecs: any CodecFactory, security: any SecurityFactory) {
    self.genesis = genesis
    let entropy = Entropy(
      seed: genesis.seed, scripts: genesis.configuration.drawnBytes ?? [:])
    self.entropy = entropy
    let cname = entropy.stream("cname").iceString(16)
    negotiation = Negotiation(
      entropy: entropy.stream("jsep"), cname: cname,
      bundlePolicy: genesis.configuration.bundlePolicy,
      answersAsDTLSClient: genesis.configuration.answersAsDTLSClient,
      capabilities: Capabilities(
        codecs: genesis.configuration.codecs, extensions: genesis.configuration.headerExtensions,
        encoders: genesis.configuration.encoders ?? [],
        acceptsOfferedLayers: genesis.configuration.takesOfferedLayers ?? false,
        receivesAllOffered: genesis.configuration.receivesAllOffered ?? false))
    let transport = PeerTransport(
      entropy: entropy, wallClock: genesis.wallClock,
      ice: genesis.configuration.iceSettings, certificates: genesis.configuration.certificates,
      profiles: genesis.configuration.srtpProtections, security: security)
    let flow = MediaFlow(
      entropy: entropy.stream("rtp"), wallClock: genesis.wallClock, cname: cname,
      reportsWithDemands: genesis.configuration.reportsWithKeyframeDemands ?? false,
      countsProbes: genesis.configuration.hasCompleteStatistics ?? false)
    bundles = BundleTable(Bundle(transport: transport, flow: flow))
    data = DataTransport(entropy: entropy.stream("sctp"))
    tracks = TrackTable(genesis.configuration, codecs: codecs)
    life = ConnectionLife(genesis.configuration)
    statsNames = StatsNames(entropy: entropy.stream("stats"))
    relay = genesis.configuration.relays == true ? RelayedExchange() : nil
  }

  /// Applies an input and moves all outputs into the caller's outbox.
  func step(_ input: PeerInput, at now: Instant, into outbox: inout Outbox<PeerOutput>) {
    self.now = now
    swap(&self.outbox, &outbox)
    apply(input)
    settleStates()
    swap(&self.outbox, &outbox)
  }

  private func apply(_ input: PeerInput) {
    switch input {
    case .genesis: begin(bundles.first)
    case .interfaces(let addresses, let types): learn(addresses, types)
    case .datagram(let datagram, let arrival):
      drive(bundles.bound(to: datagram.local), .datagram(datagram, arrival: arrival))
    case .deadline: reachDeadline()
    case .call(let id, let call): emit(.reply(id: id, perform(call)))
    case .send(let id, let message): drive(.send(message, call: id))
    case .captured(let transceiver, let media): capture(media, for: transceiver)
    case .answer(let answer): handle(answer)
    case .sendFailed(let failure):
      drive(
        bundles.bound(to: failure.local),
        .sendFailed(
          local: failure.local, remote: failure.remote, packets: failure.packets,
          bytes: failure.bytes))
    case .signaling: break
    case .relayed(let packet): send(packet)
    }
  }

  /// The earliest deadline of any layer; nil if no layer waits for anything.
  var deadline: Instant? {
    var first = data.deadline
    for bundle in bundles.all {
      first = earliest(first, bundle.transport.deadline)
      first = earliest(first, bundle.flow.deadline)
    }
    first = earliest(first, life.deadline)
    first = earliest(first, speakers.deadline)
    return earliest(first, tracks.deadline)
  }

  private func reachDeadline() {
    reachTransportDeadlines()
    if let due = data.deadline, due <= now { drive(DataTransport.Input.deadline) }
    reachTrackDeadlines()
    if let due = speakers.deadline, due <= now {
      for event in speakers.reachDeadline(at: now) { emit(event) }
    }
    reachFlowDeadlines()
  }

  var sections: [NegotiatedSection] { agreed.sections }

  func emit(_ output: consuming PeerOutput) { outbox.append(output) }

  func emit(_ event: PeerEvent) { outbox.append(.event(event)) }

  /// Counts a refusal and reports it whenever its count reaches a power of two.
  func refuse(layer: StaticString, _ reason: String) {
    if refusals.count(layer: layer.description, reason: reason) {
      emit(.refused(layer: layer.description, reason: reason))
    }
  }
}

/// A copy of the negotiated values that packets and frames need; copying the whole negotiation
/// would be slow.
struct AgreedParts {
  private(set) var sections: [NegotiatedSection] = []
  /// The data channels' transport, once it is negotiated.
  private(set) var dataTransport: Int?
  /// Whether data may already arrive.
  private(set) var mayHaveData = false

  init() {}

  init(_ negotiation: Negotiation) {
    sections = negotiation.sections
    dataTransport = negotiation.data?.transport
    mayHaveData = negotiation.mayHaveData
  }
}

/// Counts refusals by kind, so that many bad packets do not flood the take.
struct RefusalLedger {
  private var counts: [(key: String, count: UInt64)] = []
  /// All kinds with their counts, in order of appearance.
  var all: [(key: String, count: UInt64)] { counts }
  private static let kindsMaximum = 64

  /// Counts a refusal, unless there are too many kinds; returns whether the count is a power of
  /// two, in which case it should be reported.
  mutating func count(layer: String, reason: String) -> Bool {
    let key = "\(layer): \(reason)"
    guard let index = counts.firstIndex(where: { $0.key == key }) else {
      guard counts.count < RefusalLedger.kindsMaximum else { return false }
      counts.append((key, 1))
      return true
    }
    counts[index].count += 1
    return counts[index].count.nonzeroBitCount == 1
  }
}
