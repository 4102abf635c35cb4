import Wire

/// Who is in a room and what they publish, with the numbers of the media.
struct Roster: Sendable {
  /// Media as a server names it.
  struct Offer: Hashable, Sendable {
    /// The server's name of it, unique for its owner.
    var key: String
    var kind: MediaKind
    var isActive = true
    var isAlwaysOn = false
    var extraValue = ""
    var profiles: [VideoProfile] = []
  }

  private struct Member: Sendable {
    var info: ParticipantInfo
    /// The server's names of the media, in the order of `info.media`.
    var keys: [String] = []
  }

  /// More than these are passed over, whatever a server says.
  static let participantsMaximum = 1_000
  static let mediaMaximum = 64

  private var members: [Member] = []
  private var mediaCount: UInt32 = 0

  /// Everybody, in the order in which they came.
  var participants: [ParticipantInfo] { members.map(\.info) }

  /// A number for media that no other has.
  mutating func nextMedia() -> MediaID {
    mediaCount += 1
    return MediaID(mediaCount)
  }

  func contains(_ id: String) -> Bool { members.contains { $0.info.id == id } }

  /// Media by its number, with the server's name of it.
  func media(_ id: MediaID) -> (media: PublishedMedia, key: String)? {
    for member in members {
      if let index = member.info.media.firstIndex(where: { $0.id == id }) {
        return (member.info.media[index], member.keys[index])
      }
    }
    return nil
  }

  /// Media by the server's name of it, where names are unique in the room.
  func media(key: String) -> MediaID? {
    for member in members {
      if let index = member.keys.firstIndex(of: key) { return member.info.media[index].id }
    }
    return nil
  }

  /// Media by the server's name of it.
  func media(owner: String, key: String) -> PublishedMedia? {
    guard let member = members.first(where: { $0.info.id == owner }),
      let index = member.keys.firstIndex(of: key)
    else { return nil }
    return member.info.media[index]
  }

  /// Somebody is there.
  mutating func enter(_ id: String, displayName: String, metadata: String? = nil)
    -> [SignalingEvent]
  {
    guard !contains(id), members.count < Roster.participantsMaximum else { return [] }
    let info = ParticipantInfo(id: id, displayName: displayName, metadata: metadata)
    members.append(Member(info: info))
    return [.participantEntered(info)]
  }

  /// Somebody is gone.
  mutating func leave(_ id: String, _ cause: LeaveCause) -> [SignalingEvent] {
    guard let index = members.firstIndex(where: { $0.info.id == id }) else { return [] }
    let events = set([], of: id)
    members.remove(at: index)
    return events + [.participantLeft(id, cause)]
  }

  /// All that a participant publishes now, in the place of what it published before.
  mutating func set(_ offers: [Offer], of owner: String) -> [SignalingEvent] {
    guard let index = members.firstIndex(where: { $0.info.id == owner }) else { return [] }
    let before = members[index]
    var after = Member(info: before.info)
    after.info.media = []
    var fresh: [PublishedMedia] = []
    var changed: [SignalingEvent] = []
    for offer in offers.prefix(Roster.mediaMaximum) where !after.keys.contains(offer.key) {
      let known = before.keys.firstIndex(of: offer.key).map { before.info.media[$0] }
      // Another kind under the same name is other media.
      let same = known.flatMap { $0.kind == offer.kind ? $0 : nil }
      let media = PublishedMedia(
        id: same?.id ?? nextMedia(), owner: owner, kind: offer.kind, isActive: offer.isActive,
        isAlwaysOn: offer.isAlwaysOn, extraValue: offer.extraValue, profiles: offer.profiles)
      after.keys.append(offer.key)
      after.info.media.append(media)
      if let same {
        if same != media { changed.append(.mediaChanged(media)) }
      } else {
        fresh.append(media)
      }
    }
    members[index] = after
    let gone = before.info.media.map(\.id).filter { id in
      !after.info.media.contains { $0.id == id }
    }
    var events: [SignalingEvent] = []
    if !gone.isEmpty { events.append(.unpublished(owner: owner, gone)) }
    events += changed
    if !fresh.isEmpty { events.append(.published(owner: owner, fresh)) }
    return events
  }

  /// Media that a participant adds to what it publishes, or has in another way.
  mutating func update(_ offer: Offer, of owner: String) -> [SignalingEvent] {
    set(offers(of: owner).filter { $0.key != offer.key } + [offer], of: owner)
  }

  /// Media that a participant publishes no longer.
  mutating func remove(key: String, of owner: String) -> [SignalingEvent] {
    set(offers(of: owner).filter { $0.key != key }, of: owner)
  }

  /// What a participant publishes, as it was told.
  func offers(of owner: String) -> [Offer] {
    guard let member = members.first(where: { $0.info.id == owner }) else { return [] }
    return zip(member.keys, member.info.media).map { key, media in
      Offer(
        key: key, kind: media.kind, isActive: media.isActive, isAlwaysOn: media.isAlwaysOn,
        extraValue: media.extraValue, profiles: media.profiles)
    }
  }

  /// Everybody who is there now, after a time without news.
  mutating func retain(_ ids: [String]) -> [SignalingEvent] {
    let gone = members.map(\.info.id).filter { !ids.contains($0) }
    return gone.flatMap { leave($0, .left) }
  }
}
