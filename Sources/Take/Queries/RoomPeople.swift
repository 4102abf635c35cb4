package import Tape
import Wire

/// A participant of a room in a take.
package struct RoomPerson: Sendable, Codable, Hashable {
  /// The actor number of the room's client, and the participant's number in that room.
  package var actor: UInt32
  package var participant: Int64
  /// The id that the service assigned.
  package var id: String
  /// The display name; empty if the service has none.
  package var name: String
  /// Whether this is the participant whose client was recorded.
  package var isLocal: Bool
  package var enteredNanoseconds: Int64
  /// The time at which the participant left; nil if the participant was still present at the end.
  package var leftNanoseconds: Int64?
  /// The tracks that carry the participant's media, as in `audio in on peer 2, track 1`.
  package var tracks: [String]

  /// The display name, or the id if there is none.
  package var title: String { name.isEmpty ? id : name }
}

/// The participants of all rooms in a take, and the tracks that carried their media.
struct RoomPeople: Sendable {
  private struct Track: Hashable {
    var peer: Int64
    var track: Int64
    var direction: String
  }

  private(set) var all: [RoomPerson] = []
  /// The distinct names of the participants whose media each track carried.
  private var names: [Track: [String]] = [:]

  /// The maximum number of names shown per track, because a mixer may put an entire room on one
  /// track.
  private static let namesMaximum = 3
  /// The maximum number of participants to read.
  private static let peopleMaximum = 1000

  init(_ connection: borrowing SQLiteConnection) throws(SQLiteError) {
    let people = try connection.prepare(
      """
      SELECT actor, participant, coalesce(id, ''), coalesce(name, ''), local,
        coalesce(entered_ns, 0), left_ns
      FROM participant ORDER BY actor, participant LIMIT \(RoomPeople.peopleMaximum)
      """)
    while try people.step() {
      let (actor, participant, id, name, local, entered, left) = people.values(
        UInt32.self, Int64.self, String.self, String.self, Int64.self, Int64.self, Int64?.self)
      all.append(
        RoomPerson(
          actor: actor, participant: participant, id: id, name: name, isLocal: local != 0,
          enteredNanoseconds: entered, leftNanoseconds: left, tracks: []))
    }
    guard !all.isEmpty else { return }
    let tracks = try connection.prepare(
      """
      SELECT actor, participant, peer, track, direction, kind, min(from_ns)
      FROM participant_track GROUP BY actor, participant, peer, track, direction, kind
      ORDER BY min(from_ns), peer, track
      """)
    while try tracks.step() {
      let (actor, participant, peer, track, direction, kind) = tracks.values(
        UInt32.self, Int64.self, Int64.self, Int64.self, String.self, String.self)
      guard
        let place = all.firstIndex(where: { $0.actor == actor && $0.participant == participant })
      else { continue }
      all[place].tracks.append("\(kind) \(direction) on peer \(peer), track \(track)")
      let key = Track(peer: peer, track: track, direction: direction)
      let title = all[place].title
      if !names[key, default: []].contains(title) { names[key, default: []].append(title) }
    }
  }

  /// Returns whose media a track carried; nil if the track belongs to no room.
  ///
  /// The names of several participants, who used the track one after another or were mixed, are
  /// joined with "or".
  func name(peer: Int64, track: Int64, direction: String) -> String? {
    let found = names[Track(peer: peer, track: track, direction: direction), default: []]
    guard !found.isEmpty else { return nil }
    let named = found.prefix(RoomPeople.namesMaximum).joined(separator: " or ")
    let rest = found.count - RoomPeople.namesMaximum
    return rest > 0 ? "\(named) or \(rest) more" : named
  }
}

struct PeerLabels: Sendable {
  /// The peers' labels, in the take's order.
  private(set) var entries: [(peer: Int64, label: String)] = []

  init() {}

  init(_ connection: borrowing SQLiteConnection) throws(SQLiteError) {
    let rows = try connection.prepare("SELECT peer, label FROM peer ORDER BY row")
    while try rows.step() { entries.append(rows.values(Int64.self, String.self)) }
  }

  /// The label of a peer; nil if the take has no such peer.
  subscript(peer: Int64) -> String? { entries.first { $0.peer == peer }?.label }
}

/// The peers of a take, for callers that need only their numbers and labels.
package enum TakePeers {
  /// Returns the numbers and labels of all peers, in order.
  package static func all(in path: String) throws(TapeError) -> [(number: Int64, label: String)] {
    let connection = try TakeFile.open(path)
    do throws(SQLiteError) {
      return try PeerLabels(connection).entries.map { (number: $0.peer, label: $0.label) }
    } catch {
      throw TapeError(path: path, error)
    }
  }
}

/// A part of a take, limited to some of its peers and to a time span.
package struct TakeSelection: Sendable, Hashable {
  /// The peers' numbers; nil for all.
  package var peers: Set<Int64>?
  /// The time span's first and last instant, in nanoseconds.
  package var fromNanoseconds = Int64.min
  package var toNanoseconds = Int64.max

  /// Selects the entire take.
  package init() {}

  /// Returns whether the selection contains a peer and overlaps a time span.
  package func holds(peer: Int64, from: Int64, to: Int64) -> Bool {
    peers?.contains(peer) ?? true && from <= toNanoseconds && to >= fromNanoseconds
  }

  /// Returns whether the selection contains a peer and an instant.
  package func holds(peer: Int64, at: Int64) -> Bool { holds(peer: peer, from: at, to: at) }
}
