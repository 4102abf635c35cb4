import SDP
import Wire

/// The m-sections of the next offer: existing ones, then new ones, which reuse sections that are
/// off where possible (RFC 9429 section 5.2.2).
struct OfferPlan {
  private(set) var slots: [SectionSlot]
  private(set) var bundling: Bundling
  private let sections: SectionTable
  private let transceivers: TransceiverTable
  /// The MIDs of new sections.
  private var new: [String] = []

  /// - Parameter needsData: whether an association is needed.
  init(
    _ sections: SectionTable, _ transceivers: TransceiverTable, _ bundling: Bundling,
    _ capabilities: Capabilities, needsData: Bool
  ) {
    slots = sections.slots
    self.sections = sections
    self.transceivers = transceivers
    self.bundling = bundling
    let wantsData = needsData && !sections.carryData
    addMedia(capabilities, wantsData: wantsData)
    if wantsData { addData() }
    assignTransports()
  }

  private mutating func addMedia(_ capabilities: Capabilities, wantsData: Bool) {
    var waiting = transceivers.all.filter { $0.mid == nil && !$0.isStopping }
    while !waiting.isEmpty {
      let transceiver = waiting.removeFirst()
      let kind = SectionKind(transceiver.kind)
      let mid = sections.freeMID(besides: Set(new))
      new.append(mid)
      let slot = SectionSlot(
        kind: kind, mid: mid, transceiverID: transceiver.id, transport: LocalSection.profile,
        formats: capabilities.codecs(transceiver.kind).map { String($0.payloadType) })
      // Any section that is off may be reused (RFC 9429 section 5.2.2): preferably of the same
      // kind, and none that another kind needs.
      let wanted = waiting.map { SectionKind($0.kind) } + (wantsData ? [.application] : [])
      place(slot) { !wanted.contains($0) }
    }
  }

  private mutating func addData() {
    let mid = sections.freeMID(besides: Set(new))
    new.append(mid)
    var slot = SectionSlot(
      kind: .application, mid: mid, transport: DataSection.profile,
      formats: [DataSection.format])
    slot.isData = true
    place(slot) { _ in true }
  }

  /// Puts a section in place of one that is off, of its kind or of another that may be reused.
  private mutating func place(_ slot: SectionSlot, where mayTake: (SectionKind) -> Bool) {
    if let place = slots.firstIndex(where: { $0.isDead && $0.kind == slot.kind })
      ?? slots.firstIndex(where: { $0.isDead && mayTake($0.kind) })
    {
      slots[place] = slot
    } else {
      slots.append(slot)
    }
  }

  private mutating func assignTransports() {
    var kinds: [SectionKind] = []
    for index in slots.indices where !slots[index].isDead {
      if new.contains(slots[index].mid) {
        let taken = slots.filter { !$0.isDead && !new.contains($0.mid) }.map(\.transportNumber)
        slots[index].transportNumber = bundling.offered(
          slots[index].kind, after: kinds, beside: taken)
        new.removeAll { $0 == slots[index].mid }
      }
      // A section rejected by the offer itself cannot carry the bundle's transport.
      if slots[index].isData || transceivers.live(in: slots[index]) != nil {
        kinds.append(slots[index].kind)
      }
    }
  }
}
