/// How strongly the activity of a window indicates speech: the scores of Volfin & Cohen.
///
/// The score of `v` active parts of `n` is ln C(n, v) + n ln p - ln λ + λ v with p = 1/2, at least
/// `least`. Only few values of `v` exist, so they are constants here: logarithms of different
/// libraries differ in the last bit, and speakers must not depend on the machine.
package enum SpeechScore {
  /// The score of a window without activity.
  package static let least = 1e-10

  /// The scores of a level by its loudness in tenths: n = 13, λ = 0.78.
  package static let immediate: [Double] = [
    least, least, least, least, 0.929_830_554_713_218_8, 2.297_617_219_615_338_6,
    3.365_299_292_067_118_8, 4.145_299_292_067_119, 4.637_617_219_615_338,
    4.829_830_554_713_219, 4.693_539_822_839_064, 4.174_256_838_708_803,
    3.162_497_369_480_746_6, 1.377_548_012_019_211_4,
  ]

  /// The scores of a tenth of a second by its loud levels: n = 5, λ = 24.
  package static let medium: [Double] = [
    least, 18.965_648_179_286_43, 43.658_795_359_846_37, 67.658_795_359_846_38,
    90.965_648_179_286_43, 113.356_210_266_852_33,
  ]

  /// The scores of a second by its loud tenths: n = 10, λ = 47.
  package static let long: [Double] = [
    least, 38.520_965_685_684_53, 87.025_043_082_460_81, 135.005_872_335_472_53,
    182.565_488_123_407_96, 229.747_809_680_201_93, 276.565_488_123_407_93,
    323.005_872_335_472_53, 369.025_043_082_460_8, 414.520_965_685_684_53, 459.218_380_592_690_5,
  ]

  /// The score of a count, clamped to the window.
  static func score(_ count: UInt8, in scores: [Double]) -> Double {
    scores[min(Int(count), scores.count - 1)]
  }
}
