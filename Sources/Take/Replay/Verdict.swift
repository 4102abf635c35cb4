package import Tape
import Wire

/// A replay's result.
package enum Verdict: Sendable {
  /// All outputs, deadlines and random draws were as recorded.
  case identical
  /// The file is intact, but the stack behaved differently.
  case diverged(Divergence)
  /// The file was altered, which is not the stack's fault.
  case altered(Alteration)
}

/// A part of the toolchain that differs from the recorder's.
package struct ToolchainDifference: Hashable, Sendable, Codable {
  package var part: String
  package var recorded: String
  package var present: String

  package init(part: String, recorded: String, present: String) {
    self.part = part
    self.recorded = recorded
    self.present = present
  }

  /// The part and how it differs, in a few words.
  ///
  /// For a CPU, it names the features that only one side has, at most two; the JSON has the
  /// complete lists.
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

/// A replay's result and circumstances.
package struct ReplayReport: Sendable {
  package var path: String
  package var verdict: Verdict
  /// The number of steps replayed and found equal.
  package var steps: Int
  /// The take's time at the last replayed step.
  package var durationNanoseconds: Int64
  /// The wall-clock duration of the replay, in seconds.
  package var elapsedSeconds: Double
  /// The replayed peers' labels.
  package var peers: [String]
  /// Whether only endpoints were replayed, each of which is one peer; an observer has the peers of
  /// all calls that it saw.
  var areEndpoints = true
  /// Whether the recording was finished; otherwise its recorder was killed.
  package var isComplete: Bool
  package var skippedCodecs: Bool
  /// In a take without media, how many frames were not sent completely and were padded with zeros.
  package var framesNotSent = 0
  /// The first such frame's step.
  package var firstFrameNotSent: Int?
  /// Descriptions of results that came from the recording instead of this machine's libraries.
  package var substituted: [String]
  /// The number of machines with another stack's reports, which are not executed.
  package var reported = 0
  /// The redaction of the take; nil if nothing was removed.
  package var redaction: Redaction?
  /// Whether the replay ended at a requested stop.
  package var stoppedEarly: Bool
  package var toolchainDifferences: [ToolchainDifference]

  /// The speed relative to the call's duration.
  package var speed: Double {
    elapsedSeconds > 0 ? Double(durationNanoseconds) / 1e9 / elapsedSeconds : 0
  }
}

extension ReplayReport: CustomStringConvertible {
  /// The report as text: one line if all is well.
  package var description: String {
    switch verdict {
    case .identical where redaction?.isFactsOnly == true:
      return "\(path): whole: \(counted(steps, "step")), checked by their digests" + redactedText
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
    return "\n  \(frames) never sent whole (step \(firstFrameNotSent)"
      + (framesNotSent == 1 ? "" : " and later") + "): zeros stood in for what no packet has"
  }

  /// The meaning of "identical" if nothing is executed.
  private var reportedText: String {
    reported == 0
      ? ""
      : "\n  another stack reported this, and nothing of it is executed again: the chain is "
        + "whole, and "
        + "its reports fold into the same rows"
  }

  private var redactedText: String {
    redaction.map { "\n  redacted: \($0.sentence)" } ?? ""
  }

  /// The reason that the take has no end.
  private var endingText: String {
    (try? TakeEnding.of(path))?.words ?? "it is recorded to its end by now"
  }

  private var stopText: String { ", stopped before step \(steps + 1) as asked" }

  /// Explains a divergence if only the CPU differs.
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

/// The shape of a report as JSON.
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
