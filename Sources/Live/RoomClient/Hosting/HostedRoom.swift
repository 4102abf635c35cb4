import Room
import Wire

/// A room on its server: participants, published media, subscriptions.
///
/// It decides and creates notices; the owner has the connections and sockets. Requests of those who
/// are not in the room are refused.
struct HostedRoom {
  /// Media published by a participant.
  struct Media {
    var media: RoomMedia
    var owner: String
    /// The owner's number of it, and the section in the owner's offer.
    var local: UInt32
    var mid: String
  }

  struct Member {
    var id: String
    var name: String
    var metadata: String?
    /// The subscribed videos, and those that are paused.
    var wanted: Set<UInt32> = []
    var paused: Set<UInt32> = []
    /// The selected profiles.
    var profiles: [UInt32: VideoProfile] = [:]
  }

  /// A notice to a participant.
  struct Notice {
    var to: String
    var notice: RoomNotice
  }

  private(set) var members: [Member] = []
  private(set) var media: [Media] = []

  static let membersMaximum = 100
  static let mediaMaximum = 64
  /// The limits in bytes on details (metadata and extra values) per participant and in total: a
  /// newcomer gets them all at once.
  static let memberDetailBytes = 64 << 10
  static let detailBytes = 1 << 20

  subscript(id: String) -> Member? { members.first { $0.id == id } }

  var isEmpty: Bool { members.isEmpty }

  private func others(than id: String) -> [String] { members.map(\.id).filter { $0 != id } }

  private func notify(_ notice: RoomNotice, allBut id: String) -> [Notice] {
    others(than: id).map { Notice(to: $0, notice: notice) }
  }

  // MARK: What a newcomer is told

  /// The bytes of details of the participants present.
  private func detailBytes(of id: String?) -> Int {
    let metadata = members.reduce(0) { sum, member in
      id == nil || member.id == id ? sum + (member.metadata?.utf8.count ?? 0) : sum
    }
    return media.reduce(metadata) { sum, entry in
      id == nil || entry.owner == id ? sum + entry.media.extraValue.utf8.count : sum
    }
  }

  /// Whether a participant may add so many bytes of details.
  private func hasRoom(for bytes: Int, of id: String) -> Bool {
    detailBytes(of: id) + bytes <= HostedRoom.memberDetailBytes
      && detailBytes(of: nil) + bytes <= HostedRoom.detailBytes
  }

  private static let tooMuch = "the metadata and values of media are too long together"

  /// The participants present, for a newcomer.
  func list(without id: String) -> [RoomMember] {
    members.filter { $0.id != id }.map { member in
      RoomMember(
        id: member.id, displayName: member.name, metadata: member.metadata,
        media: media.filter { $0.owner == member.id }.map(\.media))
    }
  }

  // MARK: Coming and going

  /// Adds a participant; returns the refusal, if any.
  mutating func enter(_ id: String, _ join: RoomJoin) -> (notices: [Notice], fault: RoomFault?) {
    guard members.count < HostedRoom.membersMaximum else {
      return ([], RoomFault(.joinRefused, "the room is full"))
    }
    guard self[id] == nil else {
      return ([], RoomFault(.joinRefused, "there is a participant \(id) already"))
    }
    guard hasRoom(for: join.metadata?.utf8.count ?? 0, of: id) else {
      return ([], RoomFault(.joinRefused, HostedRoom.tooMuch))
    }
    members.append(Member(id: id, name: join.displayName, metadata: join.metadata))
    let member = RoomMember(id: id, displayName: join.displayName, metadata: join.metadata)
    return (notify(.entered(member), allBut: id), nil)
  }

  mutating func leave(_ id: String, _ cause: LeaveCause) -> [Notice] {
    guard self[id] != nil else { return [] }
    let gone = media.filter { $0.owner == id }.map(\.media.number)
    media.removeAll { $0.owner == id }
    members.removeAll { $0.id == id }
    forget(gone)
    let unpublished = gone.isEmpty ? [] : notify(.unpublished(participant: id, gone), allBut: id)
    return unpublished + notify(.left(participant: id, cause), allBut: id)
  }

  /// Forgets media that is no longer published.
  private mutating func forget(_ gone: [UInt32]) {
    for index in members.indices {
      members[index].wanted.subtract(gone)
      members[index].paused.subtract(gone)
      for number in gone { members[index].profiles[number] = nil }
    }
  }

  // MARK: Media

  /// Replaces a participant's published media; returns what was added and removed.
  /// - Parameter number: returns unused numbers of this room.
  mutating func publish(
    _ offered: [RoomLocalMedia], of id: String, number: () -> UInt32
  ) -> (notices: [Notice], fault: RoomFault?) {
    guard self[id] != nil else { return ([], RoomFault(.invalidState, "the room was left")) }
    let offered = offered.prefix(HostedRoom.mediaMaximum)
    let known = Set(media.filter { $0.owner == id }.map(\.local))
    let added = offered.filter { !known.contains($0.local) }
    guard hasRoom(for: added.reduce(0) { $0 + $1.extraValue.utf8.count }, of: id) else {
      return ([], RoomFault(.publishFailed, HostedRoom.tooMuch))
    }
    var news: [RoomMedia] = []
    for entry in offered {
      if let index = media.firstIndex(where: { $0.owner == id && $0.local == entry.local }) {
        media[index].mid = entry.mid
        continue
      }
      let made = RoomMedia(
        number: number(), kind: entry.kind, isActive: entry.isActive,
        isAlwaysOn: entry.isAlwaysOn, extraValue: entry.extraValue,
        profiles: HostedRoom.profiles(of: entry))
      media.append(Media(media: made, owner: id, local: entry.local, mid: entry.mid))
      news.append(made)
    }
    let kept = Set(offered.map(\.local))
    let gone = media.filter { $0.owner == id && !kept.contains($0.local) }.map(\.media.number)
    media.removeAll { gone.contains($0.media.number) }
    forget(gone)
    let numbers = media.filter { $0.owner == id }.map {
      RoomLocalNumber(local: $0.local, number: $0.media.number)
    }
    var notices = [Notice(to: id, notice: .local(numbers))]
    if !gone.isEmpty { notices += notify(.unpublished(participant: id, gone), allBut: id) }
    if !news.isEmpty { notices += notify(.published(participant: id, news), allBut: id) }
    return (notices, nil)
  }

