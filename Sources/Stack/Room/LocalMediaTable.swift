/// The local media, until it is unpublished, and the connections that send it.
///
/// Methods that change the table return the outputs for the room to emit.
struct LocalMediaTable {
  enum Phase: String, Sendable {
    /// Waiting until the room is joined.
    case deferred
    /// The service was asked to publish the media.
    case publishing
    case published
    case unpublishing
  }

  struct Entry: Sendable {
    var info: LocalMediaInfo
    var phase: Phase
    /// The id that the signaling machine assigned to the media; nil until it is published.
    var media: MediaID?
    /// The connection and transceiver that send the media; nil while the media is not sent.
    var connection: ConnectionID?
    var transceiver: UInt32?
    /// The peer that was reported as sending the media, by its number in the take; nil before the
    /// report.
    var carrier: UInt32?
  }

  private(set) var entries: [Entry] = []
  /// The local participant's number; nil before joining.
  private var owner: Int?
  /// The maximum number of local tracks.
  private static let maximum = 64

  subscript(id: LocalMediaID) -> Entry? { place(of: id).map { entries[$0] } }

  /// The media that sending connections should carry: published media, and media being published.
  var attached: [LocalMediaInfo] {
    entries.filter { $0.phase == .publishing || $0.phase == .published }.map(\.info)
  }

  // MARK: Application

  /// Returns whether media can be added: its ids must be new, and the table must have room.
  func accepts(_ infos: [LocalMediaInfo]) -> Bool {
    entries.count + infos.count <= LocalMediaTable.maximum
      && Set(infos.map(\.id)).count == infos.count
      && infos.allSatisfy { self[$0.id] == nil }
  }

  mutating func add(_ infos: [LocalMediaInfo], phase: Phase) {
    for info in infos { entries.append(Entry(info: info, phase: phase)) }
  }

  /// Starts publishing the media that waited for the room, and returns it.
  mutating func removeDeferred() -> [LocalMediaInfo] {
    var taken: [LocalMediaInfo] = []
    for index in entries.indices where entries[index].phase == .deferred {
      entries[index].phase = .publishing
      taken.append(entries[index].info)
    }
    return taken
  }

  func canUnpublish(_ ids: [LocalMediaID]) -> Bool {
    !ids.isEmpty && ids.allSatisfy { self[$0].map { $0.phase != .unpublishing } ?? false }
  }

  /// Removes media without reporting it, because the service does not know it.
  mutating func forget(_ ids: [LocalMediaID]) {
    entries.removeAll { ids.contains($0.info.id) }
  }

  mutating func beginUnpublishing(_ ids: [LocalMediaID]) -> [RoomOutput] {
    ids.compactMap { id in
      guard let index = place(of: id) else { return nil }
      entries[index].phase = .unpublishing
      return entries[index].connection.map { .connection($0, .detach(id)) }
    }
  }

  /// Replaces the description of media; the kind of media cannot change.
  /// - Returns: whether the service must be informed; nil if there is no such media of this kind.
  mutating func update(_ info: LocalMediaInfo) -> Bool? {
    guard let index = place(of: info.id), entries[index].info.kind == info.kind else { return nil }
    guard entries[index].info != info else { return false }
    entries[index].info = info
    return entries[index].phase == .published || entries[index].phase == .publishing
  }

  // MARK: Service answers

  /// Records that media was published under an id; returns the event.
  mutating func confirm(_ id: LocalMediaID, as media: MediaID) -> [RoomOutput] {
    guard let index = place(of: id), entries[index].phase == .publishing else { return [] }
    entries[index].phase = .published
    entries[index].media = media
    return [.event(.localMediaPublished(id, media))]
  }

