import Foundation
import Testing

/// A place that breaks a rule.
struct Finding: Hashable, CustomStringConvertible {
  var path: String
  var line: Int
  var what: String

  var description: String { "\(path):\(line): \(what)" }
}

/// An exception to a rule: the number of places in a file, and why they are needed.
///
/// The lists of exceptions may only get shorter. If a file has fewer places than allowed, the rule
/// requires the number to be lowered.
struct Allowance {
  var path: String
  var count: Int
  var reason: String
}

extension Sequence<Finding> {
  /// Returns the violations that are not covered by exceptions.
  func complaints(allowing allowances: [Allowance] = []) -> [String] {
    let byPath = Dictionary(grouping: self, by: \.path)
    let allowed = Dictionary(uniqueKeysWithValues: allowances.map { ($0.path, $0.count) })
    var complaints: [String] = []
    for path in Set(byPath.keys).union(allowed.keys).sorted() {
      let found = byPath[path] ?? []
      let limit = allowed[path] ?? 0
      if found.count > limit {
        complaints += found.map(\.description)
      } else if found.count < limit {
        let change = "\(limit) are allowed, \(found.count) are left: lower the number"
        complaints.append("\(path): \(change)")
      }
    }
    return complaints
  }
}

/// Records an issue for each place that breaks a rule.
func expectNone(
  _ findings: some Sequence<Finding>, allowing allowances: [Allowance] = [],
  sourceLocation: SourceLocation = #_sourceLocation
) {
  for complaint in findings.complaints(allowing: allowances) {
    Issue.record(Comment(rawValue: complaint), sourceLocation: sourceLocation)
  }
}

/// A regular expression and the meaning of its matches.
struct Pattern: Sendable {
  let meaning: String
  private let expression: NSRegularExpression

  init(_ expression: String, _ meaning: String) throws {
    self.meaning = meaning
    self.expression = try NSRegularExpression(
      pattern: expression, options: [.anchorsMatchLines])
  }

  /// Returns the matches in a file's text, by default in its code.
  func findings(in file: SourceFile, text: KeyPath<SourceFile, String> = \.code) -> [Finding] {
    matches(in: file[keyPath: text]).map { match in
      Finding(path: file.path, line: match.line, what: "\(meaning): \(match.groups[0])")
    }
  }

  /// Returns all matches: the line, the match and its groups.
  func matches(in text: String) -> [(line: Int, groups: [String])] {
    let whole = text as NSString
    var line = 1
    var counted = 0
    return expression.matches(in: text, range: NSRange(location: 0, length: whole.length)).map {
      match in
      let before = NSRange(location: counted, length: match.range.location - counted)
      line += whole.substring(with: before).utf8.count { $0 == UInt8(ascii: "\n") }
      counted = match.range.location
      let groups = (0..<match.numberOfRanges).map { group in
        let range = match.range(at: group)
        return range.location == NSNotFound ? "" : whole.substring(with: range)
      }
      return (line, groups)
    }
  }
}
