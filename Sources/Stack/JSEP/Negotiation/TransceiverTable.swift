import SDP
import Wire

/// A session's transceivers, and the entropy from which their identifiers are drawn.
struct TransceiverTable {
  typealias Change = Negotiation.Change

  private(set) var all: [Transceiver] = []
  private var nextID: UInt32 = 1
  private let entropy: EntropyStream

  init(_ entropy: EntropyStream) { self.entropy = entropy }

  // MARK: Lookup

  func index(of id: UInt32?) -> Int? { all.firstIndex { $0.id == id } }

  /// Returns a transceiver's index; throws if there is no such transceiver.
  func place(of id: UInt32) throws(JSEPError) -> Int {
    guard let index = index(of: id) else {
      throw JSEPError(.invalidAccess, "there is no transceiver \(id)")
    }
    return index
  }

  /// Returns a transceiver's index; throws if there is no such transceiver or it is stopped.
  func livePlace(of id: UInt32) throws(JSEPError) -> Int {
    let index = try place(of: id)
    guard !all[index].isStopping else {
      throw JSEPError(.invalidState, "transceiver \(id) is stopped")
    }
    return index
  }

  /// Returns a section's transceiver; nil if the section is disabled or the transceiver stopped.
  func live(in slot: SectionSlot) -> Transceiver? {
    guard !slot.isDead, let id = slot.transceiverID else { return nil }
    return all.first { $0.id == id && !$0.isStopping }
  }

  /// Returns whether any transceiver sends a track with this identifier.
  func sends(_ trackID: String) -> Bool {
    all.contains { $0.hasLocalTrack && $0.trackID == trackID }
  }

  // MARK: Changes

  /// Assigns a track to a transceiver whose sender has none and never sent; returns its id, or nil
  /// if there is no such transceiver.
  mutating func assign(track id: String?, _ kind: MediaKind, _ streamIDs: [String]) -> UInt32? {
    guard let index = all.firstIndex(where: { $0.isFree(for: kind) }) else { return nil }
    all[index].add(track: id, streamIDs)
    return all[index].id
  }

  /// Creates a transceiver with random identifiers; returns its index.
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

  /// Creates layers; the first one has the sender's SSRCs.
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

  mutating func change<Result>(_ index: Int, _ body: (inout Transceiver) -> Result) -> Result {
    body(&all[index])
  }

  /// Stops all transceivers because the session closes.
  mutating func close() { for index in all.indices { all[index].close() } }

  // MARK: Sections

  /// Associates each transceiver with its section in a local offer.
  mutating func associate(_ slots: [SectionSlot]) {
    for (number, slot) in slots.enumerated() where !slot.isDead {
      if let index = index(of: slot.transceiverID) { all[index].associate(slot.mid, number) }
    }
  }

  /// Finds or creates the transceiver for a section of a remote offer (RFC 9429 section 5.10).
  /// - Returns: the transceiver's index and whether it is new; nil if the section has none.
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

  /// Sets the sender's layers to the layers that a remote offer requests.
  mutating func applyLayers(of section: SDPSection, _ index: Int) {
    let rids = section.wantedLayers
    guard rids.count > 1, all[index].mayTakeLayers else { return }
    all[index].setLayers(layers(rids, all[index].ssrc, all[index].rtxSSRC))
  }

  /// Removes a transceiver whose section was rejected; returns the changes.
  mutating func remove(_ index: Int) -> (track: [Change], stopped: Change) {
    let gone = all.remove(at: index)
    return (
      gone.remoteTrackIsLive ? [.trackRemoved(transceiver: gone.id)] : [],
      .transceiverStopped(id: gone.id)
    )
  }

  /// Removes transceivers stopped before they had a section.
  mutating func removeStopped() -> [Change] {
    let gone = all.filter { $0.isStopping && $0.mid == nil }
    all.removeAll { $0.isStopping && $0.mid == nil }
    return gone.map { .transceiverStopped(id: $0.id) }
  }

  /// Restores the associations that matching transceivers had in the stable state.
  ///
  /// Transceivers created by the offer are removed unless addTrack has used them since.
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

/// The session's m-sections in order, and all MIDs ever used, which are never reused.
struct SectionTable {
  /// The m-sections of the latest applied description.
  private(set) var slots: [SectionSlot] = []
  private var usedMIDs: Set<String> = []

  /// Returns the lowest number that has never been a MID in this session.
  func freeMID(besides others: Set<String>) -> String {
    var number = 0
    while usedMIDs.contains(String(number)) || others.contains(String(number)) { number += 1 }
    return String(number)
  }

  /// Returns the index of the enabled section with a MID; nil if there is none.
  func index(of mid: String) -> Int? { slots.firstIndex { $0.mid == mid && !$0.isDead } }

  /// Whether any enabled section carries data channels.
  var carryData: Bool { slots.contains { $0.isData && !$0.isDead } }

  mutating func apply(_ slots: [SectionSlot]) {
    self.slots = slots
    for slot in slots where !slot.isDead { usedMIDs.insert(slot.mid) }
  }

  mutating func move(_ index: Int, to number: Int) { slots[index].transportNumber = number }

  /// Disables a section; the next offer may reuse its index.
  mutating func end(_ index: Int) {
    slots[index].isDead = true
    slots[index].isData = false
    slots[index].transceiverID = nil
  }
}

/// Requests by the application that need another exchange but concern no transceiver.
struct OpenWishes {
  /// Whether data channels were requested and have not been rejected since.
  private(set) var hasData = false
  /// Local username fragments that an ICE restart has to replace (W3C
  /// [[LocalIceCredentialsToReplace]]).
  private var fragments: [String] = []

  var hasRestart: Bool { !fragments.isEmpty }

  mutating func wantData() { hasData = true }

  /// Records that the peer rejected data channels; opening another channel requests them again.
  mutating func dropData() { hasData = false }

  /// Requests an ICE restart that replaces these local username fragments.
  mutating func wantRestart(of fragments: [String]) { self.fragments = fragments }

  /// Ends the requested restart once an exchange has replaced all the credentials it concerned.
  mutating func recordAgreed(_ present: [String]) {
    if !fragments.contains(where: present.contains) { fragments = [] }
  }
}
