import Observer
import Wire

/// The candidate pairs of a connection, as its stats report them.
struct ReportedPairs {
  private struct Known: Hashable {
    var number: UInt32
    var state: String
    var isNominated: Bool
    var isSelected: Bool
  }

  private var known: [String: Known] = [:]

  mutating func sample(_ objects: ReportedObjects, _ emit: ReportedPeer.Emit) {
    let selected = objects.all("transport").compactMap { $0["selectedCandidatePairId"]?.text }
    let pairs = objects.all("candidate-pair")
    for pair in pairs {
      let isSelected = selected.contains(pair.id) || pair.flag("selected") == true
      let number = known[pair.id]?.number ?? UInt32(known.count + 1)
      let now = Known(
        number: number, state: pair["state"]?.text ?? "",
        isNominated: pair.flag("nominated") ?? isSelected, isSelected: isSelected)
      guard known[pair.id] != now,
        known[pair.id] != nil || known.count < ReportedPeer.most
      else { continue }
      known[pair.id] = now
      emit(.pair(row(pair, now, objects)))
    }
  }

  private func row(
    _ pair: ReportedObject, _ now: Known, _ objects: ReportedObjects
  ) -> CandidatePairRow {
    func end(_ name: String, _ legacy: String) -> (address: String, type: String) {
      guard let object = pair[name]?.text.flatMap({ objects[$0] }) else {
        return (pair[legacy]?.text ?? "", "")
      }
      guard let row = CandidateRow(object) else {
        // Browsers hide addresses in their local network.
        let type = CandidateRow.types[object["candidateType"]?.text ?? ""] ?? ""
        return ("hidden:\(object.count("port"))", type)
      }
      let address = row.address.contains(":") ? "[\(row.address)]" : row.address
      return ("\(address):\(row.port)", row.candidateType)
    }
    let local = end("localCandidateId", "googLocalAddress")
    let remote = end("remoteCandidateId", "googRemoteAddress")
    var row = CandidatePairRow(
      pair: now.number, local: local.address, remote: remote.address, base: local.address)
    (row.localType, row.remoteType) = (local.type, remote.type)
    (row.state, row.nominated, row.selected) = (now.state, now.isNominated, now.isSelected)
    row.priority = pair.count("priority")
    row.requestsSent = pair.count("requestsSent")
    row.requestsReceived = pair.count("requestsReceived")
    row.responsesSent = pair.count("responsesSent")
    row.responsesReceived = pair.count("responsesReceived")
    row.consentRequestsSent = pair.count("consentRequestsSent")
    row.currentRoundTrip = pair.number("currentRoundTripTime")
    row.totalRoundTrip = pair.number("totalRoundTripTime") ?? 0
    return row
  }
}

/// The tracks of a connection, as its stats report them, with levels and speech.
struct ReportedMedia {
  private struct Track: Hashable {
    var number: UInt32
    var codec: String
    var payloadType: UInt8
  }

  /// The counters of a stream's audio in the last report.
  private struct Audio {
    var at: Instant
    var energy: Double?
    var seconds: Double?
    /// The speech that has not ended; nil during silence.
    var speech: (from: Instant, blocks: Int, decibels: Int)?
  }

  private var numbers: [String: UInt32] = [:]
  private var tracks: [String: Track] = [:]
  private var audio: [String: Audio] = [:]

  mutating func sample(_ objects: ReportedObjects, _ at: Instant, _ emit: ReportedPeer.Emit) {
    for stream in objects.all("outbound-rtp") { add(stream, objects, isInbound: false, emit) }
    for stream in objects.all("inbound-rtp") {
      add(stream, objects, isInbound: true, emit)
      if kind(of: stream) == "audio" { observe(stream, stream, isInbound: true, at, emit) }
    }
    for stream in objects.all("outbound-rtp") where kind(of: stream) == "audio" {
      let source = stream["mediaSourceId"]?.text.flatMap { objects[$0] }
      // Older reports have no source objects; the stream itself then has the level.
      if let source = source ?? (stream["audioLevel"] == nil ? nil : stream) {
        observe(source, stream, isInbound: false, at, emit)
      }
    }
  }

  private func kind(of stream: ReportedObject) -> String {
    if let kind = stream["kind"]?.text { return kind }
    if stream["audioLevel"] != nil || stream["totalAudioEnergy"] != nil { return "audio" }
    return stream["frameWidth"] == nil && stream["framesPerSecond"] == nil ? "" : "video"
  }

  // MARK: Tracks

  /// Returns the number of a stream's track, which all streams of an m-section share.
  private mutating func number(of stream: ReportedObject) -> UInt32 {
    let name = stream["mid"]?.text.map { "mid \($0)" } ?? stream.id
    if let number = numbers[name] { return number }
    guard numbers.count < ReportedPeer.most else { return 0 }
    let number = UInt32(numbers.count + 1)
    numbers[name] = number
    return number
  }

  /// Returns the number of an m-section's track; nil if it is unknown.
  func track(mid: String) -> UInt32? { numbers["mid \(mid)"] }

  /// Assigns a number to the track of an m-section that no report has mentioned yet.
  mutating func add(mid: String) {
    let name = "mid \(mid)"
    guard numbers[name] == nil, numbers.count < ReportedPeer.most else { return }
    numbers[name] = UInt32(numbers.count + 1)
  }

