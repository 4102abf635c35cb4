/// The takes of calls that are over, so that their pages can be asked for.
struct EndedTakes {
  /// Of how many calls the page can be asked for.
  static let most = 1_000

  /// Oldest first.
  private var takes: [(id: String, path: String)] = []

  /// Records the take of a call that is over.
  mutating func append(_ path: String, of id: String) {
    if takes.count == EndedTakes.most { takes.removeFirst() }
    takes.append((id, path))
  }

  /// The take of the last call of a name.
  func path(of id: String) -> String? { takes.last { $0.id == id }?.path }
}
