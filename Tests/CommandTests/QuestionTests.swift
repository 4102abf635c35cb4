import Foundation
import Testing

/// Runs the queries in the article on common questions, and compares their answers.
///
/// After captures were recorded again, `RETAKE_WRITE_ANSWERS=1 swift test --filter QuestionTests`
/// writes the new answers into the article.
struct QuestionTests {
  private struct Question {
    /// The command; `answer` has the lines of its answer in the article.
    var command: String
    var answer: Range<Int>
  }

  private static let root = URL(filePath: #filePath).deletingLastPathComponent()
    .deletingLastPathComponent().deletingLastPathComponent()
  private static let article = root.appending(
    path: "Sources/Products/Retake/Retake.docc/TwentyQuestions.md")

  /// Returns the article's commands: a line that starts with `$`, and its answer up to a blank
  /// line.
  private static func questions(_ lines: [String]) -> [Question] {
    var questions: [Question] = []
    var index = 0
    while index < lines.count {
      if lines[index].hasPrefix("$ retake ") {
        let last = lines[index...].firstIndex { $0.isEmpty || $0.hasPrefix("```") } ?? lines.count
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

  @Test func theAnswersInTheArticleAreThoseOfTheCaptures() async throws {
    let article = QuestionTests.article
    var lines = try String(contentsOf: article, encoding: .utf8).components(separatedBy: "\n")
    let questions = QuestionTests.questions(lines)
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
      try lines.joined(separator: "\n").write(to: article, atomically: true, encoding: .utf8)
    }
  }
}
