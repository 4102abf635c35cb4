import Foundation
import Testing

/// The README answers questions with queries; here they are asked again.
///
/// After captures were recorded anew, `RETAKE_WRITE_ANSWERS=1 swift test --filter QuestionTests`
/// writes the new answers into the README.
@Suite struct QuestionTests {
  private struct Question {
    /// The command, and where its answer stands among the lines.
    var command: String
    var answer: Range<Int>
  }

  private static let root = URL(filePath: #filePath).deletingLastPathComponent()
    .deletingLastPathComponent().deletingLastPathComponent()
  private static let heading = "## Twenty questions"

  /// The commands of the section: a line that begins with `$`, and its answer up to a blank line.
  private static func questions(_ lines: [String]) throws -> [Question] {
    let begin = try #require(lines.firstIndex(of: heading), "\(heading)")
    let end = lines[(begin + 1)...].firstIndex { $0.hasPrefix("## ") } ?? lines.count
    var questions: [Question] = []
    var index = begin
    while index < end {
      if lines[index].hasPrefix("$ retake ") {
        let last = lines[index..<end].firstIndex { $0.isEmpty || $0.hasPrefix("```") } ?? end
        questions.append(
          Question(
            command: String(lines[index].dropFirst("$ retake ".count)),
            answer: (index + 1)..<last))
        index = last
      }
      index += 1
    }
    return questions
  }

  @Test func theAnswersInTheReadmeAreThoseOfTheCaptures() async throws {
    let readme = QuestionTests.root.appending(path: "README.md")
    var lines = try String(contentsOf: readme, encoding: .utf8).components(separatedBy: "\n")
    let questions = try QuestionTests.questions(lines)
    #expect(questions.count >= 20)
    let writes = ProcessInfo.processInfo.environment["RETAKE_WRITE_ANSWERS"] != nil
    for question in questions.reversed() {
      let outcome = try await Tool.shell(
        "cd '\(QuestionTests.root.path)' && \"$RETAKE\" \(question.command)")
      #expect(outcome.status == 0, "\(question.command): \(outcome.errors)")
      let answer = outcome.output.split(separator: "\n", omittingEmptySubsequences: true)
        .map(String.init)
      #expect(!answer.isEmpty, "\(question.command)")
      if writes {
        lines.replaceSubrange(question.answer, with: answer)
      } else {
        #expect(Array(lines[question.answer]) == answer, "\(question.command)")
      }
    }
    if writes {
      try lines.joined(separator: "\n").write(to: readme, atomically: true, encoding: .utf8)
    }
  }
}
