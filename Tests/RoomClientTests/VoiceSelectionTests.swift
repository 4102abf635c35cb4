import Media
import RTP
import Synchronization
import Testing
import Wire

@testable import RoomClient

/// Tests which speakers a listener hears, in virtual time and in decoded samples.
struct VoiceSelectionTests {
  private static let block = Interval.milliseconds(20)

  /// Runs the selection over scripted voices; `spans` states when each of them speaks, in
  /// milliseconds.
  ///
  /// - Returns: the holders of the slots after each block of 20 ms.
  private func holders(
    _ spans: [[Range<Int>]], count: Int, milliseconds: Int, level: (Int) -> Int = { _ in -20 }
  ) -> [[UInt32]] {
    var selection = VoiceSelection(count: count)
    return stride(from: 0, to: milliseconds, by: 20).map { now in
      for (voice, spans) in spans.enumerated() {
        let speaks = spans.contains { $0.contains(now) }
        _ = selection.observe(
          speaks ? level(voice) : -127, of: UInt32(voice),
          at: Instant.zero + Interval.milliseconds(Int64(now)))
      }
      return selection.holders
    }
  }

  @Test func fourOfEightAlternatingVoicesAreSelectedWithin300Milliseconds() {
    // Each of the eight participants speaks for 800 ms, and the next one starts after 200 ms, so
    // four speak at a time.
    let spans = (0..<8).map { voice in [voice * 200..<voice * 200 + 800] }
    let heard = holders(spans, count: 4, milliseconds: 2_400)
    #expect(heard.allSatisfy { $0.count <= 4 })
    for (voice, span) in spans.enumerated() {
      let began = span[0].lowerBound
      let first = heard.firstIndex { $0.contains(UInt32(voice)) }.map { $0 * 20 }
      #expect((first ?? .max) - began <= 300, "\(voice): \(first ?? -1) instead of \(began)")
      // The speaker keeps its slot until it falls silent.
      for place in ((first ?? 0) / 20)..<(span[0].upperBound / 20) {
        #expect(heard[place].contains(UInt32(voice)))
      }
    }
  }

  @Test func theLoudestAreSelectedAndEquallyLoudOnesDoNotAlternate() {
    let all = Array(repeating: [0..<4_000], count: 5)
    let equal = holders(all, count: 4, milliseconds: 4_000) { $0 == 4 ? -17 : -20 }
    #expect(Set(equal.dropFirst(5)).count == 1 && equal.last == [0, 1, 2, 3])
    let louder = holders(all, count: 4, milliseconds: 4_000) { $0 == 4 ? -10 : -20 }
    #expect(louder.last?.contains(4) == true)
  }

  @Test func pausesBetweenWordsAndKnocksCostNoSlot() {
    // Four participants speak with pauses of 100 ms; the fifth now and then makes a noise of one
    // block.
    let words = stride(from: 0, to: 4_000, by: 500).map { $0..<$0 + 400 }
    let knocks = stride(from: 610, to: 4_000, by: 700).map { $0..<$0 + 20 }
    let heard = holders(
      Array(repeating: words, count: 4) + [knocks], count: 4, milliseconds: 4_000)
    #expect(heard.dropFirst(5).allSatisfy { $0 == [0, 1, 2, 3] })
  }

  @Test func anAlwaysOnVoiceUsesNoSlotAndALeaverFreesIts() {
    let told = Mutex<[[UInt32]]>([])
    let gate = VoiceGate(count: 1) { holders in told.withLock { $0.append(holders) } }
    gate.setVoices([(1, true), (2, false), (3, false)])
    let block = AudioBlock(samples: Array(repeating: 1_000, count: 960), channels: 1)
    func pass(_ media: UInt32, _ level: UInt8, at milliseconds: Int64) -> AudioBlock? {
      gate.pass(
        block, level: level, of: media, at: Instant.zero + Interval.milliseconds(milliseconds))
    }
    for now: Int64 in stride(from: 0, to: 200, by: 20) {
      _ = (pass(1, 10, at: now), pass(2, 20, at: now), pass(3, 20, at: now))
    }
    #expect(told.withLock { $0 } == [[2]])
    #expect(pass(1, 10, at: 200) == block && pass(2, 20, at: 200) == block)
    #expect(pass(3, 20, at: 200) == nil)
    gate.setVoices([(1, true), (3, false)])
    #expect(told.withLock { $0.last } == [])
    _ = (pass(3, 20, at: 220), pass(3, 20, at: 240))
    #expect(told.withLock { $0.last } == [3])
  }

  @Test func noListenerGetsMoreThanNoneWhereNoVoiceIsWanted() {
    let heard = holders([[0..<1_000]], count: 0, milliseconds: 1_000)
    #expect(heard.allSatisfy { $0.isEmpty })
  }

  /// Returns the largest step between two samples of a received tone, coded with Opus.
  private func largestStep(opens: (Int) -> Bool) throws -> Int {
    let codecs = LibraryCodecs()
    let encoder = try codecs.audioEncoder(track: "a", OpusSettings())
    let decoder = try codecs.audioDecoder(track: "a", channels: 1)
    let tone = ToneGenerator(hertz: 440, pauseSeconds: 0)
    var fader = VoiceFader()
    var played: [Int16] = []
    for number in 0..<400 {
      let block = tone.block(at: Int64(number) * 960, frameCount: 960, channels: 1)
      if let passed = fader.pass(block, isOpen: opens(number)) {
        let bytes = try encoder.encode(passed).bytes
        played += try decoder.decode(
          bytes.count > 2 ? .payload(bytes) : .conceal(frameCount: 960)
        ).block.samples
      } else {
        // In a pause, the playout conceals for a while and then plays silence.
        played += Array(repeating: 0, count: 960)
      }
    }
    // Skips the start of the codec's output, which is the same in both runs.
    let steady = played.dropFirst(9_600)
    return zip(steady, steady.dropFirst()).map { abs(Int($0) - Int($1)) }.max() ?? 0
  }

  @Test func switchingBetweenVoicesCostsNoClick() throws {
    let control = try largestStep { _ in true }
    // The voice loses its slot every 500 ms, long enough that even silence is no longer sent.
    let switched = try largestStep { $0 / 25 % 2 == 0 }
    #expect(control > 0 && Double(switched) <= 1.5 * Double(control), "\(switched), \(control)")
  }
}
