import Live
import Peer
import Synchronization

/// The size at which one listener is sent a video: that of the largest layer that fits the profile
/// which the listener chose.
///
/// The server shows the largest layer that arrives and makes it smaller where a smaller profile is
/// wanted, so a profile is there also while its own layer is not.
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

  /// Makes frames smaller by a factor from now on.
  ///
  /// - Parameters:
  ///   - side: the longer side of the frames that come.
  ///   - full: that of the largest layer.
  ///   - divisor: by how much the chosen profile is smaller than that layer.
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
      // A connection that is over has no parameters, and needs none.
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
