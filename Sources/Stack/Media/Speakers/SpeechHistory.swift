/// A participant's levels of the last second and their scores.
struct SpeechHistory {
  /// The number of levels: a second of 20 ms packets.
  static let length = 50

  /// A level, in tenths of its range, above this is loud.
  private static let loudAbove: UInt8 = 7
  /// A tenth of a second with more loud levels than this is loud.
  private static let busyAbove: UInt8 = 4
  /// The noise floor rises only after this many levels above it: 15 s.
  private static let floorWindow = 750
  /// How far above the noise floor a level must be to count.
  private static let floorMargin = 10
  private static let levelsPerMedium = 5

  /// Loudness from 0 to 127, newest first.
  private var levels = [UInt8](repeating: 0, count: SpeechHistory.length)
  /// The quietest level above silence; 0 before there is one.
  private var floor: UInt8 = 0
  private var nextFloor: UInt8 = 0
  private var nextFloorCount = 0

  /// The scores of the latest level, tenth of a second, and whole second.
  private(set) var immediateScore = SpeechScore.least
  private(set) var mediumScore = SpeechScore.least
  private(set) var longScore = SpeechScore.least
  /// Consecutive silent levels, at most `length`.
  private var silentCount = SpeechHistory.length

  /// Whether all levels are silent, so that another one changes nothing.
  var isSilent: Bool { silentCount >= SpeechHistory.length }

  mutating func add(_ loudness: UInt8) {
    levels.removeLast()
    levels.insert(loudness, at: 0)
    silentCount = loudness == 0 ? min(silentCount + 1, SpeechHistory.length) : 0
    follow(loudness)
  }

  /// The noise floor falls immediately and rises slowly, to the geometric mean of itself and the
  /// quietest recent level.
  private mutating func follow(_ loudness: UInt8) {
    guard loudness > 0 else { return }
    if floor == 0 || floor > loudness {
      floor = loudness
      (nextFloor, nextFloorCount) = (0, 0)
      return
    }
    nextFloor = nextFloor == 0 ? loudness : min(nextFloor, loudness)
    nextFloorCount += 1
    if nextFloorCount >= SpeechHistory.floorWindow {
      floor = UInt8((Double(floor) * Double(nextFloor)).squareRoot())
      (nextFloor, nextFloorCount) = (0, 0)
    }
  }

  /// Updates the scores.
  mutating func evaluate() {
    let least = Int(floor) + SpeechHistory.floorMargin
    var newestInstant: UInt8 = 0
    var newestTenth: UInt8 = 0
    var loudInTenth: UInt8 = 0
    var busyTenths: UInt8 = 0
    for (index, level) in levels.enumerated() {
      let instant = Int(level) < least ? 0 : level / 10
      if index == 0 { newestInstant = instant }
      if instant > SpeechHistory.loudAbove { loudInTenth += 1 }
      guard index % SpeechHistory.levelsPerMedium == SpeechHistory.levelsPerMedium - 1 else {
        continue
      }
      if index < SpeechHistory.levelsPerMedium { newestTenth = loudInTenth }
      if loudInTenth > SpeechHistory.busyAbove { busyTenths += 1 }
      loudInTenth = 0
    }
    immediateScore = SpeechScore.score(newestInstant, in: SpeechScore.immediate)
    mediumScore = SpeechScore.score(newestTenth, in: SpeechScore.medium)
    longScore = SpeechScore.score(busyTenths, in: SpeechScore.long)
  }
}
