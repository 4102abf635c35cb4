package import Live
import Media
package import MediaFiles

/// Delivers the audio of a WAV file to a source at its own pace, repeated, for as long as it is
/// kept.
package final class AudioFile: Sendable {
  private let task: Task<Void, Never>

  /// Starts with a file.
  /// - Throws: `MediaFileError` if it cannot be read or has no audio.
  package init(path: String, to source: AudioSource, loops: Bool = true) throws(MediaFileError) {
    let file = try WAVFileSource(path: path, loops: loops)
    task = Task.detached(priority: .high) {
      var file = file
      let clock = ContinuousClock()
      let began = clock.now
      // A later error ends the audio like the end of the file.
      while !Task.isCancelled, let next = try? file.next() {
        try? await clock.sleep(until: began + .nanoseconds(next.nanoseconds))
        if case .audio(let block) = next.media { source.deliver(block) }
      }
    }
  }

  deinit { task.cancel() }
}
