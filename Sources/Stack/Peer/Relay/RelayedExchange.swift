import JSEP
import SDP
import Wire

/// A decrypted packet on its way from one leg of a relay to the other.
package struct RelayedPacket: Sendable {
  package var kind: ClearPacket.Kind
  /// The number of the transport, which is the same on both legs.
  package var transport: Int
  package var bytes: [UInt8]

  package init(kind: ClearPacket.Kind, transport: Int, bytes: [UInt8]) {
    self.kind = kind
    self.transport = transport
    self.bytes = bytes
  }
}

/// The offer/answer state of one leg of a relay.
///
/// The leg negotiates nothing. The descriptions it signals come from the other leg's remote peer;
/// this structure records the transports that their sections use, and the DTLS role on each (RFC
/// 8842 section 5).
struct RelayedExchange {
  /// A description from the other leg's remote peer, as received.
  private struct Shown {
    var type: SDPType
    var document: SDPDocument
    var numbers: [Int?]
  }

  private var sections = RelayedSections()
  private var shown: Shown?
  /// The last description from this leg's remote peer, with the transport number of each section.
  private var remote: (document: SDPDocument, numbers: [Int?])?
  private(set) var transports: [RemoteTransport] = []
  private(set) var signaling = SignalingState.stable

  /// The numbers of the transports in the latest descriptions.
  var numbers: [Int] {
    let all = (shown?.numbers ?? []) + (remote?.numbers ?? [])
    return Set(all.compactMap { $0 }).sorted()
  }

  // MARK: Descriptions from this leg

  /// Applies a description from this leg's remote peer; returns the transports in it.
  mutating func receive(_ description: SessionDescription) throws(JSEPError) -> [RemoteTransport] {
    guard description.type != .rollback else {
      signaling = .stable
      return []
    }
    let document = try RelayedExchange.parsed(description)
    let numbers = try numbers(of: document)
    let former = transports
    let isOffer = description.type == .offer
    let read = try document.remoteTransports(numbers) { _, setup in
      switch setup {
      case .passive: true
      case .active: false
      case .actpass, .holdconn, nil: nil
      }
    }
    transports = read.map { transport in
      // A description that leaves the DTLS role open keeps the role of the existing association.
      guard transport.localIsDTLSClient == nil,
        let before = former.first(where: { $0.number == transport.number }),
        before.fingerprints == transport.fingerprints
      else { return transport }
      var transport = transport
      transport.localIsDTLSClient = before.localIsDTLSClient
      return transport
    }
    remote = (document, numbers)
    signaling =
      isOffer ? .haveRemoteOffer : description.type == .answer ? .stable : .haveRemotePranswer
    return transports
  }

  /// Returns the MID and index of the section to name in this leg's candidates for a transport; nil
  /// if no section uses the transport.
  func place(of number: Int) -> (mid: String?, index: Int)? {
    guard let shown, let index = shown.numbers.firstIndex(of: number) else { return nil }
    return (shown.document.sections[index].mid, index)
  }

  /// Returns the number of the transport for a candidate from this leg's remote peer; nil if the
  /// candidate names no section that has a transport.
  func transport(of candidate: CandidateInit) -> Int? {
    guard let remote else { return nil }
    if let mid = candidate.sdpMid,
      let index = remote.document.sections.firstIndex(where: { $0.mid == mid })
    {
      return remote.numbers[index]
    }
    guard let index = candidate.sdpMLineIndex, remote.numbers.indices.contains(index) else {
      return nil
    }
    return remote.numbers[index]
  }

  // MARK: Descriptions from the other leg

  /// Applies a description from the other leg's remote peer, which this leg is about to signal.
  /// - Returns: the transports whose DTLS role an answer settles.
  mutating func show(
    _ description: SessionDescription, prefersClient: Bool
  ) throws(JSEPError) -> [RemoteTransport] {
    guard description.type != .rollback else {
      signaling = .stable
      return []
    }
    let document = try RelayedExchange.parsed(description)
    let numbers = try numbers(of: document)
    shown = Shown(type: description.type, document: document, numbers: numbers)
    guard description.type != .offer else {
      signaling = .haveLocalOffer
      return []
    }
    try checkBundles(document, numbers)
    signaling = description.type == .answer ? .stable : .haveLocalPranswer
    var settled: [RemoteTransport] = []
    for index in transports.indices where transports[index].localIsDTLSClient == nil {
      transports[index].localIsDTLSClient = prefersClient
      settled.append(transports[index])
    }
    return settled
  }

  /// Returns the description to signal, with this leg's transports; nil before the first one.
  func description(_ local: [LocalTransport]) -> SessionDescription? {
    guard let shown else { return nil }
    let document = shown.document.relayed(shown.numbers, over: local) { number in
      guard shown.type != .offer else { return .actpass }
      let isClient = transports.first { $0.number == number }?.localIsDTLSClient
      return isClient == true ? .active : .passive
    }
    return SessionDescription(type: shown.type, sdp: document.text)
  }

  private static func parsed(_ description: SessionDescription) throws(JSEPError) -> SDPDocument {
    let document: SDPDocument
    do throws(SDPError) {
      document = try SDPDocument(parsing: description.sdp)
    } catch {
      throw JSEPError(.invalidAccess, error.description)
    }
    if let obstacle = document.relayObstacle { throw JSEPError(.operation, obstacle) }
    return document
  }

  /// Returns the transport number of each section; nil for a rejected one.
  private mutating func numbers(of document: SDPDocument) throws(JSEPError) -> [Int?] {
    let numbers = sections.assign(document)
    for (index, number) in numbers.enumerated()
    where number == nil && !document.sections[index].isRejected {
      throw JSEPError(
        .operation,
        "section \(document.sections[index].mid ?? String(index)) needs a transport beyond the "
          + "\(RelayedSections.transportsMaximum) of a relay: bundle the sections")
    }
    return numbers
  }

  /// Throws if an answer separates sections that the offer bundled, because the leg has one
  /// transport for them.
  private func checkBundles(_ answer: SDPDocument, _ numbers: [Int?]) throws(JSEPError) {
    let bundles = answer.bundles.map { Set($0) }
    for index in numbers.indices {
      guard let number = numbers[index],
        let first = numbers.firstIndex(of: number), first != index,
        let mid = answer.sections[index].mid, let other = answer.sections[first].mid
      else { continue }
      guard !bundles.contains(where: { $0.contains(mid) && $0.contains(other) }) else { continue }
      throw JSEPError(
        .operation,
        "the answer does not bundle the sections \(other) and \(mid), which the offer did")
    }
  }
}
