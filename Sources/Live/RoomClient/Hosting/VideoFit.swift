import Live
import Peer
import Synchronization

/// The size at which a listener gets a video: that of the largest layer that fits the selected
/// profile.
///
/// The server decodes the largest layer that arrives and scales it down for smaller profiles, so a
/// profile is available even if its own layer is not.
final class VideoFit: Sendable {
  private struct State {
    var wanted = 1.0
    var isSet = 1.0
    var isSetting = false
  }

  private let connection: PeerConnection
  private let transceiver: UInt32
  private let state = Mutex(State())

  init(_ connection: PeerConnection, _ transceiver: UInt32) {
    (self.connection, self.transceiver) = (connection, transceiver)
  }

  /// Sets the scaling of frames.
  /// - Parameters:
  ///   - side: the longer side of received frames.
  ///   - full: that of the largest layer.
  ///   - divisor: the factor between that layer and the selected profile.
  func fit(side: Int, full: Int, divisor: Int) {
    let allowed = max(2, full / max(1, divisor))
    let scale = max(1, Double(side) / Double(allowed))
    let begins = state.withLock { state in
      state.wanted = scale
      guard scale != state.isSet, !state.isSetting else { return false }
      state.isSetting = true
      return true
    }
    if begins { Task { await set() } }
  }

  private func set() async {
    while let scale = next() {
      // A closed connection has no parameters, and needs none.
      guard var parameters = try? await connection.getParameters(of: transceiver),
        !parameters.encodings.isEmpty
      else { continue }
      parameters.encodings[0].scaleResolutionDownBy = scale
      try? await connection.setParameters(parameters, of: transceiver)
    }
  }

  private func next() -> Double? {
    state.withLock { state in
      guard state.wanted != state.isSet else {
        state.isSetting = false
        return nil
      }
      state.isSet = state.wanted
      return state.wanted
    }
  }
}