  private mutating func add(
    _ stream: ReportedObject, _ objects: ReportedObjects, isInbound: Bool,
    _ emit: ReportedPeer.Emit
  ) {
    guard let ssrc = stream.number("ssrc").flatMap({ UInt32(exactly: $0) }) else { return }
    let codec = stream["codecId"]?.text.flatMap { objects[$0] }
    let name = codec?["mimeType"]?.text?.split(separator: "/").last ?? ""
    let track = Track(
      number: number(of: stream),
      codec: (name.isEmpty ? stream["googCodecName"]?.text ?? "" : String(name)).lowercased(),
      payloadType: codec?.number("payloadType").flatMap { UInt8(exactly: $0) } ?? 0)
    guard tracks[stream.id] != track,
      tracks[stream.id] != nil || tracks.count < ReportedPeer.most
    else { return }
    tracks[stream.id] = track
    var row = TrackRow(
      track: track.number, mid: stream["mid"]?.text ?? "", kind: kind(of: stream),
      direction: Direction(isInbound: isInbound), ssrc: ssrc, codec: track.codec)
    row.payloadType = track.payloadType
    row.clockRate = codec?.number("clockRate").flatMap { UInt32(exactly: $0) } ?? 0
    emit(.track(row))
  }

  // MARK: Levels

  /// Computes the mean level of a stream since the last report, and detects speech.
  ///
  /// - Parameter source: the stats object that has the level, which may be the stream itself.
  private mutating func observe(
    _ source: ReportedObject, _ stream: ReportedObject, isInbound: Bool, _ at: Instant,
    _ emit: ReportedPeer.Emit
  ) {
    let energy = source.number("totalAudioEnergy")
    let seconds = source.number("totalSamplesDuration")
    guard let before = audio[stream.id] else {
      if audio.count < ReportedPeer.most {
        audio[stream.id] = Audio(at: at, energy: energy, seconds: seconds)
      }
      return
    }
    var now = Audio(at: at, energy: energy, seconds: seconds, speech: before.speech)
    let passed = (at - before.at).seconds
    guard passed > 0, passed <= 60 else { return }
    var power: Double?
    var length = passed
    if let energy, let seconds, let energyBefore = before.energy, let first = before.seconds {
      let growth = seconds - first
      // The energy divided by the duration is the mean square of the samples (W3C).
      if growth > 0.001, growth <= 60 {
        power = max(0, energy - energyBefore) / growth
        length = growth
      }
    } else if let level = source.number("audioLevel") {
      power = level * level
    }
    if let power {
      let track = number(of: stream)
      add(level: min(power, 1), length, source, track, isInbound, emit)
      follow(&now, min(power, 1), from: before.at, to: at, track, isInbound, emit)
    }
    audio[stream.id] = now
  }

  private func add(
    level power: Double, _ seconds: Double, _ source: ReportedObject, _ track: UInt32,
    _ isInbound: Bool, _ emit: ReportedPeer.Emit
  ) {
    let samples = Int64((seconds * 48_000).rounded())
    guard samples > 0 else { return }
    let peak = UInt16(max(0, min(32_767, ((source.number("audioLevel") ?? 0) * 32_767).rounded())))
    var row = LevelRow(track: track, direction: Direction(isInbound: isInbound))
    row.energy = UInt64((power * 1_073_741_824 * Double(samples)).rounded())
    row.samples = samples
    (row.peak, row.meter) = (peak, peak)
    row.isVoice = power >= Self.speechPower
    emit(.level(row))
  }

  /// The power at -47 dBov; the `speaker` view counts audio from this level on as speech.
  private static let speechPower = 1.995e-5

  private func follow(
    _ audio: inout Audio, _ power: Double, from: Instant, to: Instant, _ track: UInt32,
    _ isInbound: Bool, _ emit: ReportedPeer.Emit
  ) {
    let blocks = max(1, Int(((to - from).seconds * 50).rounded()))
    var row = SpeechRow(track: track, direction: Direction(isInbound: isInbound))
    if power >= Self.speechPower {
      let isNew = audio.speech == nil
      var speech = audio.speech ?? (from, 0, 0)
      speech.blocks += blocks
      speech.decibels += blocks * Self.decibels(power)
      audio.speech = speech
      row.phase = isNew ? "began" : "lasts"
      (row.from, row.to) = (speech.from, to)
      (row.blocks, row.decibels) = (speech.blocks, speech.decibels)
      emit(.speech(row))
    } else if let speech = audio.speech {
      audio.speech = nil
      row.phase = "ended"
      (row.from, row.to) = (speech.from, from)
      (row.blocks, row.decibels) = (speech.blocks, speech.decibels)
      emit(.speech(row))
    }
  }

  /// Converts a power of at most 1 to whole dBov.
  ///
  /// It multiplies and compares with a table instead of using a logarithm: the result of a
  /// logarithm may depend on the C library, and a replay must not.
  private static func decibels(_ power: Double) -> Int {
    var (rest, decibels) = (power, 0)
    while rest < 0.1, decibels > -120 { (rest, decibels) = (rest * 10, decibels - 10) }
    let steps = [0.8913, 0.7079, 0.5623, 0.4467, 0.3548, 0.2818, 0.2239, 0.1778, 0.1413, 0.1122]
    return decibels - steps.count { rest < $0 }
  }
}
