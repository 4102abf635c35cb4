import FoundationEssentials
package import Tape
import Wire

// Reports verifications as text, JSON and JUnit XML.
extension TakeVerification {
  /// The result on one line, with duration, take and reason.
  package var line: String {
    let seconds = decimal(elapsedSeconds, 3)
    let time = String(repeating: " ", count: max(0, 7 - seconds.utf8.count)) + seconds + " s"
    let remarks = leftOut + notes
    let end = remarks.isEmpty ? "" : " (\(remarks.joined(separator: "; ")))"
    if isPassed {
      let verdict = isWhole ? "passed" : "partly"
      return "\(verdict)  \(time)  \(path): \(mode.rawValue), \(counted(steps, "step"))\(end)"
    }
    return "FAILED  \(time)  \(path): \(summary)\(end)"
  }

  /// Why the test failed, in a sentence; if it passed, the number of steps and the mode.
  package var summary: String {
    switch outcome {
    case .passed: "\(counted(steps, "step")), \(mode.rawValue)"
    case .diverged(let divergence):
      "step \(divergence.step), layer \(divergence.layer), \(divergence.what), "
        + "\(divergence.field): \(divergence.recorded) recorded, \(divergence.replayed) replayed"
    case .altered(let alteration): alteration.description
    case .missed(let misses):
      misses.count == 1
        ? misses[0].description : "\(misses[0].description), and \(misses.count - 1) more"
    case .partial: "it can be replayed only in part: \(leftOut.joined(separator: "; "))"
    case .unreadable(let error): error.description
    }
  }

  /// Details of the failure, possibly on several lines.
  package var details: String {
    switch outcome {
    case .passed, .partial: summary
    case .diverged(let divergence): divergence.description
    case .altered(let alteration): alteration.description
    case .missed(let misses): misses.map(\.description).joined(separator: "\n")
    case .unreadable(let error): error.description
    }
  }

  /// The layer that diverged or another kind of failure; `passed` if the test passed.
  package var kind: String {
    switch outcome {
    case .passed: "passed"
    case .diverged(let divergence): divergence.layer
    case .altered: "altered"
    case .missed: "meaning"
    case .partial: "partial"
    case .unreadable: "unreadable"
    }
  }

  /// The command line that reproduces the failure.
  package var command: String {
    switch outcome {
    case .diverged, .altered, .unreadable: ShellText.command("retake", "replay", path)
    case .missed, .passed:
      ShellText.command("retake", "verify", "--mode", mode.rawValue, path)
    case .partial: ShellText.command("retake", "verify", "--strict", path)
    }
  }

  /// Returns a report about the take: the result, how to reproduce it, and what it means.
  ///
  /// - Parameter meaning: for a divergence, the session's outcome with this stack; nil omits it.
  package func report(meaning: String?) -> String {
    var parts = [
      "\(path): \(isPassed ? "passed" : "failed")", details, "To reproduce it:\n  \(command)",
    ]
    if case .diverged = outcome {
      parts.append(
        "To shorten it as far as possible:\n  " + ShellText.command("retake", "minimise", path))
    }
    parts += (leftOut + notes).map { "Note: \($0)" }
    if let meaning { parts.append(meaning) }
    // The report is shown in terminals and quotes the call, so control characters from participants
    // are escaped and secrets are hidden.
    return SecretText.hidden(in: PrintableText.lines(parts.joined(separator: "\n\n") + "\n"))
  }

  /// Describes the session's outcome with this stack, compared with the recording.
  package func meaning() throws(TapeError) -> String {
    let recorded = try Measures(path: path)
    let now = try TakeVerification.redriven(path, TakeVerification.stack)
    let misses = Pin(mode: .meaning, measures: recorded).misses(of: now.measures)
    guard !misses.isEmpty else {
      return "By meaning nothing changed: \(recorded.all.count) measures are within tolerance."
    }
    return "By meaning, with this stack run freely on the inputs of the take:\n"
      + misses.map { "  \($0)" }.joined(separator: "\n")
  }

