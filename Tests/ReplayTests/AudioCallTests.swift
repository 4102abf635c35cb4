import AudioSession
import Foundation
import Lab
import Media
import Tape
import Testing
import Wire

/// Two minutes of a call in virtual time whose device fails every five seconds.
struct AudioCallTests {
  /// What happens, one after the other.
  private enum Fault: CaseIterable {
    case starvation, interruption, mute, headset, refusedMode, unannouncedRate
    case interruptionWithoutResumption, serverLost
  }

  /// 60 ms, as the session asks for.
  private static let frames = 2_880

  private func play(_ session: VirtualAudioSession) {
    let chunks = (0..<10).map { Microphone.chunk($0, frames: Self.frames) }
    let received = AudioBlock(blank: Self.frames, channels: 1)
    session.call(.openConnection(1, sends: true, receives: true))
    var rate = 48_000
    var starves = 0
    for period in 0..<2_000 {
      if period % 83 == 82 {
        let fault = Fault.allCases[period / 83 % Fault.allCases.count]
        begin(fault, session, &rate, &starves)
      }
      if period % 83 == 7 { end(period, session, &rate) }
      if starves > 0 {
        starves -= 1
      } else if rate == 48_000 {
        session.deliver(chunks[period % 10], from: .unit)
      } else {
        session.deliver(
          Microphone.chunk(period % 10, frames: rate * 6 / 100, rate: rate), from: .unit)
      }
      session.receive(received, on: 1)
      session.pull(6)
      session.wait(.milliseconds(60))
    }
    session.call(.closeConnection(1))
    session.call(.readCounters)
  }

  private func begin(
    _ fault: Fault, _ session: VirtualAudioSession, _ rate: inout Int, _ starves: inout Int
  ) {
    switch fault {
    case .starvation: starves = 3
    case .interruption, .interruptionWithoutResumption: session.take(.interruptionBegan)
    case .mute: session.call(.pauseRecording)
    case .headset:
      rate = 16_000
      session.take(.routeChanged(.newDeviceAvailable, route("headset", rate)))
    case .refusedMode:
      session.failures = ["setMode": -50]
      session.call(.applyMode(.videoChat, options: .modeDefaults))
      session.failures = [:]
      session.call(.applyMode(.voiceChat(output: .speaker), options: .modeDefaults))
    case .unannouncedRate: rate = 8_000
    case .serverLost: session.take(.mediaServerTerminated)
    }
  }

  /// What ends half a second after it began.
  private func end(_ period: Int, _ session: VirtualAudioSession, _ rate: inout Int) {
    guard period > 83 else { return }
    switch Fault.allCases[(period / 83 - 1) % Fault.allCases.count] {
    case .interruption: session.take(.interruptionEnded(shouldResume: true))
    case .interruptionWithoutResumption: session.take(.interruptionEnded(shouldResume: false))
    case .mute: session.call(.resumeRecording)
    case .headset, .unannouncedRate:
      rate = 48_000
      session.take(.routeChanged(.oldDeviceUnavailable, route("microphone", rate)))
    case .serverLost: session.take(.mediaServerReset)
    case .starvation, .refusedMode: break
    }
  }

  private func route(_ name: String, _ rate: Int) -> AudioRoute {
    let format = AudioFormat(sampleRate: rate)
    return AudioRoute(
      input: name, output: name == "microphone" ? "receiver" : name, captureFormat: format,
      renderFormat: format)
  }

  /// From one fault to the same one again, in milliseconds.
  private static let cycle = 83 * 60 * Fault.allCases.count

  /// What is told from a moment on for one cycle: times from then on, and operations without their
  /// numbers.
  private func cycle(_ number: Int, of told: [String]) -> String {
    told.compactMap { line -> String? in
      guard let space = line.firstIndex(of: " "), let at = Int(line[..<space]) else { return nil }
      let time = at - 4_900 - number * Self.cycle
      guard (0..<Self.cycle).contains(time) else { return nil }
      let text = line[space...].replacing(#/"id":\d+,/#, with: "")
        .replacing(#/call \d+ /#, with: "call ")
      return "\(time)\(text)"
    }.joined(separator: "\n")
  }

  @Test func twoMinutesOfFaultsReplayAndAreTold() throws {
    let scenario = try AudioScenario { play($0) }
    try scenario.expectIdentical()
    let told = try scenario.timeline(["state", "event", "api"])
    let end = told.filter { $0.hasPrefix("120000 ") }
    #expect(end == AudioCallTimeline.end)
    for number in 0..<3 {
      #expect(cycle(number, of: told.dropLast(end.count)) == AudioCallTimeline.cycle)
    }
    let take = try TakeFile.openForQueries(scenario.path)
    #expect(try take.integer("SELECT max(at_ns) FROM capture") == 119_940_000_000)
  }
}
