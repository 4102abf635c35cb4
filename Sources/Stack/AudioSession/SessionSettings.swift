/// The device's settings, and those requested.
struct SessionSettings {
  /// The application's configuration.
  var wanted = AudioSessionConfiguration()
  var category = AudioSessionCategory.soloAmbient
  var mode = AudioSessionMode.default
  var options: AudioSessionOptions = []
  var portOverride = AudioPortOverride.none
  private(set) var sampleRate: Int?
  private(set) var ioBufferMilliseconds: Int?
  private(set) var channels: [Int] = []
  private(set) var ioType: AudioIOType?
  private(set) var processing: AudioProcessingProfile?
  /// The formats that the device was initialised for.
  private(set) var unitFormats: [AudioFormat?] = []

  /// Clears the settings, which the device loses when the audio server terminates.
  mutating func forget() {
    let wanted = wanted
    self = SessionSettings()
    self.wanted = wanted
  }

  /// Records a completed operation.
  mutating func apply(_ operation: AudioDeviceOperation) {
    switch operation {
    case .setCategory(let category, let options):
      (self.category, self.options) = (category, options)
    case .setMode(let mode): self.mode = mode
    case .overridePort(let override): portOverride = override
    case .setPreferredSampleRate(let rate): sampleRate = rate
    case .setPreferredIOBuffer(let milliseconds): ioBufferMilliseconds = milliseconds
    case .setPreferredChannels(let input, let output): channels = [input, output]
    case .setIOType(let type): ioType = type
    case .setProcessing(let profile): processing = profile
    case .initializeUnit(let capture, let render): unitFormats = [capture, render]
    default: break
    }
  }

  /// The settings still to apply before the device is initialised.
  var preferences: [AudioDeviceOperation] {
    var operations: [AudioDeviceOperation] = []
    if ioType != wanted.ioType { operations.append(.setIOType(wanted.ioType)) }
    if processing != wanted.processing { operations.append(.setProcessing(wanted.processing)) }
    if sampleRate != wanted.sampleRate {
      operations.append(.setPreferredSampleRate(wanted.sampleRate))
    }
    if ioBufferMilliseconds != wanted.ioBufferMilliseconds {
      operations.append(.setPreferredIOBuffer(milliseconds: wanted.ioBufferMilliseconds))
    }
    if channels != [wanted.inputChannels, wanted.outputChannels] {
      operations.append(
        .setPreferredChannels(input: wanted.inputChannels, output: wanted.outputChannels))
    }
    return operations
  }
}

extension AudioSessionCall {
  /// The operations of a configuration call; nil for other calls.
  var operations: [AudioDeviceOperation]? {
    switch self {
    case .configure(let wanted):
      [.setCategory(wanted.category, options: wanted.options), .setMode(wanted.mode)]
    case .setCategory(let category, let options): [.setCategory(category, options: options)]
    case .setMode(let mode): [.setMode(mode)]
    case .overridePort(let override): [.overridePort(override)]
    case .setPreferredSampleRate(let rate): [.setPreferredSampleRate(rate)]
    case .setPreferredIOBuffer(let milliseconds):
      [.setPreferredIOBuffer(milliseconds: milliseconds)]
    case .setPreferredChannels(let input, let output):
      [.setPreferredChannels(input: input, output: output)]
    case .setIOType(let type): [.setIOType(type)]
    case .setProcessing(let profile): [.setProcessing(profile)]
    default: nil
    }
  }

  /// Applies the call to the configuration.
  package func apply(to wanted: inout AudioSessionConfiguration) {
    switch self {
    case .configure(let configuration): wanted = configuration
    case .setCategory(let category, let options):
      (wanted.category, wanted.options) = (category, options)
    case .setMode(let mode): wanted.mode = mode
    case .setPreferredSampleRate(let rate): wanted.sampleRate = rate
    case .setPreferredIOBuffer(let milliseconds): wanted.ioBufferMilliseconds = milliseconds
    case .setPreferredChannels(let input, let output):
      (wanted.inputChannels, wanted.outputChannels) = (input, output)
    case .setIOType(let type): wanted.ioType = type
    case .setProcessing(let profile): wanted.processing = profile
    default: break
    }
  }
}
