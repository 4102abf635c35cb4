package import Observer
package import Tape
package import Wire

/// Writes reported events into a take one by one, from a file or while they happen.
package final class ReportedRecorder {
  /// The take's label and tags, whether it contains media, and how it is written.
  package struct Options: Sendable {
    package var label = ""
    /// Facts about the take, by key.
    package var tags: [String: String] = [:]
    package var keepsMedia = true
    /// Whether the caller waits for the disk; otherwise a disk that is too slow ends the take.
    package var waitsForDisk = true

    package init(
      label: String = "", tags: [String: String] = [:], keepsMedia: Bool = true,
      waitsForDisk: Bool = true
    ) {
      self.label = label
      self.tags = tags
      self.keepsMedia = keepsMedia
      self.waitsForDisk = waitsForDisk
    }

    static func importing(_ label: String, _ tags: [String: String]) -> Options {
      Options(label: label, tags: tags)
    }
  }

  private let writer: TapeWriter
  private let actor: UInt32
  private let machine = ReportedMachine()
  private var outbox = Outbox<ReportedOutput>()
  private let start: Double
  private var now = Instant.zero
  private var lastMilliseconds: Double
  private var peers: [String: UInt32] = [:]
  /// Each peer's last call number, and the calls waiting for their results.
  private var calls: [UInt32: UInt32] = [:]
  private var waiting: [UInt32: [(id: UInt32, name: String, correlation: String?)]] = [:]
  private var summary: ReportedImport.Summary
  private(set) var steps = 0

  /// Creates the take.
  ///
  /// - Parameters:
  ///   - format: the kind of source, such as `recorded page`.
  ///   - head: what the software says about itself.
  ///   - start: the Unix time at which the take begins, in milliseconds; nil for 0.
  ///   - latest: the last event's Unix time in milliseconds; nil if unknown.
  package init(
    _ path: String, format: String, head: JSONValue?, options: Options, start: Double?,
    latest: Double?
  ) throws(TapeError) {
    self.start = start ?? 0
    lastMilliseconds = self.start
    summary = ReportedImport.Summary(take: path, format: format)
    do {
      var settings = TapeWriter.Options()
      settings.label = options.label
      settings.tags = options.tags
      settings.keepsMedia = options.keepsMedia
      settings.startUnixNanoseconds = Self.nanoseconds(self.start)
      settings.toolVersion = retakeVersion
      settings.waitsForDisk = options.waitsForDisk
      settings.queueLimit = options.waitsForDisk ? 16 << 20 : 64 << 20
      settings.staysIncomplete = !options.waitsForDisk
      settings.toolchain = try Toolchain.current(for: path)
      writer = try TapeWriter(path: path, options: settings)
    }
    actor = writer.addActor(.reported, label: "reported")
    step(.genesis(ReportedGenesis(format: format, head: head?.json)))
    if let latest, latest < 1e9 {
      report(missing: "no-clock", "its times do not say on which day they are")
    }
  }

  /// Throws if nothing more can be written to the take.
  package func check() throws(TapeError) {
    if let error = writer.error { throw error }
  }

  /// Converts milliseconds to nanoseconds; whole milliseconds are converted as an integer, because
  /// a `Double` cannot represent today's times to the nanosecond.
  private static func nanoseconds(_ milliseconds: Double) -> Int64 {
    let bounded = max(min(milliseconds, 4e12), -4e12)
    let whole = bounded.rounded(.down)
    guard let exact = Int64(exactly: whole) else { return 0 }
    return exact * 1_000_000 + Int64(((bounded - whole) * 1e6).rounded())
  }

  private func instant(_ milliseconds: Double) -> Instant {
    Instant(nanoseconds: max(0, Self.nanoseconds(milliseconds) - Self.nanoseconds(start)))
  }

  /// Adds an event; a connection begins with the first event that names it.
  ///
  /// - Parameter time: the event's Unix time in milliseconds; nil for the previous event's time.
  package func add(_ event: ReportedEvent, at time: Double?) {
    let milliseconds = time ?? lastMilliseconds
    lastMilliseconds = milliseconds
    let at = instant(milliseconds)
    now = max(now, at)
    summary.events += 1
    let peer = peer(of: event, at)
    switch event.content {
    case .connection: break
    case .call(let name, let arguments):
      let id = nextCall(of: peer)
      waiting[peer, default: []].append((id, name, event.correlation))
      if waiting[peer, default: []].count > 1000 { waiting[peer]?.removeFirst() }
      step(.call(peer: peer, at: at, id: id, name: name, arguments: text(arguments)))
    case .success(let name, let result):
      step(
        .reply(peer: peer, at: at, id: answered(peer, name, event), reply: text(result), error: nil)
      )
    case .failure(let name, let reason):
      step(
        .reply(
          peer: peer, at: at, id: answered(peer, name, event), reply: nil,
          error: reason?.text ?? text(reason)))
    case .event(let name, let detail):
      step(.event(peer: peer, at: at, name: name, detail: text(detail)))
    case .stats(var report):
      summary.reports += 1
      summary.events -= 1
      report.timestamp = report.timestamp ?? milliseconds
      step(.stats(peer: peer, at: at, id: nextCall(of: peer), report: report.value.json))
    }
  }

  /// Adds a frame if its connection has been reported before; ignores it otherwise.
  package func add(_ frame: ScriptUnit.Frame) {
    guard let peer = peers[frame.connection] else { return }
    let at = instant(frame.unixMilliseconds)
    now = max(now, at)
    if machine.track(of: peer, mid: frame.mid) == nil {
      let detail = JSONText.object([("mid", .text(frame.mid))]).text
      step(.event(peer: peer, at: at, name: ReportedMachine.framesEvent, detail: detail))
    }
    guard let track = machine.track(of: peer, mid: frame.mid) else { return }
    var input = ReportedFrame(
      peer: peer, at: at, track: track, isVideo: frame.isVideo, codec: frame.codec,
      ssrc: frame.ssrc, rtpTime: frame.rtpTime, isKey: frame.isKey, bytes: frame.bytes)
    if frame.isVideo, frame.width > 0, frame.height > 0 {
      (input.width, input.height) = (frame.width, frame.height)
    }
    summary.frames = (summary.frames ?? 0) + 1
    step(.frame(input))
  }

  private func text(_ value: JSONValue?) -> String { value?.json ?? "null" }

  private func peer(of event: ReportedEvent, _ at: Instant) -> UInt32 {
    guard let name = event.connection else { return 0 }
    if let known = peers[name] { return known }
    guard peers.count < ReportedMachine.peersMaximum else { return 0 }
    let number = UInt32(peers.count + 1)
    peers[name] = number
    summary.connections += 1
    var configuration: JSONValue?
    if case .connection(let value) = event.content { configuration = value }
    step(.connection(peer: number, at: at, label: name, configuration: text(configuration)))
    return number
  }

  private func nextCall(of peer: UInt32) -> UInt32 {
    let number = (calls[peer] ?? 0) + 1
    calls[peer] = number
    return number
  }

  /// Finds the call that a result belongs to: the one with the same name and correlation, or else
  /// the oldest waiting call with that name, or else a new one.
  private func answered(_ peer: UInt32, _ name: String, _ event: ReportedEvent) -> UInt32 {
    let open = waiting[peer] ?? []
    let place =
      open.firstIndex { $0.name == name && $0.correlation == event.correlation }
      ?? open.firstIndex { $0.name == name }
    guard let place else { return nextCall(of: peer) }
    waiting[peer]?.remove(at: place)
    return open[place].id
  }

  /// Records that the reports lack a part, and why.
  package func report(missing what: String, _ reason: String) {
    summary.notes.append(reason)
    step(.notSeen(what: what, reason: reason))
  }

  /// Completes the take; waits for the disk.
  package func finish() throws(TapeError) -> ReportedImport.Summary {
    let written = try writer.finish()
    (summary.steps, summary.bytes) = (written.steps, written.bytes)
    return summary
  }

  private func step(_ input: ReportedInput) {
    steps += 1
    machine.step(input, at: now, into: &outbox)
    writer.record(
      StepRecord(
        actor: actor, at: now, input: input, outputs: OutputList(outbox.drain()), deadline: nil,
        entropyDrawn: 0))
  }
}
