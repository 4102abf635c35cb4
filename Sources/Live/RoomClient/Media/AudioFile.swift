package import Live
import Media
package import MediaFiles

/// Delivers the audio of a WAV file to a source at its pace, over and over, until it is let go of.
package final class AudioFile: Sendable {
  private let task: Task<Void, Never>

  /// Begins with a file.
  ///
  /// - Throws: `MediaFileError` when the file cannot be read or holds no audio.
  package init(path: String, to source: AudioSource, loops: Bool = true) throws(MediaFileError) {
    let file = try WAVFileSource(path: path, loops: loops)
    task = Task.detached(priority: .high) {
      var file = file
      let clock = ContinuousClock()
      let began = clock.now
      // What goes wrong later ends the audio, as the end of the file does.
      while !Task.isCancelled, let next = try? file.next() {
        try? await clock.sleep(until: began + .nanoseconds(next.nanoseconds))
        if case .audio(let block) = next.media { source.deliver(block) }
      }
    }
  }

  deinit { task.cancel() }
}
