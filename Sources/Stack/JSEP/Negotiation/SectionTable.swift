import SDP

/// The m-sections of the session in order, and the MIDs ever used, which are not reused.
struct SectionTable {
  /// The m-sections of the latest applied description.
  private(set) var slots: [SectionSlot] = []
  private var usedMIDs: Set<String> = []

  /// Returns the first number that no section of the session ever had as its MID.
  func freeMID(besides others: Set<String>) -> String {
    var number = 0
    while usedMIDs.contains(String(number)) || others.contains(String(number)) { number += 1 }
    return String(number)
  }

  /// The index of the section with a MID, unless it is off.
  func index(of mid: String) -> Int? { slots.firstIndex { $0.mid == mid && !$0.isDead } }

  /// Whether a section carries data channels.
  var carryData: Bool { slots.contains { $0.isData && !$0.isDead } }

  mutating func apply(_ slots: [SectionSlot]) {
    self.slots = slots
    for slot in slots where !slot.isDead { usedMIDs.insert(slot.mid) }
  }

  mutating func move(_ index: Int, to number: Int) { slots[index].transportNumber = number }

  /// Turns a section off; its index may be reused in the next offer.
  mutating func end(_ index: Int) {
    slots[index].isDead = true
    slots[index].isData = false
    slots[index].transceiverID = nil
  }
}
