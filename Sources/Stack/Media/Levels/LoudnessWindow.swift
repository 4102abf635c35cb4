/// The loudness of a stream of blocks: total energy, and recent level.
///
/// W3C: the energy is the sum of squared samples as shares of full scale, times their duration; the
/// level is the root mean square over 100 ms. Both use the loudest channel.
struct LoudnessWindow: Hashable, Sendable {
  /// In seconds (W3C totalAudioEnergy).
  private(set) var totalEnergy = 0.0
  /// The root mean square of the last full window, 0 to 1 (W3C audioLevel); nil before the first.
  private(set) var level: Double?
  /// The loudest sample of the last full window, 0 to 1; nil before the first.
  ///
  /// It falls to a quarter in each window at most, as Chromium's audioLevel does.
  private(set) var peakLevel: Double?

  private var peak: UInt16 = 0
  private var fallingPeak: UInt16 = 0
  private var energy = 0.0
  private var length = 0

  private static let windowLength = AudioBlock.sampleRate / 10

  /// Takes the next block: the sum of its squared samples, the largest of them, and how many they
  /// are.
  mutating func add(energy blockEnergy: UInt64, peak blockPeak: UInt16, frameCount: Int) {
    let value = Double(blockEnergy)
    let scale = AudioMeter.fullScale
    totalEnergy += value / (scale * scale) / Double(AudioBlock.sampleRate)
    energy += value
    length += frameCount
    peak = max(peak, blockPeak)
    guard length >= LoudnessWindow.windowLength else { return }
    level = AudioMeter.rootMeanSquare(energy: energy, frameCount: length)
    fallingPeak = max(peak, fallingPeak >> 2)
    peakLevel = min(1, Double(fallingPeak) / scale)
    energy = 0
    length = 0
    peak = 0
  }
}
