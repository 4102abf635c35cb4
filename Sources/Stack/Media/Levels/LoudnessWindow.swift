/// The loudness of a stream of blocks: total energy, and recent level.
///
/// W3C: the energy is the sum of squared samples as shares of full scale, times their duration; the
/// level is the root mean square over 100 ms. Both use the loudest channel.
struct LoudnessWindow: Hashable, Sendable {
  /// In seconds (W3C totalAudioEnergy).
  private(set) var totalEnergy = 0.0
  /// The root mean square of the last full window, 0 to 1 (W3C audioLevel); nil before the first.
  private(set) var level: Double?

  private var energy = 0.0
  private var length = 0

  private static let windowLength = AudioBlock.sampleRate / 10

  /// Adds a block by its sum of squared samples and their number.
  mutating func add(energy blockEnergy: UInt64, frameCount: Int) {
    let value = Double(blockEnergy)
    let scale = AudioMeter.fullScale
    totalEnergy += value / (scale * scale) / Double(AudioBlock.sampleRate)
    energy += value
    length += frameCount
    guard length >= LoudnessWindow.windowLength else { return }
    level = AudioMeter.rootMeanSquare(energy: energy, frameCount: length)
    energy = 0
    length = 0
  }
}
