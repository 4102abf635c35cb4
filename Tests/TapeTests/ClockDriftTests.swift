import Testing
import Wire

@testable import Queries

/// Distinguishes a media clock's drift from machine and path effects that look like it.
struct ClockDriftTests {
  /// The disturbances in a simulated call.
  ///
  /// Most of them are the average seconds between two occurrences; 0 means never.
  struct Conditions: Sendable, CustomTestStringConvertible {
    var name = "quiet"
    /// All packets of a period of 0.5 to 3 s arrive late.
    var load = 0.0
    /// The sender captures nothing for some tens of milliseconds, and its timestamps stop.
    var stalls = 0.0
    /// The path becomes longer or shorter.
    var paths = 0.0
    /// A queue's growth and shrinkage, in milliseconds per second.
    var queue = 0.0
    /// The average jitter in milliseconds.
    var jitter = 4.0
    var testDescription: String { name }
  }

  private struct Chance {
    var state: UInt64

    init(_ seed: Int) { state = UInt64(seed) &* 0x9e37_79b9_7f4a_7c15 | 1 }

    /// Returns a number from 0 up to, but not including, 1.
    mutating func next() -> Double {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return Double(state >> 40) / Double(1 << 24)
    }

    /// Returns mostly small and a few large values around a mean, as a product of uniform values.
    mutating func spread(_ mean: Double) -> Double { 2.25 * mean * next() * next() * next() * 3.5 }

    mutating func after(_ seconds: Double) -> Double {
      seconds == 0 ? .infinity : seconds * 1e6 * (0.3 + 1.4 * next())
    }
  }

  /// Returns the delays of an audio call with packets of 20 ms, second by second.
  private func seconds(
    _ length: Int, ppm: Double, _ conditions: Conditions, seed: Int
  ) -> [StreamTiming.Second] {
    var chance = Chance(seed)
    var timing = StreamTiming(clockRate: 48_000)
    var (sent, base, last) = (0.0, 20_000.0, 0.0)
    var (lateUntil, late) = (0.0, 0.0)
    var load = chance.after(conditions.load)
    var stall = chance.after(conditions.stalls)
    var path = chance.after(conditions.paths)
    for number in 0..<length * 50 {
      if sent >= stall {
        sent += 10_000 * (1 + (chance.next() * 19).rounded(.down))
        stall = sent + chance.after(conditions.stalls)
      }
      if sent >= load {
        lateUntil = sent + 500_000 + chance.next() * 2_500_000
        late = 2_000 + chance.next() * 58_000
        load = lateUntil + chance.after(conditions.load)
      }
      if sent >= path {
        let change = 3_000 + chance.next() * 57_000
        base = max(2_000, base + (chance.next() < 0.5 ? -change : change))
        path = sent + chance.after(conditions.paths)
      }
      var arrival = sent + base + chance.spread(conditions.jitter * 1000)
      let swing = (sent / 1e6).truncatingRemainder(dividingBy: 16) - 8
      arrival += conditions.queue * 1000 * abs(swing)
      if sent < lateUntil { arrival += late * chance.next().squareRoot() }
      last = max(last, arrival)
      _ = timing.add(Int64(last * 1000), Int64(number & 0xffff), Int64(number * 960))
      sent += 20_000 * (1 + ppm / 1e6)
    }
    timing.finish()
    return timing.seconds
  }

  /// Returns the drift if it meets the rule's thresholds; otherwise nil.
  private func named(_ seconds: [StreamTiming.Second]) -> ClockDrift? {
    guard let drift = ClockDrift(seconds, least: 15), abs(drift.partsPerMillion) >= 90,
      drift.total >= 3, drift.off * 4 <= drift.total
    else { return nil }
    return drift
  }

  /// No drift is reported, even if the path sometimes changes and a machine is sometimes busy.
  @Test(
    arguments: [(100, 90), (-120, 90), (250, 45), (-300, 60), (1500, 30), (3000, 20)],
    [
      Conditions(), Conditions(name: "longer way", paths: 45),
      Conditions(name: "busy at times", load: 25),
    ])
  func aClockThatDriftsIsNamed(_ clock: (ppm: Int, length: Int), _ conditions: Conditions) {
    guard conditions.name == "quiet" || clock.length >= 60 else { return }
    var right = 0
    for seed in 1...10 {
      let ppm = Double(clock.ppm)
      guard let drift = named(seconds(clock.length, ppm: ppm, conditions, seed: seed)) else {
        continue
      }
      #expect(abs(drift.partsPerMillion - ppm) <= 0.2 * abs(ppm), "\(drift)")
      right += 1
    }
    #expect(right >= (conditions.name == "quiet" ? 10 : 8), "\(right) of 10")
  }

  @Test(
    arguments: [15, 25, 60],
    [
      Conditions(), Conditions(name: "bursts of load", load: 3),
      Conditions(name: "load all the time", load: 1), Conditions(name: "stalls", stalls: 1),
      Conditions(name: "some stalls", stalls: 3), Conditions(name: "few stalls", stalls: 10),
      Conditions(name: "other ways", paths: 5), Conditions(name: "another way", paths: 15),
      Conditions(name: "a queue", queue: 0.5), Conditions(name: "much jitter", jitter: 12),
      Conditions(name: "all of it", load: 3, stalls: 4, paths: 12),
    ])
  func aBusyMachineAndAChangingWayAreNoDrift(_ length: Int, _ conditions: Conditions) {
    for seed in 1...12 {
      let found = named(seconds(length, ppm: 0, conditions, seed: seed))
      #expect(found == nil, "seed \(seed): \(String(describing: found))")
    }
  }

  /// A talkspurt may start later than its timestamps say.
  ///
  /// After silence, a late start does not mean that the path became longer; within speech, it does.
  @Test(arguments: [true, false]) func aTalkspurtThatStartsLateIsNoLongerPath(_ isSilent: Bool) {
    var timing = StreamTiming(clockRate: 48_000)
    var (at, media, number) = (Int64(0), Int64(0), Int64(0))
    func add(_ count: Int, every milliseconds: Int64) {
      for _ in 0..<count {
        _ = timing.add(at * 1_000_000, number & 0xffff, media * 48)
        number += 1
        (at, media) = (at + milliseconds, media + milliseconds)
      }
    }
    add(150, every: 20)
    if isSilent { add(6, every: 400) }
    at += 160
    if isSilent { media -= 380 }
    at -= isSilent ? 380 : 0
    add(200, every: 20)
    timing.finish()
    let waits = timing.excess.suffix(3)
    #expect(waits.allSatisfy { ($0 < 40_000) == isSilent }, "\(timing.excess)")
  }

  /// Seconds in which the recorder had no processor time, or too few seconds, prove nothing.
  @Test func unobservedSecondsProveNothing() {
    let call = seconds(40, ppm: 800, Conditions(), seed: 3)
    #expect(named(call) != nil)
    #expect(ClockDrift(call, starved: Set(Int64(0)..<30), least: 15) == nil)
    #expect(named(Array(call.prefix(12))) == nil)
    #expect(ClockDrift([], least: 15) == nil)
  }
}
