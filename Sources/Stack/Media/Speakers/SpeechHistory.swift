/// The last second of a participant's levels and how much it speaks for speech.
struct SpeechHistory {
  /// How many levels are kept: a second of packets of 20 ms.
  static let length = 50

  /// A level in tenths of its range counts from this on as loud.
  private static let loudAbove: UInt8 = 7
  /// A tenth of a second with more loud instants than this counts as loud.
  private static let busyAbove: UInt8 = 4
  /// The floor of the room rises only after so many levels that were all above it: 15 s.
  private static let floorWindow = 750
  /// How far above the floor a level must be to count at all.
  private static let floorMargin = 10
  private static let levelsPerMedium = 5

  /// Loudness from 0 to 127, newest first.
  private var levels = [UInt8](repeating: 0, count: SpeechHistory.length)
  /// The quietest level above silence; 0 before there was one.
  private var floor: UInt8 = 0
  private var nextFloor: UInt8 = 0
  private var nextFloorCount = 0

  /// The scores of the newest instant, tenth of a second and of the whole second.
  private(set) var immediateScore = SpeechScore.least
  private(set) var mediumScore = SpeechScore.least
  private(set) var longScore = SpeechScore.least
  /// How many levels of silence came in a row; no more than `length` matter.
  private var silentCount = SpeechHistory.length

  /// Whether nothing but silence is kept, so that more of it changes nothing.
  var isSilent: Bool { silentCount >= SpeechHistory.length }

  /// Handles the next level.
  mutating func add(_ loudness: UInt8) {
    levels.removeLast()
    levels.insert(loudness, at: 0)
    silentCount = loudness == 0 ? min(silentCount + 1, SpeechHistory.length) : 0
    follow(loudness)
  }

  /// The floor drops at once and rises slowly, to the geometric mean of itself and what followed.
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

  /// Brings the scores up to date with the levels.
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
