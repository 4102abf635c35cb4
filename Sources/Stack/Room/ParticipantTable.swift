/// The participants and their published media.
struct ParticipantTable {
  struct Person: Sendable {
    /// Unchanged when the participant leaves and returns.
    var number: Int
    var id: String
    var name: String
    var isLocal: Bool
    var isPresent: Bool
  }

  /// The name of this participant.
  private(set) var localName = ""
  /// In order of first appearance.
  private(set) var people: [Person] = []
  /// The media of other participants in the order of publication.
  private(set) var media: [PublishedMedia] = []

  /// A limit, because a server could name ever new participants.
  private static let peopleMaximum = 10_000
  private static let mediaMaximum = 20_000

  var local: Person? { people.first { $0.isLocal } }

  /// The other participants present, in order of first appearance.
  var others: [Person] { people.filter { $0.isPresent && !$0.isLocal } }

  func person(_ id: String) -> Person? { people.first { $0.id == id } }

  func media(_ id: MediaID) -> PublishedMedia? { media.first { $0.id == id } }

  func media(of owner: String) -> [PublishedMedia] { media.filter { $0.owner == owner } }

  mutating func setOwnName(_ name: String) { localName = name }

  /// Records that a participant is present; nil if known, or there are too many.
  mutating func enter(_ id: String, name: String, isLocal: Bool = false) -> PersonChange? {
    if let index = people.firstIndex(where: { $0.id == id }) {
      guard !people[index].isPresent else { return nil }
      people[index].isPresent = true
      people[index].name = name
      return .entered(number: people[index].number, id: id, name: name, isLocal: isLocal)
    }
    guard people.count < ParticipantTable.peopleMaximum else { return nil }
    let number = people.count + 1
    people.append(
      Person(number: number, id: id, name: name, isLocal: isLocal, isPresent: true))
    return .entered(number: number, id: id, name: name, isLocal: isLocal)
  }

  /// Records that a participant left; nil if it was not present.
  mutating func leave(_ id: String) -> PersonChange? {
    guard let index = people.firstIndex(where: { $0.id == id && $0.isPresent }) else { return nil }
    people[index].isPresent = false
    return .left(number: people[index].number)
  }

  /// Records published media; false if known, or its owner is not present.
  mutating func publish(_ published: PublishedMedia) -> Bool {
    guard media.count < ParticipantTable.mediaMaximum, media(published.id) == nil,
      let owner = person(published.owner), owner.isPresent, !owner.isLocal
    else { return false }
    media.append(published)
    return true
  }

  mutating func unpublish(_ id: MediaID) -> PublishedMedia? {
    guard let index = media.firstIndex(where: { $0.id == id }) else { return nil }
    return media.remove(at: index)
  }

  /// Records a change of media, except for its owner and kind; false if nothing changed.
  mutating func change(_ changed: PublishedMedia) -> Bool {
    guard let index = media.firstIndex(where: { $0.id == changed.id }) else { return false }
    var next = changed
    (next.owner, next.kind) = (media[index].owner, media[index].kind)
    guard next != media[index] else { return false }
    media[index] = next
    return true
  }
}
