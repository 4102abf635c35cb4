package import Tape
import Wire

/// The result of comparing a replay with the recording.
package enum Verdict: Sendable {
  /// All outputs, deadlines and random draws are as recorded.
  case identical
  /// The file is intact, but the stack behaved differently.
  case diverged(Divergence)
  /// The file was altered, so the replay says nothing about the stack.
  case altered(Alteration)
}

/// A library, or the CPU, that differs from the recorder's.
package struct ToolchainDifference: Hashable, Sendable, Codable {
  package var part: String
  package var recorded: String
  package var present: String

  package init(part: String, recorded: String, present: String) {
    self.part = part
    self.recorded = recorded
    self.present = present
  }

  /// A few words about how the part differs.
  ///
  /// For each of the two CPUs, the summary names at most three features that the other lacks; the
  /// JSON has the complete lists.
  package var summary: String {
    guard part == "cpu" else { return "\(part): recorded \(recorded), here \(present)" }
    let (there, here) = (recorded.split(separator: " "), present.split(separator: " "))
    let lacking = here.filter { !there.contains($0) }
    let having = there.filter { !here.contains($0) }
    let what = [("without ", lacking), ("with ", having)].filter { !$0.1.isEmpty }
      .map { $0.0 + Self.few($0.1) }
    return "recorded on another CPU (\(what.joined(separator: "; ")))"
  }

  private static func few(_ features: [Substring]) -> String {
    guard features.count > 3 else { return features.joined(separator: ", ") }
    return "\(features[0]), \(features[1]) and \(features.count - 2) more"
  }
}

/// The verdict of a replay, with the facts about how it was reached.
package struct ReplayReport: Sendable {
  package var path: String
  package var verdict: Verdict
  /// The number of steps that were replayed without a difference.
  package var steps: Int
  /// The take's time at the last step that was replayed without a difference, which is also the
  /// replayed duration.
  package var durationNanoseconds: Int64
  /// The wall-clock duration of the replay, in seconds.
  package var elapsedSeconds: Double
  /// The labels of the actors that were replayed.
  package var peers: [String]
  /// Whether all actors were endpoints, in which case there are as many peers as actors.
  ///
  /// An observer is a single actor but has the peers of all calls that it saw.
  var areEndpoints = true
  /// Whether the recording was ended properly; otherwise the recorder was killed or is still
  /// running.
  package var isComplete: Bool
  package var skippedCodecs: Bool
  /// In a take without media, the number of frames that were not sent completely; zeros replace the
  /// missing bytes.
  package var framesNotSent = 0
  /// The step of the first frame that was not sent completely; nil if there is none.
  package var firstFrameNotSent: Int?
  /// Descriptions of results that came from the recording instead of this machine's libraries.
  package var substituted: [String]
  /// The number of actors with reports of another stack, which cannot be executed.
  package var reported = 0
  /// What was removed from the take; nil if nothing was.
  package var redaction: Redaction?
  /// Whether the replay reached a requested stop before the end of the take.
  package var stoppedEarly: Bool
  package var toolchainDifferences: [ToolchainDifference]

  /// The speed of the replay as a multiple of real time.
  package var speed: Double {
    elapsedSeconds > 0 ? Double(durationNanoseconds) / 1e9 / elapsedSeconds : 0
  }
}

extension ReplayReport: CustomStringConvertible {
  /// The report as printed; a single line if nothing is wrong.
  package var description: String {
    switch verdict {
    case .identical where redaction?.isFactsOnly == true:
      return "\(path): intact: \(counted(steps, "step")), checked by their digests" + redactedText
    case .identical:
      let end =
        stoppedEarly
        ? stopText
        : isComplete ? "" : "; \(endingText)"
      let replayed = counted(peers.count, areEndpoints ? "peer" : "machine")
      return "\(path): identical: \(counted(steps, "step")) of \(replayed), "
        + "\(decimal(Double(durationNanoseconds) / 1e9, 3)) s replayed in "
        + "\(decimal(elapsedSeconds, 3)) s (\(decimal(speed, 0))x)"
        + (skippedCodecs ? ", codecs skipped" : "") + end + cpuText + notSentText + reportedText
        + redactedText
        + substituted.map { "\n  \($0)" }.joined()
    case .diverged(let divergence): return divergence.description + toolchainText
    case .altered(let alteration): return "\(path): \(alteration)"
    }
  }

  private var notSentText: String {
    guard let firstFrameNotSent else { return "" }
    let frames = framesNotSent == 1 ? "1 frame was" : "\(framesNotSent) frames were"
    return "\n  \(frames) never sent completely (step \(firstFrameNotSent)"
      + (framesNotSent == 1 ? "" : " and later") + "): zeros were used for the missing bytes"
  }

  /// Explains what "identical" means for reports of another stack, which are not executed.
  private var reportedText: String {
    reported == 0
      ? ""
      : "\n  another stack reported this, so nothing can be executed again: the chain of digests "
        + "is intact, and the reports give the same rows"
  }

  private var redactedText: String {
    redaction.map { "\n  redacted: \($0.sentence)" } ?? ""
  }

  /// Explains why the take is incomplete.
  private var endingText: String {
    (try? TakeEnding.of(path))?.words ?? "its recording has ended meanwhile"
  }

  private var stopText: String { ", stopped before step \(steps + 1) as asked" }

  /// Says that all frames are identical although the CPU differs; empty if anything else differs
  /// too.
  private var cpuText: String {
    guard toolchainDifferences.map(\.part) == ["cpu"], !skippedCodecs, substituted.isEmpty else {
      return ""
    }
    return "; \(toolchainDifferences[0].summary); frames checked: identical"
  }

  private var toolchainText: String {
    guard !toolchainDifferences.isEmpty else { return "" }
    let parts = toolchainDifferences.map { "\n  \($0.summary)" }
    return "\nThe toolchain differs from the recorder's, which may be the reason:" + parts.joined()
  }

  /// The report as a JSON object.
  package var json: String {
    var result = "identical"
    var divergence: Divergence?
    var alteration: Alteration?
    switch verdict {
    case .identical: break
    case .diverged(let found): (result, divergence) = ("diverged", found)
    case .altered(let found): (result, alteration) = ("altered", found)
    }
    return ReportJSON(
      path: path, result: result, steps: steps, durationSeconds: Double(durationNanoseconds) / 1e9,
      elapsedSeconds: elapsedSeconds, peers: peers, complete: isComplete,
      skippedCodecs: skippedCodecs, framesNotSent: framesNotSent,
      firstFrameNotSent: firstFrameNotSent, substituted: substituted,
      redacted: redaction?.sentence, stoppedEarly: stoppedEarly,
      toolchainDifferences: toolchainDifferences, divergence: divergence, alteration: alteration
    ).text
  }
}

/// The members of the report's JSON object.
private struct ReportJSON: Encodable {
  var path: String
  var result: String
  var steps: Int
  var durationSeconds: Double
  var elapsedSeconds: Double
  var peers: [String]
  var complete: Bool
  var skippedCodecs: Bool
  var framesNotSent: Int
  var firstFrameNotSent: Int?
  var substituted: [String]
  var redacted: String?
  var stoppedEarly: Bool
  var toolchainDifferences: [ToolchainDifference]
  var divergence: Divergence?
  var alteration: Alteration?

  var text: String { CanonicalJSON.text(self, isIndented: true) }
}