  /// Records that media is no longer published.
  ///
  /// If the service lost the media, it will be published again in the next session; if the
  /// application unpublished the media, it is removed.
  mutating func withdraw(_ id: LocalMediaID) -> [RoomOutput] {
    guard let index = place(of: id) else { return [] }
    switch entries[index].phase {
    case .unpublishing: return remove(id) + [.event(.localMediaUnpublished(id))]
    case .published:
      (entries[index].phase, entries[index].media) = (.publishing, nil)
      return [.event(.localMediaUnpublished(id))]
    case .deferred, .publishing: return []
    }
  }

  /// Records that the service refused to publish media.
  mutating func refuse(_ ids: [LocalMediaID]) -> [RoomOutput] {
    var outputs: [RoomOutput] = []
    for id in ids {
      guard let entry = self[id], entry.phase == .publishing else { continue }
      if let connection = entry.connection { outputs.append(.connection(connection, .detach(id))) }
      outputs += remove(id)
    }
    return outputs
  }

  /// Records that unpublication was confirmed or timed out.
  mutating func endUnpublishing(_ ids: [LocalMediaID]) -> [RoomOutput] {
    ids.flatMap { id in self[id]?.phase == .unpublishing ? withdraw(id) : [] }
  }

  mutating func setMuted(_ isMuted: Bool, _ id: LocalMediaID) -> [RoomOutput] {
    guard let index = place(of: id) else { return [] }
    entries[index].info.isActive = !isMuted
    return [.event(.localMediaMuted(id, isMuted))]
  }

  private mutating func remove(_ id: LocalMediaID) -> [RoomOutput] {
    guard let index = place(of: id) else { return [] }
    let entry = entries.remove(at: index)
    return carried(entry).map { [.person(.ended($0))] } ?? []
  }

  // MARK: Connections

  /// Records the local participant's number, and reports the media that connections already send.
  mutating func enter(as number: Int, over links: ConnectionTable) -> [RoomOutput] {
    owner = number
    return entries.indices.flatMap { carry($0, over: links) }
  }

  /// Records which transceiver sends media, replacing the previous one.
  mutating func place(
    _ id: LocalMediaID, on connection: ConnectionID, _ transceiver: UInt32,
    over links: ConnectionTable
  ) -> [RoomOutput] {
    guard let index = place(of: id),
      entries[index].connection != connection || entries[index].transceiver != transceiver
    else { return [] }
    let former = carried(entries[index]).map { [RoomOutput.person(.ended($0))] } ?? []
    (entries[index].connection, entries[index].transceiver) = (connection, transceiver)
    entries[index].carrier = nil
    return former + carry(index, over: links)
  }

  /// Reports that the media on a lost connection is no longer sent.
  mutating func lose(_ connection: ConnectionID) -> [RoomOutput] {
    var outputs: [RoomOutput] = []
    for index in entries.indices where entries[index].connection == connection {
      if let place = carried(entries[index]) { outputs.append(.person(.ended(place))) }
      (entries[index].connection, entries[index].transceiver) = (nil, nil)
      entries[index].carrier = nil
    }
    return outputs
  }

  /// Reports which peer and transceiver send media, once the media is on a connection and the local
  /// participant has joined.
  ///
  /// A connection may start sending the media earlier.
  private mutating func carry(_ index: Int, over links: ConnectionTable) -> [RoomOutput] {
    guard owner != nil, entries[index].carrier == nil,
      let link = entries[index].connection.flatMap({ links[$0] })
    else { return [] }
    entries[index].carrier = link.peer
    return carried(entries[index]).map { [.person(.carried($0))] } ?? []
  }

  /// Returns the peer and transceiver that were reported to send media; nil if none were.
  private func carried(_ entry: Entry) -> CarriedMedia? {
    guard let peer = entry.carrier, let transceiver = entry.transceiver, let owner else {
      return nil
    }
    return CarriedMedia(
      participant: owner, media: entry.media?.number, kind: entry.info.kind, isInbound: false,
      peer: peer, transceiver: transceiver, extraValue: entry.info.extraValue)
  }

  private func place(of id: LocalMediaID) -> Int? { entries.firstIndex { $0.info.id == id } }
}
