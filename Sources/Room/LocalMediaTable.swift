import RoomSignaling

/// Own media: what is to be published, what is, and what waits for the room.
struct LocalMediaTable {
  enum Phase: String, Sendable {
    /// Waits for the room.
    case deferred
    /// The service was asked.
    case publishing
    case published
    case unpublishing
  }

  struct Entry: Sendable {
    var info: LocalMediaInfo
    var phase: Phase
    /// The number that others see.
    var media: MediaID?
    /// The call that is answered when it is published or taken back.
    var call: UInt32?
    /// The connection and the transceiver that carry it.
    var connection: ConnectionID?
    var transceiver: UInt32?
    /// The number in the take of the peer that it was told to be carried by; nil before that.
    var carrier: UInt32?
  }

  private(set) var entries: [Entry] = []
  /// How many pieces of own media there may be.
  private static let maximum = 64

  subscript(id: LocalMediaID) -> Entry? { entries.first { $0.info.id == id } }

  /// What is on connections that send.
  var attached: [LocalMediaInfo] {
    entries.filter { $0.phase == .publishing || $0.phase == .published }.map(\.info)
  }

  /// Whether the media can be added: it is not there yet, and there is room.
  func takes(_ infos: [LocalMediaInfo]) -> Bool {
    entries.count + infos.count <= LocalMediaTable.maximum
      && Set(infos.map(\.id)).count == infos.count
      && infos.allSatisfy { self[$0.id] == nil }
  }

  mutating func add(_ infos: [LocalMediaInfo], phase: Phase, call: UInt32?) {
    for info in infos { entries.append(Entry(info: info, phase: phase, call: call)) }
  }

  /// What waited for the room goes on now.
  mutating func takeDeferred() -> [LocalMediaInfo] {
    var taken: [LocalMediaInfo] = []
    for index in entries.indices where entries[index].phase == .deferred {
      entries[index].phase = .publishing
      taken.append(entries[index].info)
    }
    return taken
  }

  mutating func change(_ id: LocalMediaID, _ change: (inout Entry) -> Void) {
    guard let index = entries.firstIndex(where: { $0.info.id == id }) else { return }
    change(&entries[index])
  }

  mutating func remove(_ id: LocalMediaID) -> Entry? {
    guard let index = entries.firstIndex(where: { $0.info.id == id }) else { return nil }
    return entries.remove(at: index)
  }

  /// Forgets which transceivers of a connection carry it.
  mutating func lose(_ connection: ConnectionID) -> [Entry] {
    var lost: [Entry] = []
    for index in entries.indices where entries[index].connection == connection {
      lost.append(entries[index])
      (entries[index].connection, entries[index].transceiver) = (nil, nil)
      entries[index].carrier = nil
    }
    return lost
  }
}
