import Flow
import ICE
import JSEP
import Wire

// Creating and removing bundles, and routing inputs to them.
extension PeerStack {
  /// The local transports as new descriptions state them.
  var localTransports: [LocalTransport] { bundles.all.map { $0.transport.localParameters } }

  /// The local transports as current descriptions state them.
  var presentTransports: [LocalTransport] { bundles.all.map { $0.transport.presentParameters } }

  /// Creates the missing bundles with these numbers.
  func prepareBundles(_ numbers: [Int]) {
    for number in numbers where bundles[number] == nil {
      let transport = PeerTransport(number, beside: bundles.first.transport, entropy: entropy)
      let bundle = Bundle(
        transport: transport,
        flow: MediaFlow(
          entropy: entropy.stream("rtp", number: number), wallClock: genesis.wallClock,
          cname: negotiation.cname,
          reportsWithDemands: genesis.configuration.reportsWithKeyframeDemands ?? false,
          countsProbes: genesis.configuration.hasCompleteStatistics ?? false))
      bundles.add(bundle)
      begin(bundle)
      if let interfaces = bundles.interfaces { drive(bundle, .interfaces(interfaces)) }
    }
  }

  /// Initialises a new bundle with what is known.
  func begin(_ bundle: Bundle) {
    if let failure = bundle.transport.failure { refuse(layer: "dtls", failure) }
    if bundle.number == 0 {
      for certificate in bundle.transport.certificates { emit(.certificate(certificate)) }
    }
    limitBitrate(of: bundle)
    if bundle.number < Int(genesis.configuration.iceCandidatePoolSize ?? 0) {
      drive(bundle, .fillPool)
    }
  }

  /// Closes bundles without sections: these joined another bundle (RFC 9143 section 7.4), were
  /// rejected, or were rolled back.
  func closeUnusedBundles() {
    // A pending local offer or provisional answer may still need its bundles; a remote offer
    // replaces those created for local ones.
    guard [.stable, .haveRemoteOffer].contains(negotiation.signalingState) else { return }
    let unused = bundles.removeAll(besides: negotiation.transportNumbers)
    guard !unused.isEmpty else { return }
    for bundle in unused { drive(bundle, PeerTransport.Input.close) }
    // The connection may have waited for their candidates.
    if unused.contains(where: { !$0.hasAllCandidates }),
      bundles.all.allSatisfy(\.hasAllCandidates)
    {
      emit(.localCandidate(nil))
    }
    emit(states.move(to: bundles.iceGatheringState))
    emit(states.move(to: bundles.iceConnectionState))
  }

  /// Sets a bundle's share of the video bit rate.
  func limitBitrate(of bundle: Bundle) {
    let configuration = genesis.configuration
    let limits = bundles.bitrateLimits
    drive(
      bundle,
      .bitrateLimits(
        start: configuration.videoBitrateStart / bundle.bitrateShare,
        maximum: (limits.maximum ?? configuration.videoBitrateMaximum) / bundle.bitrateShare,
        minimum: limits.minimum.map { $0 / bundle.bitrateShare }))
  }

  /// Sets the limits of all video in bits per second; nil leaves a value unchanged.
  func limitBitrate(minimum: UInt64?, current: UInt64?, maximum: UInt64?) throws(PeerError) {
    var limits = bundles.bitrateLimits
    limits.minimum = minimum ?? limits.minimum
    limits.maximum = maximum ?? limits.maximum
    let most = limits.maximum ?? genesis.configuration.videoBitrateMaximum
    guard limits.minimum ?? 0 <= current ?? most, current ?? 0 <= most else {
      throw PeerError(
        name: "RangeError",
        message: "the bit rates are not in order: minimum, current, maximum")
    }
    bundles.limitBitrate(minimum: limits.minimum, maximum: limits.maximum)
    for bundle in bundles.all {
      limitBitrate(of: bundle)
      if let current { drive(bundle, .estimate(current / bundle.bitrateShare)) }
    }
  }

  /// Sets the servers and the policy for the next gathering.
  func use(_ servers: [ICEServerConfiguration], _ policy: ICETransportPolicy) throws(PeerError) {
    var configuration = genesis.configuration
    configuration.iceServers = servers
    configuration.iceTransportPolicy = policy
    if let uri = configuration.firstUnusableICEServer {
      throw PeerError(name: "SyntaxError", message: "the server \(uri) cannot be used")
    }
    let settings = configuration.iceSettings
    driveAll(.use(settings.servers, relayOnly: settings.relayOnly))
  }

  // MARK: Inputs

  func driveAll(_ input: PeerTransport.Input) {
    for bundle in bundles.all { drive(bundle, input) }
  }

  func learn(_ all: [IPAddress], _ types: [NetworkType]) {
    for (address, type) in zip(all, types) { bundles.learn(type, of: address) }
    let usesIPv6 = genesis.configuration.usesIPv6 ?? true
    let addresses = usesIPv6 ? all : all.filter(\.isIPv4)
    bundles.learn(addresses)
    driveAll(.interfaces(addresses))
  }

  /// Passes an answer of the system to its bundle, if that still exists.
  func handle(_ answer: SystemAnswer) {
    switch answer {
    case .streamAccepted(let local, _): drive(bundles.bound(to: local), .answer(answer))
    case .socketBound(let id, let address):
      // The bundle that asked is gone.
      guard let bundle = bundles.asking(id) else {
        return emit(.request(.closeSocket(address)))
      }
      bundle.bind(address)
      drive(bundle, .answer(answer))
    case .socketFailed(let id, _), .nameResolved(let id, _):
      if let bundle = bundles.asking(id) { drive(bundle, .answer(answer)) }
    }
  }

  func reachTransportDeadlines() {
    for bundle in bundles.all {
      if let due = bundle.transport.deadline, due <= now {
        drive(bundle, PeerTransport.Input.deadline)
      }
    }
  }

  func reachFlowDeadlines() {
    for bundle in bundles.all {
      if let due = bundle.flow.deadline, due <= now { drive(bundle, MediaFlow.Input.deadline) }
    }
  }
}
