/// What somebody may have meant who misspelt a word.
package enum Nearest {
  /// The words of a list that are near to one, the nearest first; at most three.
  ///
  /// A word is near that begins with it or with which it begins, and one that is told apart from it
  /// by few letters that are missing, added, others or swapped with the next.
  package static func words(to word: String, among known: some Sequence<String>) -> [String] {
    let wanted = Array(word.lowercased().unicodeScalars.prefix(longest + 1))
    guard (1...longest).contains(wanted.count) else { return [] }
    var found: [(distance: Int, word: String)] = []
    var seen: Set<String> = []
    for candidate in known where seen.insert(candidate).inserted {
      let letters = Array(candidate.lowercased().unicodeScalars)
      let limit = max(1, min(wanted.count, letters.count) / 3)
      let distance = distance(wanted, letters)
      if distance <= limit {
        found.append((distance, candidate))
      } else if wanted.count > 2, letters.starts(with: wanted) || wanted.starts(with: letters) {
        found.append((limit + 1, candidate))
      }
    }
    // Equal distances stay in the order of the list.
    return found.enumerated().sorted {
      ($0.element.distance, $0.offset) < ($1.element.distance, $1.offset)
    }.prefix(3).map(\.element.word)
  }

  /// The end of a sentence that refuses a word: `; did you mean a or b?`, or all words when none is
  /// near.
  package static func hint(_ word: String, among known: some Sequence<String>) -> String {
    let near = words(to: word, among: known)
    return near.isEmpty
      ? "; there is \(known.joined(separator: ", "))"
      : "; did you mean \(near.joined(separator: " or "))?"
  }

  /// The longest word that is compared.
  private static let longest = 40

  /// By how many changes of a letter two words differ (optimal string alignment).
  private static func distance(_ left: [Unicode.Scalar], _ right: [Unicode.Scalar]) -> Int {
    var rows = [Array(0...right.count)]
    for (i, letter) in left.enumerated() {
      var row = [i + 1]
      for (j, other) in right.enumerated() {
        var least = min(rows[i][j + 1], row[j]) + 1
        least = min(least, rows[i][j] + (letter == other ? 0 : 1))
        if i > 0, j > 0, letter == right[j - 1], left[i - 1] == other {
          least = min(least, rows[i - 1][j - 1] + 1)
        }
        row.append(least)
      }
      rows.append(row)
    }
    return rows[left.count][right.count]
  }
}
