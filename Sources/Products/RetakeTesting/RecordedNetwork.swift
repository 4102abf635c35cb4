public import Live
import Media
public import Peer
public import SDP

/// A connection whose network is a take, to test an application against a recorded session.
///
/// The application uses an ordinary `PeerConnection`. Responses from the network, the peer and the
/// operating system, and captured media, come from the take, at the recorded times on a virtual
/// clock; nothing is sent to a network. Where the recorded application made a call, the take waits
/// until this application makes it.
///
///     let network = try RecordedNetwork("Captures/june.take")
///     let app = MyApp(network.connection)
///     try await app.answer(network.remoteDescriptions[0])
///     try await network.connection.waitUntilConnected()
///     try await network.expectSameSession()
public final class RecordedNetwork: Sendable {
  /// How closely the application's session matched the take.
  public struct Report: Hashable, Sendable {
    /// How many steps the take has for the peer.
    public var recordedSteps: Int
    /// How many of the recorded steps were reached.
    public var steps: Int
    /// How many datagrams were sent byte for byte as recorded.
    public var sentAsRecorded: Int
    /// How many datagrams differed, were missing, or were additional.
    public var sentOtherwise: Int
    /// Descriptions of calls that differ from the recorded application's, with their arguments.
    public var deviations: [String]
  }

  /// An error: the application made other calls than recorded, or the stack sent other packets.
  public struct Difference: Error, Hashable, Sendable, CustomStringConvertible {
    /// The take's path.
    public var path: String
    /// How closely the session matched the take.
    public var report: Report

    /// The take's path and the differences, in one sentence.
    public var description: String {
      let reasons =
        report.deviations.isEmpty
        ? ["\(report.sentOtherwise) datagrams differ from the recorded ones"] : report.deviations
      return "\(path): the session is not the recorded one: \(reasons.joined(separator: "; "))"
    }
  }

  /// The connection that the application uses instead of a real connection.
  public var connection: PeerConnection { peer.connection }
  /// The messages on the recorded application's signaling channel, in both directions.
  public var signaling: [SignalingMessage] { peer.signaling }
  /// The descriptions that the recorded application received from its peer.
  public let remoteDescriptions: [SessionDescription]
  /// The candidates that the recorded application received from its peer; nil marks the end of
  /// candidates.
  public let remoteCandidates: [CandidateInit?]

  private let path: String
  private let peer: RecordedPeer

  /// Opens a take.
  /// - Parameters:
  ///   - path: the take; a relative path starts at the package's folder, where tests run.
  ///   - peer: the number of the peer that the application replaces.
  /// - Throws: `SessionError` if the take cannot be read.
  public init(_ path: String, peer number: UInt32 = 1) throws(SessionError) {
    self.path = path
    peer = try RecordedPeer(path: path, peer: number) { LibraryCodecs() }
    remoteDescriptions = peer.calls.compactMap {
      if case .setRemoteDescription(let description) = $0 { description } else { nil }
    }
    remoteCandidates = peer.calls.compactMap {
      if case .addICECandidate(let candidate) = $0 { .some(candidate) } else { .none }
    }
  }

  /// Waits until the application has made the recorded calls, runs the rest of the take, and closes
  /// the connection.
  ///
  /// The application's own tasks may still be running when this is called. A recorded call that the
  /// application does not make within the limit is a deviation, unless it closes the connection.
  /// - Parameter limit: the maximum time to wait.
  public func finish(within limit: Duration = .seconds(10)) async -> Report {
    let report = await peer.finish(within: limit)
    return Report(
      recordedSteps: report.recordedSteps, steps: report.steps,
      sentAsRecorded: report.sentAsRecorded, sentOtherwise: report.sentOtherwise,
      deviations: report.deviations)
  }

  /// Finishes, and throws `Difference` if anything differs from the recording.
  ///
  /// A missing close is not a difference: a test may cover only the start of a call.
  /// - Parameter limit: the maximum time to wait for calls that the application has not made yet.
  public func expectSameSession(within limit: Duration = .seconds(10)) async throws(Difference) {
    let report = await finish(within: limit)
    guard report.deviations.isEmpty, report.sentOtherwise == 0 else {
      throw Difference(path: path, report: report)
    }
  }
}
