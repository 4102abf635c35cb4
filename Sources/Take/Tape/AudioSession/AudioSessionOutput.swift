package import AudioSession
import Media
import Peer
import Stats
package import Wire

/// An audio session as a machine that can be recorded and replayed.
package final class RecordedAudioSession: RecordedMachine {
  package static var machineKind: MachineKind { .audioSession }
  package static func decoder(_ contents: ContentSource) -> AudioSessionDecoder {
    AudioSessionDecoder(contents)
  }

  private var machine = AudioSessionMachine()

  /// Creates a session; its first input must be its genesis.
  package init() {}

  package var deadline: Instant? { machine.deadline }
  package var machineSnapshot: (any MachineSnapshot)? { machine.snapshot }
  /// The format in which the device plays; nil if it cannot play.
  package var renderFormat: AudioFormat? { machine.renderFormat }
  package var snapshot: AudioSessionSnapshot { machine.snapshot }

  package func step(
    _ input: AudioSessionAction, at now: Instant, into outbox: inout Outbox<AudioSessionEffect>
  ) {
    machine.step(input, at: now, into: &outbox)
  }
}

extension AudioSessionSnapshot: MachineSnapshot {}

extension AudioSessionEffect: RecordedOutput {
  package var byteCount: Int {
    switch self {
    case .captured(let captured): 2 * captured.block.samples.count
    case .played(let played): 2 * played.block.samples.count
    default: 0
    }
  }

  package func write(to transcript: inout Transcript) {
    switch self {
    case .operation(let id, let operation):
      let detail = JSONText.object(
        [("id", .integer(Int64(id))), ("operation", .text(operation.name))] + operation.members)
      transcript.add(EventRow(type: "operation", detail: detail.text))
    case .reply(let call, let reply): transcript.add(reply.row(call))
    case .event(let event):
      transcript.add(EventRow(type: event.name, detail: JSONText.object(event.members).text))
    case .state(let machine, let from, let to):
      transcript.add(StateRow(machine: machine, from: from, to: to))
    case .captured(let captured): transcript.append(captured)
    case .played(let played): transcript.append(played)
    // Only the caller receives a delivery's result; the take has the source's state changes.
    case .delivered: break
    }
  }
}

extension AudioSessionReply {
  fileprivate func row(_ call: UInt32) -> CallReplyRow {
    switch self {
    case .done: CallReplyRow(call: call)
    case .failed(let error): CallReplyRow(call: call, error: error.description)
    case .counters(let counters):
      CallReplyRow(call: call, reply: CanonicalJSON.text(counters))
    }
  }
}

// Blocks of the device become `frame` rows without encoded bytes.
extension Transcript {
  fileprivate mutating func append(_ captured: CapturedBlock) {
    let outcome = captured.sources == 0 ? "filler" : captured.sources == 1 ? "captured" : "mixed"
    let (peak, energy) = captured.block.loudness
    add(
      FrameRow(
        at: at,
        format: format(of: .device(outcome, captured.block)),
        rtpTime: .unit(captured.index),
        peak: peak, energy: energy, digest: digest(of: .audio(captured.block))))
  }

  fileprivate mutating func append(_ played: RenderedAudio) {
    let outcome = played.tracks == 0 ? "silence" : "played"
    // A replay does not have the received samples, so no digest of them is recorded.
    add(
      FrameRow(
        at: at,
        format: format(of: .device(outcome, played.block)),
        rtpTime: .unit(played.index)))
  }
}

extension WireNumber<UInt32> {
  /// Returns the RTP time of a 10 ms block, with a clock of 48 kHz.
  fileprivate static func unit(_ index: UInt64) -> WireNumber<UInt32> {
    WireNumber(number: UInt32(truncatingIfNeeded: index) &* UInt32(AudioBlock.sampleRate / 100))
  }
}

