import Wire

/// What is known of one transport of a call.
struct TransportFollower {
  private(set) var facts: ObservedTransport
  var checks = CheckFollower()
  var dtls = DTLSFollower()
  var dtlsStates = DTLSStates()
  var media = MediaOpener()
  var extensions = ExtensionDeduction()
  /// The numbers of the descriptions of both ends.
  private(set) var descriptions: [Int?] = [nil, nil]
  /// The addresses of both ends that were told already, with the priorities of their candidates.
  private var addresses: [EndAddress: UInt32] = [:]
  /// The hosts of both ends.
  private(set) var hosts: Set<IPAddress> = []
  /// The paths in use, by component: RTP, and RTCP by itself.
  private var choices = [PairChoice(), PairChoice()]
  /// The path that it began with.
  private(set) var firstPath: Int?
  /// The streams that each end sends, by their indices.
  private(set) var streams: [Int] = []
  /// Whether an end sent anything.
  private(set) var hasSent = [false, false]
  /// Whether an end sent RTP or RTCP.
  var hasSentMedia = [false, false]
  /// Whether the beginning was seen: a check or a ClientHello before media.
  private(set) var hasBeginning = false

  /// Whether a description says that media is protected.
  var hasProtectedDescription = false

  private struct EndAddress: Hashable {
    var end: Int
    var address: SocketAddress
  }

  private static let addressesMaximum = 1024

  init(_ facts: ObservedTransport) { self.facts = facts }

  /// An end sent something.
  mutating func hear(from end: Int, at now: Instant) {
    hasSent[end] = true
    checks.hear(from: end, at: now)
  }

  mutating func noteBeginning() { hasBeginning = true }

  mutating func recordPath(_ path: Int) { firstPath = firstPath ?? path }

  /// Takes the names of both ends.
  mutating func name(_ fragments: [String]) { facts.usernameFragments = fragments }

  mutating func describe(_ end: Int, _ description: Int) { descriptions[end] = description }

  /// Whether an address of an end is to be told.
  mutating func isNews(_ address: SocketAddress, of end: Int) -> Bool {
    guard addresses.count < TransportFollower.addressesMaximum else { return false }
    hosts.insert(address.ip)
    return addresses.updateValue(
      addresses[EndAddress(end: end, address: address)] ?? 0,
      forKey: EndAddress(end: end, address: address)) == nil
  }

  // MARK: Pairs

  /// The path in use.
  var selectedPath: Int? { choices[0].selected ?? choices[1].selected }

  /// The path in use of a component.
  func selectedPath(_ component: UInt8) -> Int? { choices[component == 2 ? 1 : 0].selected }

  /// The priority of an end's candidate; 0 where nothing told it.
  func priority(of address: SocketAddress, _ end: Int) -> UInt32 {
    addresses[EndAddress(end: end, address: address)] ?? 0
  }

  mutating func setPriority(_ priority: UInt32, of address: SocketAddress, _ end: Int) {
    let key = EndAddress(end: end, address: address)
    if addresses[key] != nil { addresses[key] = priority }
  }

  /// Lets the choice of a component's pair change; gives the path that is not selected any more
  /// when it did.
  mutating func choose(
    _ component: UInt8, _ change: (inout PairChoice) -> Bool
  ) -> (isChanged: Bool, before: Int?) {
    let index = component == 2 ? 1 : 0
    let before = choices[index].selected
    let isChanged = change(&choices[index])
    return (isChanged, isChanged ? before : nil)
  }

  /// Gives up the pairs in use: the call goes on over another transport.
  mutating func clearSelection() -> [Int] {
    choices.indices.compactMap { choices[$0].clear() }
  }

  // MARK: Streams

  mutating func add(stream: Int) { streams.append(stream) }

  mutating func take(streams: [Int]) { self.streams = streams }

  mutating func giveStreams() -> [Int] {
    defer { streams = [] }
    return streams
  }

  /// Takes what an older transport knows, but for its streams: its keys and its association.
  ///
  /// - Parameter isFlipped: whether the ends of the other one are numbered the other way round.
  mutating func join(_ other: TransportFollower, isFlipped: Bool) {
    facts.call = other.facts.call
    facts.isMoved = true
    dtls = other.dtls
    dtlsStates = other.dtlsStates
    media.inherit(other.media, isFlipped: isFlipped)
    descriptions = isFlipped ? other.descriptions.reversed() : other.descriptions
  }
}
