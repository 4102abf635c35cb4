import Media
import RTP
package import Tape

/// What must come from the recording to replay a take that was made with other libraries.
package struct Substitution: Hashable, Sendable {
  /// Whether recorded frames replace the codecs.
  package var skipsCodecs = false
  /// The parts of DTLS and SRTP that come from the recording.
  package var security: RecordedSecurity.Parts = []
  /// Whether a replay can run the stack; if not, it only checks digests.
  package var isReplayable = true
  /// Explanations of the substitutions, for the user.
  package var notes: [String] = []

  package init() {}

  /// Finds what to substitute, by comparing a take's toolchain with this one.
  ///
  /// A different CPU alone requires no substitution, because codecs usually produce the same
  /// results on it; `standingIn` handles the exceptions.
  ///
  /// - Throws: an error if the take cannot be read.
  package init(of path: String, _ header: TakeHeader, by toolchain: Toolchain) throws(TapeError) {
    try self.init(
      of: path, header,
      parts: toolchain.differences(from: header.toolchain).map(\.part).filter { $0 != "cpu" })
  }

  /// Returns a copy in which recorded frames also replace the codecs; nil if codecs on this CPU
  /// cannot be the cause of the divergence, or if the take has no frames.
  package func standingIn(
    for divergence: Divergence, in path: String, _ header: TakeHeader, by toolchain: Toolchain
  ) -> Substitution? {
    let parts = toolchain.differences(from: header.toolchain).map(\.part)
    guard parts.contains("cpu"), !skipsCodecs, header.keepsMedia else { return nil }
    let libraries = Substitution.codecLibraries(path, step: divergence.step)
    guard !libraries.isEmpty else { return nil }
    var changed = self
    changed.skipsCodecs = true
    changed.notes.append(
      "\(libraries.joined(separator: " or ")) gives different results on this processor at step "
        + "\(divergence.step): the recorded frames are used instead of the codecs")
    return changed
  }

  /// Returns the codec libraries that encoded or decoded the frames of a step.
  private static func codecLibraries(_ path: String, step: Int) -> [String] {
    var libraries: [String] = []
    guard let connection = try? TakeFile.open(path),
      let rows = try? connection.prepare(
        "SELECT DISTINCT codec FROM frame WHERE step = ? ORDER BY codec")
    else { return [] }
    rows.bind(Int64(step), at: 1)
    while (try? rows.step()) == true {
      switch rows.text(0)?.lowercased() {
      case "opus": libraries.append("opus")
      case "vp8", "vp9": libraries.append("vpx")
      case "h264": libraries.append("openh264")
      case "av1": libraries.append("dav1d")
      default: break
      }
    }
    return libraries
  }

  /// Substitutes every library whose results the take contains; throws if the take cannot be read.
  package init(all path: String, _ header: TakeHeader) throws(TapeError) {
    try self.init(of: path, header, parts: ["openssl", "srtp", "opus", "vpx", "openh264", "dav1d"])
  }

  /// Substitutes libraries because a user asked for it: the libraries that differ, or all if none
  /// differs; throws if that is impossible.
  package init(asked path: String, _ header: TakeHeader, by toolchain: Toolchain)
    throws(TapeError)
  {
    let parts = toolchain.differences(from: header.toolchain).map(\.part)
    if parts.isEmpty {
      try self.init(all: path, header)
    } else {
      try self.init(of: path, header, parts: parts)
    }
    guard isReplayable else {
      throw TapeError(
        path: path, place: "",
        reason: "its libraries cannot be substituted: " + notes.joined(separator: "; "))
    }
  }

  private init(of path: String, _ header: TakeHeader, parts: [String]) throws(TapeError) {
    if let redacted = header.redacted {
      guard !redacted.isFactsOnly else {
        isReplayable = false
        notes.append("redacted: only its digests are checked")
        return
      }
      skipsCodecs = redacted.parts.contains(.media)
      security = redacted.security
      notes.append(redacted.sentence)
    }
    guard !parts.isEmpty else { return }
    let names = parts.joined(separator: ", ")
    // The CPU's features affect only codecs.
    if parts.contains(where: { ["opus", "vpx", "openh264", "dav1d", "cpu"].contains($0) }) {
      isReplayable = header.keepsMedia
      skipsCodecs = skipsCodecs || header.keepsMedia
      if header.keepsMedia {
        notes.append(
          "made with another \(names): its recorded frames are used instead of the codecs")
      } else {
        notes.append("made with another \(names) and without media: only its digests are checked")
        return
      }
    }
    if parts.contains("openssl") {
      guard try Substitution.hasKeyLog(path) else {
        isReplayable = false
        notes.append(
          "made with another \(names) and without a key log: only its digests are checked")
        return
      }
      security.insert(.dtls)
      notes.append(
        "made with another openssl: its key log and handshake flights are used instead of DTLS")
    }
    if parts.contains("srtp") {
      security.insert(.srtp)
      notes.append("made with another srtp: its packets are used where their contents are the same")
    }
  }

  /// Returns whether a take has the secrets of its DTLS associations, which old takes lack, or has
  /// no associations.
  private static func hasKeyLog(_ path: String) throws(TapeError) -> Bool {
    let connection = try TakeFile.open(path)
    do throws(SQLiteError) {
      return try connection.integer(
        """
        SELECT NOT EXISTS (SELECT 1 FROM event WHERE type = 'secured')
          OR EXISTS (SELECT 1 FROM event WHERE type = 'keylog')
        """) == 1
    } catch {
      throw TapeError(path: path, place: "event", error)
    }
  }
}

