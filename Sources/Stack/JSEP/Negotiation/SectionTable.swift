import SDP

/// Owns the m-sections of the session in their order, and which mids were ever given away: no other
/// section gets one of those.
struct SectionTable {
  /// The m-sections of the latest description that was applied.
  private(set) var slots: [SectionSlot] = []
  private var usedMIDs: Set<String> = []

  /// The first number that no section of the session ever had as its mid.
  func freeMID(besides others: Set<String>) -> String {
    var number = 0
    while usedMIDs.contains(String(number)) || others.contains(String(number)) { number += 1 }
    return String(number)
  }

  /// The index of the section that has a mid and is not off.
  func index(of mid: String) -> Int? { slots.firstIndex { $0.mid == mid && !$0.isDead } }

  /// Whether a section carries the association of data channels.
  var carryData: Bool { slots.contains { $0.isData && !$0.isDead } }

  /// Takes over the sections of a description.
  mutating func apply(_ slots: [SectionSlot]) {
    self.slots = slots
    for slot in slots where !slot.isDead { usedMIDs.insert(slot.mid) }
  }

  /// Moves a section to a transport.
  mutating func move(_ index: Int, to number: Int) { slots[index].transportNumber = number }

  /// Turns a section off: it keeps its place, which another may take with the next offer.
  mutating func end(_ index: Int) {
    slots[index].isDead = true
    slots[index].isData = false
    slots[index].transceiverID = nil
  }
}
