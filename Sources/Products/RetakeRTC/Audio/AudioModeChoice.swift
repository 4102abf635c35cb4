import AudioSession

/// A mode of the audio session, with AVFoundation's name of the category.
package enum AudioModeChoice: Sendable {
  /// A category with the default mode.
  case plain(AVAudioSession.Category, toSpeaker: Bool)
  /// A video call.
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