  mutating func change(_ changed: RoomMedia, of id: String) -> [Notice] {
    guard self[id] != nil,
      let index = media.firstIndex(where: {
        $0.owner == id && $0.media.number == changed.number
      })
    else { return [] }
    var next = changed
    next.kind = media[index].media.kind
    next.profiles = media[index].media.profiles
    let growth = next.extraValue.utf8.count - media[index].media.extraValue.utf8.count
    guard growth <= 0 || hasRoom(for: growth, of: id) else { return [] }
    media[index].media = next
    return notify(.changed(participant: id, next), allBut: id)
  }

  // MARK: Wishes

  /// Subscribes or unsubscribes; returns the refusal, if any.
  mutating func want(_ numbers: [UInt32], _ isWanted: Bool, of id: String) -> RoomFault? {
    guard let index = members.firstIndex(where: { $0.id == id }) else {
      return RoomFault(.invalidState, "the room was left")
    }
    for number in numbers {
      guard let found = media.first(where: { $0.media.number == number }), found.owner != id else {
        return RoomFault(.noSuchMedia, "nobody publishes \(number)")
      }
    }
    for number in numbers {
      if isWanted {
        members[index].wanted.insert(number)
      } else {
        members[index].wanted.remove(number)
        members[index].paused.remove(number)
        members[index].profiles[number] = nil
      }
    }
    return nil
  }

  /// The profiles of a simulcast video: one per layer.
  private static func profiles(of entry: RoomLocalMedia) -> [VideoProfile] {
    guard entry.kind == .video else { return [] }
    return switch entry.layers.count {
    case 0, 1: []
    case 2: [.low, .high]
    default: [.low, .mid, .high]
    }
  }

  /// Selects a profile; returns the refusal, if any.
  mutating func choose(_ profile: VideoProfile, _ number: UInt32, of id: String) -> RoomFault? {
    guard let index = members.firstIndex(where: { $0.id == id }),
      members[index].wanted.contains(number)
    else { return RoomFault(.notSubscribed, "\(number) is not subscribed to") }
    let offered = media.first { $0.media.number == number }?.media.profiles ?? []
    guard offered.contains(profile) else {
      return RoomFault(.noProfiles, "\(number) has no profile \(profile.rawValue)")
    }
    members[index].profiles[number] = profile
    return nil
  }

  /// The factor between the largest profile and the selected one.
  func divisor(of number: UInt32, for id: String) -> Int {
    guard let profile = self[id]?.profiles[number],
      let offered = media.first(where: { $0.media.number == number })?.media.profiles,
      let place = offered.firstIndex(of: profile)
    else { return 1 }
    return 1 << (offered.count - 1 - place)
  }

  mutating func pause(_ number: UInt32, _ isPaused: Bool, of id: String) -> RoomFault? {
    guard let index = members.firstIndex(where: { $0.id == id }),
      members[index].wanted.contains(number)
    else { return RoomFault(.notSubscribed, "\(number) is not subscribed to") }
    if isPaused {
      members[index].paused.insert(number)
    } else {
      members[index].paused.remove(number)
    }
    return nil
  }

  /// What a participant should be sent: the audio of all others, and its subscribed videos.
  func wanted(by id: String) -> [Media] {
    guard let member = self[id] else { return [] }
    return media.filter { entry in
      entry.owner != id
        && (entry.media.kind == .audio || member.wanted.contains(entry.media.number))
    }
  }

  /// The voices available to a participant, by number.
  func voices(for id: String) -> [(media: UInt32, isAlwaysOn: Bool)] {
    media.filter { $0.owner != id && $0.media.kind == .audio }
      .map { (media: $0.media.number, isAlwaysOn: $0.media.isAlwaysOn) }
      .sorted { $0.media < $1.media }
  }

  /// Whether media is currently forwarded to a participant.
  func flows(_ number: UInt32, to id: String) -> Bool {
    self[id].map { !$0.paused.contains(number) } ?? false
  }

  // MARK: Messages

  func message(_ message: UserMessage, from id: String) -> (notices: [Notice], fault: RoomFault?) {
    guard self[id] != nil else { return ([], RoomFault(.invalidState, "the room was left")) }
    var message = message
    message.sender = id
    // A participant named repeatedly gets the message once.
    var named: Set<String> = []
    message.targets = message.targets.filter { named.insert($0).inserted }
    let targets = message.targets.isEmpty ? others(than: id) : message.targets
    if let stranger = targets.first(where: { self[$0] == nil }) {
      return ([], RoomFault(.userMessageInvalid, "\(stranger) is not in the room"))
    }
    return (targets.map { Notice(to: $0, notice: .message(message)) }, nil)
  }

  func talking(_ id: String, _ isTalking: Bool) -> [Notice] {
    self[id] == nil ? [] : notify(.talking(participant: id, isTalking, level: nil), allBut: id)
  }
}
