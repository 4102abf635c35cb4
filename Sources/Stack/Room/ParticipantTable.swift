/// Who is in the room, and what they publish.
struct ParticipantTable {
  struct Person: Sendable {
    /// Stays the same when the participant leaves and comes back.
    var number: Int
    var id: String
    var name: String
    var isLocal: Bool
    var isPresent: Bool
  }

  /// The name under which this side enters.
  private(set) var localName = ""
  /// In the order in which they came first.
  private(set) var people: [Person] = []
  /// What others publish, in the order of publishing.
  private(set) var media: [PublishedMedia] = []

  /// A server that names ever new ones must not fill the memory.
  private static let peopleMaximum = 10_000
  private static let mediaMaximum = 20_000

  var local: Person? { people.first { $0.isLocal } }

  /// The others that are there, in the order in which they came first.
  var others: [Person] { people.filter { $0.isPresent && !$0.isLocal } }

  func person(_ id: String) -> Person? { people.first { $0.id == id } }

  func media(_ id: MediaID) -> PublishedMedia? { media.first { $0.id == id } }

  func media(of owner: String) -> [PublishedMedia] { media.filter { $0.owner == owner } }

  mutating func setOwnName(_ name: String) { localName = name }

  /// Records who is there; nil when that is known, or there are too many.
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

  /// Records who has left; nil for who is not there.
  mutating func leave(_ id: String) -> PersonChange? {
    guard let index = people.firstIndex(where: { $0.id == id && $0.isPresent }) else { return nil }
    people[index].isPresent = false
    return .left(number: people[index].number)
  }

  /// Records published media; false when it is known, or nobody who is there has it.
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

  /// Records a change, but for who has it and what it is; false when there is none.
  mutating func change(_ changed: PublishedMedia) -> Bool {
    guard let index = media.firstIndex(where: { $0.id == changed.id }) else { return false }
    var next = changed
    (next.owner, next.kind) = (media[index].owner, media[index].kind)
    guard next != media[index] else { return false }
    media[index] = next
    return true
  }
}
