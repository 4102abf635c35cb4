import FoundationEssentials
import Queries
import Tape

/// What the shell offers where a value depends on a take that stands in the line already.
enum Completions {
  /// A take of any size has far more peers than a person looks through.
  private static let limit = 100

  /// The labels and numbers of the peers.
  static func peers(in words: [String]) -> [String] {
    let peers = peers(of: takes(in: words).first)
    let labels = peers.map(\.label).filter { !$0.isEmpty }
    return (labels + peers.map { String($0.number) }).map(CommandReading.oneLine)
  }

  /// The numbers of the peers of one of the takes.
  static func peerNumbers(in words: [String], take index: Int = 0) -> [String] {
    peers(of: takes(in: words).dropFirst(index).first).map { String($0.number) }
  }

  private static func peers(of take: String?) -> [(number: Int64, label: String)] {
    guard let take, let peers = try? TakePeers.all(in: take) else { return [] }
    return peers.prefix(limit).map { ($0.number, $0.label) }
  }

  /// The takes of a line that is being typed.
  private static func takes(in words: [String]) -> [String] {
    words.dropFirst().filter { word in
      !word.hasPrefix("-") && FileBytes.kind(of: word) == .file
    }
  }
}
