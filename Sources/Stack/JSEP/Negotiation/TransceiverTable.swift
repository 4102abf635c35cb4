import SDP
import Wire

/// Owns the transceivers of a session: which there are, and the identifiers that are drawn for
/// them.
struct TransceiverTable {
  typealias Change = Negotiation.Change

  private(set) var all: [Transceiver] = []
  private var nextID: UInt32 = 1
  private let entropy: EntropyStream

  init(_ entropy: EntropyStream) { self.entropy = entropy }

  // MARK: Finding

  func index(of id: UInt32?) -> Int? { all.firstIndex { $0.id == id } }

  /// The place of a transceiver that applications name.
  func place(of id: UInt32) throws(JSEPError) -> Int {
    guard let index = index(of: id) else {
      throw JSEPError(.invalidAccess, "there is no transceiver \(id)")
    }
    return index
  }

  /// The place of a transceiver that applications name and that was not stopped.
  func livePlace(of id: UInt32) throws(JSEPError) -> Int {
    let index = try place(of: id)
    guard !all[index].isStopping else {
      throw JSEPError(.invalidState, "transceiver \(id) is stopped")
    }
    return index
  }

  /// The transceiver of a section that is not off.
  func live(in slot: SectionSlot) -> Transceiver? {
    guard !slot.isDead, let id = slot.transceiverID else { return nil }
    return all.first { $0.id == id && !$0.isStopping }
  }

  /// Whether a track with this identifier is sent.
  func sends(_ trackID: String) -> Bool {
    all.contains { $0.hasLocalTrack && $0.trackID == trackID }
  }

  // MARK: Changing

  /// Gives a track to a transceiver whose sender never had anything to send, if there is one.
  mutating func take(track id: String?, _ kind: MediaKind, _ streamIDs: [String]) -> UInt32? {
    guard let index = all.firstIndex(where: { $0.isFree(for: kind) }) else { return nil }
    all[index].add(track: id, streamIDs)
    return all[index].id
  }

  /// Creates a transceiver with identifiers of its own; returns its place.
  mutating func make(
    _ kind: MediaKind, _ direction: TransceiverDirection, streamIDs: [String] = [],
    trackID: String? = nil, rids: [String] = [], by origin: Transceiver.Origin
  ) -> Int {
    let id = nextID
    nextID += 1
    let ssrc = drawSSRC(besides: 0)
    let drawn = entropy.uuid()
    let rtxSSRC = drawSSRC(besides: ssrc)
    all.append(
      Transceiver(
        id: id, kind: kind, direction: direction, streamIDs: streamIDs, trackID: trackID ?? drawn,
        ssrc: ssrc, rtxSSRC: rtxSSRC, layers: layers(rids, ssrc, rtxSSRC), by: origin))
    return all.count - 1
  }

  /// Layers of which the first has the sources of the sender.
  private func layers(_ rids: [String], _ ssrc: UInt32, _ rtxSSRC: UInt32) -> [SimulcastLayer] {
    var layers: [SimulcastLayer] = []
    for rid in rids {
      guard !layers.isEmpty else {
        layers.append(SimulcastLayer(rid: rid, ssrc: ssrc, rtxSSRC: rtxSSRC))
        continue
      }
      let known = layers.flatMap { [$0.ssrc, $0.rtxSSRC] }
      let ssrc = drawSSRC(besides: 0, known)
      layers.append(
        SimulcastLayer(rid: rid, ssrc: ssrc, rtxSSRC: drawSSRC(besides: ssrc, known)))
    }
    return layers
  }

  private func drawSSRC(besides other: UInt32, _ others: [UInt32] = []) -> UInt32 {
    while true {
      let ssrc = entropy.integer(UInt32.self)
      let isTaken = all.contains { transceiver in
        transceiver.ssrc == ssrc || transceiver.rtxSSRC == ssrc
          || transceiver.layers.contains { $0.ssrc == ssrc || $0.rtxSSRC == ssrc }
      }
      if ssrc != 0, ssrc != other, !others.contains(ssrc), !isTaken { return ssrc }
    }
  }

  /// Lets something happen to a transceiver.
  mutating func change<Result>(_ index: Int, _ body: (inout Transceiver) -> Result) -> Result {
    body(&all[index])
  }

  /// Ends all of them with the session.
  mutating func close() { for index in all.indices { all[index].close() } }

  // MARK: Sections

  /// Associates every transceiver with its section of a local offer.
  mutating func associate(_ slots: [SectionSlot]) {
    for (number, slot) in slots.enumerated() where !slot.isDead {
      if let index = index(of: slot.transceiverID) { all[index].associate(slot.mid, number) }
    }
  }

  /// Finds or makes the transceiver of a section of a remote offer (RFC 9429 section 5.10).
  ///
  /// - Returns: its place, nil when the section has none, and whether it was made.
  mutating func serve(
    _ section: SDPSection, mid: String, isAccepted: Bool, _ direction: MediaDirection
  ) -> (index: Int, isNew: Bool)? {
    if let index = all.firstIndex(where: {
      $0.mid == mid && SectionKind($0.kind) == section.kind
    }) {
      return (index, false)
    }
    guard isAccepted, let kind = section.kind.mediaKind else { return nil }
    if let index = all.firstIndex(where: { $0.mayServe(direction, kind) }) {
      return (index, false)
    }
    return (make(kind, .recvonly, by: .remoteOffer), true)
  }

  /// Lets a sender send the layers that a remote offer asks for.
  mutating func takeLayers(of section: SDPSection, _ index: Int) {
    let rids = section.wantedLayers
    guard rids.count > 1, all[index].mayTakeLayers else { return }
    all[index].take(layers(rids, all[index].ssrc, all[index].rtxSSRC))
  }

  /// Takes a transceiver out whose section was rejected; reports what goes with it.
  mutating func remove(_ index: Int) -> (track: [Change], stopped: Change) {
    let gone = all.remove(at: index)
    return (
      gone.remoteTrackIsLive ? [.trackRemoved(transceiver: gone.id)] : [],
      .transceiverStopped(id: gone.id)
    )
  }

  /// Takes out those that were stopped before they had a section: they leave with an exchange.
  mutating func removeStopped() -> [Change] {
    let gone = all.filter { $0.isStopping && $0.mid == nil }
    all.removeAll { $0.isStopping && $0.mid == nil }
    return gone.map { .transceiverStopped(id: $0.id) }
  }

  /// Gives the transceivers that a condition picks the association that they had in a stable state;
  /// those made only for the offer go, unless addTrack gave them a track by now.
  mutating func roll(
    backTo associations: [Transceiver.Association], where isMeant: (Transceiver) -> Bool
  ) -> [Change] {
    var changes: [Change] = []
    var gone: [UInt32] = []
    for index in all.indices where isMeant(all[index]) {
      let id = all[index].id
      let (changed, goes) = all[index].roll(backTo: associations.first { $0.id == id })
      changes += changed
      if goes { gone.append(id) }
    }
    all.removeAll { gone.contains($0.id) }
    return changes + gone.map { .transceiverStopped(id: $0) }
  }
}
