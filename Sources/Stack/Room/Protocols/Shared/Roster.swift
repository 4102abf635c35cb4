import SDP
import Wire

/// A room's participants and their media, with the media's ids.
struct Roster: Sendable {
  /// A participant's media as a server describes it.
  struct Offer: Hashable, Sendable {
    /// The server's name for the media, unique per owner.
    var key: String
    var kind: MediaKind
    var isActive = true
    var isAlwaysOn = false
    var extraValue = ""
    var profiles: [VideoProfile] = []
  }

  private struct Member: Sendable {
    var info: ParticipantInfo
    /// The server's names for the media, in the order of `info.media`.
    var keys: [String] = []
  }

  /// The maximum numbers of participants and of media per participant; a server may announce more,
  /// but the rest is ignored.
  static let participantsMaximum = 1_000
  static let mediaMaximum = 64

  private var members: [Member] = []
  private var mediaCount: UInt32 = 0

  /// All participants in order of arrival.
  var participants: [ParticipantInfo] { members.map(\.info) }

  mutating func nextMedia() -> MediaID {
    mediaCount += 1
    return MediaID(mediaCount)
  }

  func contains(_ id: String) -> Bool { members.contains { $0.info.id == id } }

  /// Returns media and the server's name for it; nil if no media has the id.
  func media(_ id: MediaID) -> (media: PublishedMedia, key: String)? {
    for member in members {
      if let index = member.info.media.firstIndex(where: { $0.id == id }) {
        return (member.info.media[index], member.keys[index])
      }
    }
    return nil
  }

  /// Finds media by the server's name, for servers whose names are unique in the room; nil if there
  /// is none.
  func media(key: String) -> MediaID? {
    for member in members {
      if let index = member.keys.firstIndex(of: key) { return member.info.media[index].id }
    }
    return nil
  }

  /// Finds media by owner and the server's name; nil if there is none.
  func media(owner: String, key: String) -> PublishedMedia? {
    guard let member = members.first(where: { $0.info.id == owner }),
      let index = member.keys.firstIndex(of: key)
    else { return nil }
    return member.info.media[index]
  }

  /// Adds a participant; returns the event, or nothing if the participant is already known or there
  /// are too many participants.
  mutating func enter(_ id: String, displayName: String, metadata: String? = nil)
    -> [SignalingEvent]
  {
    guard !contains(id), members.count < Roster.participantsMaximum else { return [] }
    let info = ParticipantInfo(id: id, displayName: displayName, metadata: metadata)
    members.append(Member(info: info))
    return [.participantEntered(info)]
  }

  /// Removes a participant; returns the events for the participant's media and departure.
  mutating func leave(_ id: String, _ cause: LeaveCause) -> [SignalingEvent] {
    guard let index = members.firstIndex(where: { $0.info.id == id }) else { return [] }
    let events = set([], of: id)
    members.remove(at: index)
    return events + [.participantLeft(id, cause)]
  }

  /// Replaces everything a participant publishes; returns the events for the differences.
  mutating func set(_ offers: [Offer], of owner: String) -> [SignalingEvent] {
    guard let index = members.firstIndex(where: { $0.info.id == owner }) else { return [] }
    let before = members[index]
    var after = Member(info: before.info)
    after.info.media = []
    var fresh: [PublishedMedia] = []
    var changed: [SignalingEvent] = []
    for offer in offers.prefix(Roster.mediaMaximum) where !after.keys.contains(offer.key) {
      let known = before.keys.firstIndex(of: offer.key).map { before.info.media[$0] }
      // If the kind changed under the same name, this is different media.
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

  /// Adds or changes one of a participant's media.
  mutating func update(_ offer: Offer, of owner: String) -> [SignalingEvent] {
    set(offers(of: owner).filter { $0.key != offer.key } + [offer], of: owner)
  }

  /// Removes one of a participant's offers.
  mutating func remove(key: String, of owner: String) -> [SignalingEvent] {
    set(offers(of: owner).filter { $0.key != key }, of: owner)
  }

  /// Returns what a participant publishes, as the server last described it.
  func offers(of owner: String) -> [Offer] {
    guard let member = members.first(where: { $0.info.id == owner }) else { return [] }
    return zip(member.keys, member.info.media).map { key, media in
      Offer(
        key: key, kind: media.kind, isActive: media.isActive, isAlwaysOn: media.isAlwaysOn,
        extraValue: media.extraValue, profiles: media.profiles)
    }
  }

  /// Removes all participants except these, because the others left while no updates arrived.
  mutating func retain(_ ids: [String]) -> [SignalingEvent] {
    let gone = members.map(\.info.id).filter { !ids.contains($0) }
    return gone.flatMap { leave($0, .left) }
  }
}
