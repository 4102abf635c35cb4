import FoundationEssentials
package import Media
import Peer
package import Tape
import Wire

/// The result of running a take as a test.
package struct TakeVerification: Sendable {
  /// Whether the test passed, and if not, why.
  package enum Outcome: Hashable, Sendable {
    case passed
    /// The stack behaves differently than recorded.
    case diverged(Divergence)
    /// The file was altered.
    case altered(Alteration)
    /// Some measures of the session are outside the pin's tolerances.
    case missed([Miss])
    /// The take can be replayed only in part on this machine, which a strict test does not accept.
    case partial
    /// The take or its pin cannot be read.
    case unreadable(TapeError)
  }

  package var path: String
  package var mode: Pin.Mode
  package var outcome: Outcome
  /// What could not be replayed because this machine has other libraries, with reasons.
  ///
  /// If the list is not empty, the test passes only in part.
  package var leftOut: [String] = []
  /// Remarks that do not affect the result, such as that the recorder was killed.
  package var notes: [String] = []
  package var steps = 0
  /// The duration of the recorded session, in nanoseconds.
  package var durationNanoseconds: Int64 = 0
  /// The wall-clock duration of the test, in seconds.
  package var elapsedSeconds = 0.0

  package var isPassed: Bool { outcome == .passed }

  /// Whether the entire take was replayed without recorded results in place of libraries.
  package var isWhole: Bool { leftOut.isEmpty }

  /// Whether tests in this process fail for takes that can be replayed only in part.
  ///
  /// `RETAKE_STRICT=1` enables this on machines that should have all the libraries that takes were
  /// recorded with.
  package static var isStrictHere: Bool {
    ProcessInfo.processInfo.environment["RETAKE_STRICT"] == "1"
  }

  /// Creates a peer of the stack that is tested, with the given codecs.
  package typealias MakePeer = @Sendable (any CodecFactory) -> any ReplayedPeer

  /// Creates a peer of this build's stack.
  package static let stack: MakePeer = { PeerMachine(codecs: $0) }

  /// Replays a take as a test.
  ///
  /// - Parameters:
  ///   - mode: how to compare; nil for the pin's mode or, if there is no pin, `meaning` for a take
  ///     of another revision and `exact` for others.
  ///   - isStrict: whether the test fails if the take can be replayed only in part.
  ///   - kinds: how to create the machines that are not endpoints.
  ///   - makePeer: creates a peer of the stack that is tested.
  package static func run(
    path: String, mode: Pin.Mode? = nil, isStrict: Bool = false,
    kinds: MachineKinds = MachineKinds(), makePeer: @escaping MakePeer = stack
  ) -> TakeVerification {
    let clock = ContinuousClock()
    let begin = clock.now
    var result = TakeVerification(path: path, mode: mode ?? .exact, outcome: .passed)
    do throws(TapeError) {
      let pin = try Pin.read(forTake: path)
      let others = try TapeReader(path: path).otherRevisions()
      result.mode = mode ?? pin?.mode ?? (others.isEmpty ? .exact : .meaning)
      if !others.isEmpty {
        result.notes.append(
          "made by \(others.map(\.text).joined(separator: ", by "))"
            + (mode == nil && pin == nil ? ": compared by meaning" : ""))
      }
      switch result.mode {
      case .exact: try result.compareExactly(kinds, makePeer)
      case .meaning: try result.compareMeaning(pin, kinds, makePeer)
      }
      if isStrict, result.isPassed, !result.isWhole { result.outcome = .partial }
    } catch {
      result.outcome = .unreadable(error)
    }
    let elapsed = (clock.now - begin).components
    result.elapsedSeconds = Double(elapsed.seconds) + Double(elapsed.attoseconds) / 1e18
    return result
  }

  // MARK: Exact comparison

  private mutating func compareExactly(
    _ kinds: MachineKinds, _ makePeer: @escaping MakePeer
  ) throws(TapeError) {
    let toolchain = try Toolchain.current(for: path)
    let header = try TapeReader(path: path).header
    var substitution = try Substitution(of: path, header, by: toolchain)
    guard substitution.isReplayable else {
      leftOut = substitution.notes
      try auditOnly()
      return
    }
    var report = try replay(substitution, toolchain, kinds, makePeer)
    if case .diverged(let divergence) = report.verdict,
      let other = substitution.standingIn(for: divergence, in: path, header, by: toolchain)
    {
      let second = try replay(other, toolchain, kinds, makePeer)
      // If the second replay diverges too, codecs are probably not the cause, so the first report
      // stays.
      if case .identical = second.verdict { (substitution, report) = (other, second) }
    }
    leftOut = substitution.notes
    steps = report.steps
    durationNanoseconds = report.durationNanoseconds
    notes += report.substituted
    if !report.isComplete, let words = try TakeEnding.of(path).words { notes.append(words) }
    switch report.verdict {
    case .identical: break
    case .diverged(let divergence): outcome = .diverged(divergence)
    case .altered(let alteration): outcome = .altered(alteration)
    }
  }

  private func replay(
    _ substitution: Substitution, _ toolchain: Toolchain, _ kinds: MachineKinds,
    _ makePeer: @escaping MakePeer
  ) throws(TapeError) -> ReplayReport {
    var options = Replayer.Options()
    options.toolchain = toolchain
    options.skipsCodecs = substitution.skipsCodecs
    options.security = substitution.security
    return try Replayer(
      path: path, options: options, kinds: kinds, codecs: { LibraryCodecs() }, peer: makePeer
    ).run()
  }

  private mutating func auditOnly() throws(TapeError) {
    let audit = try TapeAudit.run(path: path)
    steps = audit.steps
    durationNanoseconds = audit.at.nanoseconds
    if let alteration = audit.alteration { outcome = .altered(alteration) }
  }

  // MARK: Comparison by meaning

  private mutating func compareMeaning(
    _ pin: Pin?, _ kinds: MachineKinds, _ makePeer: @escaping MakePeer
  ) throws(TapeError) {
    let audit = try TapeAudit.run(path: path)
    steps = audit.steps
    durationNanoseconds = audit.at.nanoseconds
    if let alteration = audit.alteration {
      outcome = .altered(alteration)
      return
    }
    let wanted: Pin
    if let pin {
      wanted = pin
    } else {
      notes.append("no pin: compared with the take itself")
      wanted = Pin(mode: .meaning, measures: try Measures(path: path))
    }
    let hasFindings = wanted.checks.contains { $0.name.hasSuffix(Measures.findings) }
    let found = try TakeVerification.redriven(
      path, kinds: kinds, hasFindings: hasFindings, makePeer)
    leftOut = found.leftOut
    let misses = wanted.misses(of: found.measures)
    if !misses.isEmpty { outcome = .missed(misses) }
  }

  /// Runs the stack with a take's inputs, without comparing, and measures the resulting session.
  package static func redriven(
    _ path: String, kinds: MachineKinds = MachineKinds(), hasFindings: Bool = false,
    _ makePeer: @escaping MakePeer
  ) throws(TapeError) -> (measures: Measures, summary: Redrive.Summary, leftOut: [String]) {
    let folder = FileManager.default.temporaryDirectory.path
    let whole: WholeFile
    do throws(WholeFile.Failure) {
      // This take never gets its final name: only its measures are needed, and it is removed
      // afterwards.
      whole = try WholeFile("\(folder)/retake-verify-\(UUID().uuidString)", .kept, isTake: true)
    } catch {
      throw TapeError(path: folder, place: "", reason: error.description, kind: .failed)
    }
    defer { withExtendedLifetime(whole) {} }
    let output = whole.temporary
    let header = try TapeReader(path: path).header
    let substitution = try Substitution(of: path, header, by: try Toolchain.current(for: path))
    var options = Redrive.Options()
    options.skipsCodecs = substitution.isReplayable && substitution.skipsCodecs
    options.security = substitution.security
    let redrive = try Redrive(
      path: path, output: output, options: options, kinds: kinds, codecs: { LibraryCodecs() },
      peer: makePeer)
    let summary = try redrive.run()
    return (try Measures(path: output, hasFindings: hasFindings), summary, substitution.notes)
  }
}