extension FormatRow {
  /// Returns the format of recorded or played blocks; both count as inbound, because nothing is
  /// encoded here.
  fileprivate static func device(_ outcome: String, _ block: AudioBlock) -> FormatRow {
    FormatRow(
      kind: "pcm", direction: .inbound, codec: "pcm", outcome: outcome,
      channels: block.channels, samples: block.frameCount)
  }
}

extension AudioBlock {
  /// The highest magnitude in any channel, and the sum of the first channel's squared samples.
  fileprivate var loudness: (peak: UInt16, energy: UInt64) {
    var (peak, energy) = (0, 0)
    samples.withUnsafeBufferPointer { samples in
      for index in 0..<samples.count {
        let value = Int(samples[index])
        if value > peak { peak = value } else if -value > peak { peak = -value }
        if index % channels == 0 { energy += value * value }
      }
    }
    return (UInt16(peak), UInt64(energy))
  }
}

// MARK: Names

extension AudioDeviceOperation {
  fileprivate var members: [(String, JSONText?)] {
    switch self {
    case .setCategory(let category, let options):
      [("category", .text(category.rawValue)), ("options", .text(options.names))]
    case .setMode(let mode): [("mode", .text(mode.rawValue))]
    case .overridePort(let port): [("port", .text(port.rawValue))]
    case .setActive(let isActive): [("active", .flag(isActive))]
    case .setPreferredSampleRate(let rate): [("sampleRate", .integer(Int64(rate)))]
    case .setPreferredIOBuffer(let milliseconds):
      [("milliseconds", .integer(Int64(milliseconds)))]
    case .setPreferredChannels(let input, let output):
      [("input", .integer(Int64(input))), ("output", .integer(Int64(output)))]
    case .setIOType(let type): [("type", .text(type.rawValue))]
    case .setProcessing(let profile): [("profile", .text("\(profile)"))]
    case .initializeUnit(let capture, let render):
      [
        ("capture", capture.map { .text($0.text) }), ("render", render.map { .text($0.text) }),
      ]
    default: []
    }
  }
}

extension AudioSessionOptions {
  /// The names of the enabled options, separated by spaces.
  fileprivate var names: String {
    let known: [(AudioSessionOptions, String)] = [
      (.mixWithOthers, "mixWithOthers"), (.duckOthers, "duckOthers"),
      (.allowBluetooth, "allowBluetooth"), (.defaultToSpeaker, "defaultToSpeaker"),
      (.allowBluetoothA2DP, "allowBluetoothA2DP"), (.allowAirPlay, "allowAirPlay"),
    ]
    return known.filter { contains($0.0) }.map(\.1).joined(separator: " ")
  }
}

extension AudioSessionEvent {
  fileprivate var members: [(String, JSONText?)] {
    switch self {
    case .didEndInterruption(let shouldResume):
      [("shouldResumeSession", .flag(shouldResume))]
    case .didChangeRoute(let reason, _, _): [("reason", .text(reason.rawValue))]
    case .didChangeCanPlayOrRecord(let can): [("canPlayOrRecord", .flag(can))]
    case .willSetActive(let isActive), .didSetActive(let isActive):
      [("active", .flag(isActive))]
    case .failedToSetActive(let isActive, let code):
      [("active", .flag(isActive)), ("code", .integer(Int64(code)))]
    case .operationFailed(let operation, let code):
      [("operation", .text(operation.name)), ("code", .integer(Int64(code)))]
    case .sourceStarved(let id): id.members
    case .sourceResumed(let id, let blocks):
      id.members + [("silentBlocks", .integer(Int64(blocks)))]
    case .sourceFormatChanged(let id, let from, let to, let lost):
      id.members + [
        ("from", .text(from.text)), ("to", .text(to.text)),
        ("lostFrames", .integer(Int64(lost))),
      ]
    case .sourceRefused(let id, let reason): id.members + [("reason", .text(reason))]
    default: []
    }
  }
}

extension AudioSourceID {
  fileprivate var members: [(String, JSONText?)] {
    [("source", .integer(Int64(number))), ("tag", .text(tag.rawValue))]
  }
}
