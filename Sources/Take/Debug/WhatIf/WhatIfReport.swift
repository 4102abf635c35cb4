import FoundationEssentials
package import Queries
import Replay
import Wire

/// Compares a recorded session with a run under changes.
package struct WhatIfReport: Sendable {
  package let path: String
  /// The changes, described with the number of affected datagrams where it can be counted.
  package let changes: [String]
  package let recorded: [PeerOutcome]
  package let changed: [PeerOutcome]
  /// Actors that are not endpoints and were omitted.
  package let others: [String]

  package init(
    path: String, changes: [String], recorded: [PeerOutcome], changed: [PeerOutcome],
    others: [String] = []
  ) {
    (self.path, self.changes, self.others) = (path, changes, others)
    (self.recorded, self.changed) = (recorded, changed)
  }

  /// A sentence about omitted actors; nil if there are none.
  private var otherText: String? {
    guard !others.isEmpty else { return nil }
    return "Not run, because only endpoints can be changed: \(others.joined(separator: ", "))."
  }

  /// The assumptions behind the comparison.
  package static let meaning =
    "Open loop: the inputs are those recorded, whatever the stack did; what the remote peer "
    + "would have sent in response (retransmissions, key frames, another bit rate) is unknown."

  /// The assumptions, and which part of observed calls a run covers.
  private var explanation: String {
    guard recorded.contains(where: { $0.isObserved }) else { return Self.meaning }
    return Self.meaning
      + " For calls between others, only the receiving side is run: jitter buffers and decoders."
  }

  private struct Row {
    var peer: String
    var name: String
    var before: String
    var after: String

    var isEqual: Bool { before == after }

    var json: JSONText {
      .object([
        ("outcome", .text(name)), ("recorded", .text(before)), ("changed", .text(after)),
        ("equal", .flag(isEqual)),
      ])
    }
  }

  private func pairs() -> [(before: PeerOutcome, after: PeerOutcome)] {
    recorded.compactMap { outcome in
      changed.first { $0.peer == outcome.peer }.map { (outcome, $0) }
    }
  }

  private func rows(_ before: PeerOutcome, _ after: PeerOutcome) -> [Row] {
    let peer = "\(before.peer) \(before.label)".trimmed
    var rows: [Row] = []
    for machine in ["connection", "ice-connection", "dtls"] {
      rows.append(
        Row(
          peer: peer, name: machine, before: states(before, machine),
          after: states(after, machine)))
    }
    var names = before.measures.map(\.name)
    names += after.measures.map(\.name).filter { !names.contains($0) }
    for name in names {
      rows.append(
        Row(
          peer: peer, name: name, before: value(before, name), after: value(after, name)))
    }
    rows.append(
      Row(
        peer: peer, name: "refused", before: before.refusals.joined(separator: "; "),
        after: after.refusals.joined(separator: "; ")))
    return rows
  }

  private func states(_ outcome: PeerOutcome, _ machine: String) -> String {
    outcome.states.filter { $0.machine == machine }.map {
      "\($0.state) \(seconds($0.atNanoseconds))"
    }.joined(separator: ", ")
  }

  private func value(_ outcome: PeerOutcome, _ name: String) -> String {
    guard let value = outcome.measures.first(where: { $0.name == name })?.value else { return "0" }
    return value.rounded() == value ? String(Int64(saturating: value)) : decimal(value, 1)
  }

  /// Returns freezes in one outcome that overlap none in the other.
  private func freezes(_ outcome: PeerOutcome, missingIn other: PeerOutcome) -> [PeerOutcome.Freeze]
  {
    outcome.freezes.filter { freeze in
      !other.freezes.contains {
        $0.track == freeze.track && $0.fromNanoseconds < freeze.toNanoseconds
          && $0.toNanoseconds > freeze.fromNanoseconds
      }
    }
  }

  private func gone(_ before: PeerOutcome, _ after: PeerOutcome, hasFewer: Bool)
    -> [PeerOutcome.Freeze]
  {
    freezes(before, missingIn: after).filter {
      (shown(after, $0.track) < shown(before, $0.track)) == hasFewer
    }
  }

  /// Returns how many of a track's frames were displayed, because longer gaps are normal if fewer
  /// frames are displayed.
  private func shown(_ outcome: PeerOutcome, _ track: UInt32) -> Double {
    outcome.measures.first { $0.name == "track \(track) video frames shown" }?.value ?? 0
  }

  private func line(_ freeze: PeerOutcome.Freeze, of outcome: PeerOutcome) -> String {
    "peer \(outcome.peer), video track \(freeze.track), at \(seconds(freeze.fromNanoseconds)) s "
      + "for \(Int(saturating: (freeze.seconds * 1000).rounded())) ms"
  }

  /// The report as text: the differences, and freezes that disappeared or appeared.
  package var text: String { text() }

  /// Returns the report as text for a terminal.
  package func text(_ look: TableLook = TableLook()) -> String {
    var lines =
      changes.map { "what if: \($0)" } + [explanation] + (otherText.map { [$0] } ?? []) + [""]
    let rows = pairs().flatMap { self.rows($0.before, $0.after) }
    let different = rows.filter { !$0.isEqual }
    if different.isEmpty {
      lines.append("no result differs")
    } else {
      let table = TextTable(
        columns: ["peer", "outcome", "as recorded", "what if"],
        rows: different.map { [$0.peer, $0.name, $0.before, $0.after] },
        alignsRight: [false, false, true, true], wraps: true)
      lines += table.text(look).split(separator: "\n").map { String($0) }
      let same = rows.count - different.count
      lines.append("\(counted(same, "other outcome")) \(same == 1 ? "is" : "are") the same")
    }
    for (before, after) in pairs() {
      lines += gone(before, after, hasFewer: false).map { "freeze gone: \(line($0, of: before))" }
      lines += gone(before, after, hasFewer: true).map {
        "freeze not counted, as fewer frames are shown: \(line($0, of: before))"
      }
      lines += freezes(after, missingIn: before).map { "freeze added: \(line($0, of: after))" }
    }
    return lines.joined(separator: "\n")
  }

  /// The report as a JSON object.
  package var json: String {
    let peers = pairs().map { before, after in
      JSONText.object([
        ("peer", .integer(before.peer)), ("label", .text(before.label)),
        ("outcomes", .list(rows(before, after).map(\.json))),
        ("freezes_gone", .list(gone(before, after, hasFewer: false).map(\.json))),
        ("freezes_not_counted", .list(gone(before, after, hasFewer: true).map(\.json))),
        ("freezes_added", .list(freezes(after, missingIn: before).map(\.json))),
      ])
    }
    return JSONText.object([
      ("take", .text(path)), ("changes", .list(changes.map { .text($0) })),
      ("meaning", .text(explanation)), ("peers", .list(peers)),
      ("left_out", .list(others.map { .text($0) })),
    ]).text
  }
}

extension PeerOutcome.Freeze {
  fileprivate var json: JSONText {
    .object([
      ("track", .integer(track)), ("from_ns", .integer(fromNanoseconds)),
      ("to_ns", .integer(toNanoseconds)),
    ])
  }
}
