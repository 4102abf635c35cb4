extension StringProtocol {
  /// The text without white space at either end.
  package var trimmed: String { trimming(where: \.isWhitespace) }

  /// The text without unwanted characters at either end.
  package func trimming(where isUnwanted: (Character) -> Bool) -> String {
    var text = self[...]
    while let first = text.first, isUnwanted(first) { text.removeFirst() }
    while let last = text.last, isUnwanted(last) { text.removeLast() }
    return String(text)
  }
}
