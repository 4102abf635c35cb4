extension StringProtocol {
  /// The text without the white space at its ends.
  package var trimmed: String { trimming(where: \.isWhitespace) }

  /// The text without the characters at its ends that are unwanted.
  package func trimming(where isUnwanted: (Character) -> Bool) -> String {
    var text = self[...]
    while let first = text.first, isUnwanted(first) { text.removeFirst() }
    while let last = text.last, isUnwanted(last) { text.removeLast() }
    return String(text)
  }
}