extension Redaction {
  /// The parts of DTLS and SRTP that must come from the recording, since redaction removed
  /// certificates and seeds.
  var security: RecordedSecurity.Parts { parts.contains(.keys) ? [.dtls] : [] }
}

// MARK: - ScriptedCodecs

/// Codecs that return recorded results.
///
/// Encoders return the recorded frames. Decoders return blank media with the recorded size, level
/// and quantizer.
final class ScriptedCodecs: CodecFactory {
  private let peer: UInt32
  private let script: FrameScript

  init(peer: UInt32, script: FrameScript) {
    self.peer = peer
    self.script = script
  }

  /// Returns the queue of a track, whose name is its transceiver's number.
  private func line(_ track: String, isInbound: Bool) throws(CodecError) -> FrameScript.Line {
    guard let transceiver = UInt32(track) else {
      throw CodecError(reason: "no recorded frames for track \(track)")
    }
    return script.line(
      of: FrameScript.Voice(peer: peer, track: transceiver, isInbound: isInbound))
  }

  func audioEncoder(track: String, _ settings: OpusSettings) throws(CodecError)
    -> any AudioEncoding
  {
    ScriptedAudioEncoder(script, try line(track, isInbound: false))
  }

  func audioDecoder(track: String, _ codec: CodecName, channels: Int) throws(CodecError)
    -> any AudioDecoding
  {
    ScriptedAudioDecoder(script, try line(track, isInbound: true), channels: channels)
  }

  func videoEncoder(track: String, _ settings: VideoSettings) throws(CodecError)
    -> any VideoEncoding
  {
    ScriptedVideoEncoder(script, try line(track, isInbound: false))
  }

  func videoDecoder(track: String, _ codec: CodecName) throws(CodecError)
    -> any VideoDecoding
  {
    ScriptedVideoDecoder(script, try line(track, isInbound: true))
  }
}

private final class ScriptedAudioEncoder: AudioEncoding {
  private let script: FrameScript
  private let line: FrameScript.Line

  init(_ script: FrameScript, _ line: FrameScript.Line) {
    self.script = script
    self.line = line
  }

  var wantsSamples: Bool { false }

  func encode(_ block: AudioBlock) throws(CodecError) -> EncodedAudio {
    // The encoder returned nothing for this block, because of discontinuous transmission (DTX).
    guard let entry = script.encoded(line) else {
      return EncodedAudio(bytes: [], isVoice: false, level: 127)
    }
    return EncodedAudio(
      bytes: entry.bytes ?? [], isVoice: entry.format.isVoice, level: entry.audioLevel ?? 127,
      peak: entry.peak, energy: entry.energy)
  }

  func setPacketLoss(percent: Int32) {}
}

private final class ScriptedAudioDecoder: AudioDecoding {
  private let script: FrameScript
  private let line: FrameScript.Line
  private let channels: Int

  init(_ script: FrameScript, _ line: FrameScript.Line, channels: Int) {
    self.script = script
    self.line = line
    self.channels = max(1, channels)
  }

  func decode(_ request: AudioDecodeRequest) throws(CodecError) -> DecodedAudio {
    var frameCount = AudioBlock.sampleRate / 50
    let entry: FrameScript.Entry?
    switch request {
    case .payload(let bytes):
      entry = script.decoded(line) { $0.format.outcome != "recovered" && $0.holds(bytes) }
    case .recoverPrevious(_, let count):
      frameCount = count
      entry = script.decoded(line) { $0.format.outcome == "recovered" }
    case .conceal(let count):
      frameCount = count
      entry = script.decoded(line) { $0.format.outcome == "concealed" }
    }
    guard let entry else {
      return DecodedAudio(
        block: AudioBlock(blank: frameCount, channels: channels), peak: 0, energy: 0)
    }
    if entry.format.outcome == "undecodable" {
      throw CodecError(reason: "undecodable in the recording")
    }
    let block = AudioBlock(blank: entry.format.samples, channels: max(1, entry.format.channels))
    return DecodedAudio(block: block, peak: entry.peak, energy: entry.energy)
  }
}

private final class ScriptedVideoEncoder: VideoEncoding {
  private let script: FrameScript
  private let line: FrameScript.Line

  init(_ script: FrameScript, _ line: FrameScript.Line) {
    self.script = script
    self.line = line
  }

  var wantsPixels: Bool { false }

  func encode(_ videoFrame: I420Buffer, mediaTime: UInt32, forceKey: Bool) throws(CodecError)
    -> EncodedVideo?
  {
    script.encoded(line).map {
      EncodedVideo(bytes: $0.bytes ?? [], isKey: $0.format.isKey, quantiser: $0.quantiser)
    }
  }

  func setBitrate(_ bitsPerSecond: UInt64) {}
}

private final class ScriptedVideoDecoder: VideoDecoding {
  private let script: FrameScript
  private let line: FrameScript.Line
  private var lastSize = (width: 0, height: 0)

  init(_ script: FrameScript, _ line: FrameScript.Line) {
    self.script = script
    self.line = line
  }

  func decode(_ bytes: [UInt8]) throws(CodecError) -> DecodedVideo {
    // A frame without a row was decoded but never shown; it gets the size of the last frame.
    guard let entry = script.decoded(line, where: { $0.holds(bytes) }) else {
      return DecodedVideo(
        videoFrame: I420Buffer(width: lastSize.width, height: lastSize.height, samples: []),
        quantiser: 0)
    }
    if entry.format.outcome == "undecodable" {
      throw CodecError(reason: "undecodable in the recording")
    }
    lastSize = (entry.format.width, entry.format.height)
    return DecodedVideo(
      videoFrame: I420Buffer(width: entry.format.width, height: entry.format.height, samples: []),
      quantiser: entry.quantiser)
  }
}