  /// The members of a result's JSON object.
  fileprivate struct Summary: Encodable {
    var path: String
    var result: String
    var mode: Pin.Mode
    var kind: String
    var steps: Int
    var seconds: Double
    var elapsedSeconds: Double
    var notes: [String]
    var leftOut: [String]?
    var reason: String?
    var command: String?
    var divergence: Divergence?
    var misses: [Miss]?
  }

  fileprivate var jsonSummary: Summary {
    var summary = Summary(
      path: path, result: isPassed ? "passed" : "failed", mode: mode, kind: kind, steps: steps,
      seconds: Double(durationNanoseconds) / 1e9, elapsedSeconds: elapsedSeconds, notes: notes,
      leftOut: isWhole ? nil : leftOut)
    guard !isPassed else { return summary }
    summary.reason = self.summary
    summary.command = command
    if case .diverged(let divergence) = outcome { summary.divergence = divergence }
    if case .missed(let misses) = outcome { summary.misses = misses }
    return summary
  }
}

extension VerificationRun {
  /// The last line of the output.
  ///
  /// The line has the numbers of takes, failures and partial replays, and the durations of the
  /// calls and of the run.
  package var totals: String {
    let recorded = results.reduce(0) { $0 + Double($1.durationNanoseconds) / 1e9 }
    let failed = failures.count
    let partly = inPart.isEmpty ? "" : ", \(inPart.count) replayed in part"
    return "\(counted(results.count, "take")), \(failed) failed\(partly), "
      + "\(decimal(recorded, 1)) s of calls in \(decimal(elapsedSeconds, 1)) s"
  }

  /// All results as a JSON object.
  package var json: String {
    struct Run: Encodable {
      var takes: Int
      var failed: Int
      var inPart: Int
      var elapsedSeconds: Double
      var results: [TakeVerification.Summary]
    }
    return CanonicalJSON.text(
      Run(
        takes: results.count, failed: failures.count, inPart: inPart.count,
        elapsedSeconds: elapsedSeconds,
        results: results.map(\.jsonSummary)))
  }

  /// All results as JUnit XML, which CI servers display.
  package var junit: String {
    var lines = ["<?xml version=\"1.0\" encoding=\"UTF-8\"?>"]
    func seconds(_ value: Double) -> String { decimal(value, 3) }
    let errors = results.filter { $0.kind == "unreadable" }.count
    let counts =
      "tests=\"\(results.count)\" failures=\"\(failures.count - errors)\" errors=\"\(errors)\" "
      + "skipped=\"\(inPart.count)\" time=\"\(seconds(elapsedSeconds))\""
    lines.append("<testsuites \(counts)>")
    lines.append("  <testsuite name=\"retake verify\" \(counts)>")
    for result in results {
      let url = URL(fileURLWithPath: result.path)
      let folder = url.deletingLastPathComponent().lastPathComponent
      var line =
        "    <testcase classname=\"\(xml(folder))\" name=\"\(xml(url.lastPathComponent))\" "
        + "time=\"\(seconds(result.elapsedSeconds))\""
      if result.isPassed, result.isWhole {
        line += "/>"
      } else if result.isPassed {
        let reason = xml(result.leftOut.joined(separator: "; "))
        line += ">\n      <skipped message=\"\(reason)\"/>\n    </testcase>"
      } else {
        let element = result.kind == "unreadable" ? "error" : "failure"
        line +=
          ">\n      <\(element) type=\"\(xml(result.kind))\" message=\"\(xml(result.summary))\">"
          + xml("\(result.details)\n\(result.command)") + "</\(element)>\n    </testcase>"
      }
      lines.append(line)
    }
    lines += ["  </testsuite>", "</testsuites>", ""]
    return lines.joined(separator: "\n")
  }

  /// Escapes text for XML, replacing characters that XML 1.0 does not allow with question marks.
  private func xml(_ text: String) -> String {
    var result = ""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "&": result += "&amp;"
      case "<": result += "&lt;"
      case ">": result += "&gt;"
      case "\"": result += "&quot;"
      case "\n": result += "&#10;"
      case "\t": result += "&#9;"
      case "\u{20}"..."\u{d7ff}", "\u{e000}"..."\u{fffd}", "\u{10000}"..."\u{10ffff}":
        result.unicodeScalars.append(scalar)
      default: result += "?"
      }
    }
    return result
  }
}
