import AudioSession

/// A mode of the audio session, with the category by its name in AVFoundation.
package enum AudioModeChoice: Sendable {
  /// A category without a special mode.
  case plain(AVAudioSession.Category, toSpeaker: Bool)
  /// A call with video.
  case videoChat
  /// A call.
  case voiceChat(toSpeaker: Bool)

  var native: AudioMode {
    switch self {
    case .plain(let category, let toSpeaker):
      .default(category: category.native, output: toSpeaker ? .speaker : .default)
    case .videoChat: .videoChat
    case .voiceChat(let toSpeaker): .voiceChat(output: toSpeaker ? .speaker : .default)
    }
  }
}
