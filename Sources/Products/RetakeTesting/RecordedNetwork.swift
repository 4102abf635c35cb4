public import Live
import Media
public import Peer
public import SDP

/// A connection whose network is a take, to test an application against a recorded session.
///
/// The application gets an ordinary `PeerConnection` and uses it as usual. The responses of
/// the network, of the peer and of the operating system, and what was captured, come from the take,
/// at the recorded times of a virtual clock; nothing is sent to a network. Where the
/// recorded application made a call, the take waits for this one's.
///
///     let network = try RecordedNetwork("Captures/june.take")
///     let app = MyApp(network.connection)
///     try await app.answer(network.remoteDescriptions[0])
///     try await network.connection.waitUntilConnected()
///     try await network.expectSameSession()
public final class RecordedNetwork: Sendable {
  /// How far the application's session matched the take.
  public struct Report: Hashable, Sendable {
    /// How many steps of the peer the take has.
    public var recordedSteps: Int
    /// How many of them were reached.
    public var steps: Int
    /// How many datagrams were sent byte for byte as recorded.
    public var sentAsRecorded: Int
    /// How many datagrams differed, were missing, or were sent in addition.
    public var sentOtherwise: Int
    /// Descriptions of the calls that differ from the recorded application's, with their arguments.
    public var deviations: [String]
  }

  /// The application made other calls than the recorded one, or the stack sent other packets.
  public struct Difference: Error, Hashable, Sendable, CustomStringConvertible {
    /// The take.
    public var path: String
    /// How far the session went.
    public var report: Report

    /// A description of the differences.
    public var description: String {
      let reasons =
        report.deviations.isEmpty
        ? ["\(report.sentOtherwise) datagrams differ from the recorded ones"] : report.deviations
      return "\(path): the session is not the recorded one: \(reasons.joined(separator: "; "))"
    }
  }

  /// The connection for the application.
  public var connection: PeerConnection { peer.connection }
  /// The messages of the recorded application's signaling channel, in both directions.
  public var signaling: [SignalingMessage] { peer.signaling }
  /// The descriptions that the recorded application received from its peer.
  public let remoteDescriptions: [SessionDescription]
  /// The candidates that the recorded application received from its peer; nil is the end of
  /// candidates.
  public let remoteCandidates: [CandidateInit?]

  private let path: String
  private let peer: RecordedPeer

  /// Opens a take.
  /// - Parameters:
  ///   - path: the take; a relative path starts at the package's folder, where tests run.
  ///   - peer: the number of the peer that the application replaces.
  /// - Throws: `SessionError` when the take cannot be read.
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
  /// The application may still be running tasks of its own when this is called. A call that it has
  /// not made within the limit is a deviation, except for closing.
  /// - Parameter limit: the longest time to wait.
  public func finish(within limit: Duration = .seconds(10)) async -> Report {
    let report = await peer.finish(within: limit)
    return Report(
      recordedSteps: report.recordedSteps, steps: report.steps,
      sentAsRecorded: report.sentAsRecorded, sentOtherwise: report.sentOtherwise,
      deviations: report.deviations)
  }

  /// Finishes, and throws `Difference` when something was not as recorded.
  ///
  /// Not closing the connection is no difference: a test of the beginning of a call need not do so.
  /// - Parameter limit: the longest time to wait for missing calls of the application.
  public func expectSameSession(within limit: Duration = .seconds(10)) async throws(Difference) {
    let report = await finish(within: limit)
    guard report.deviations.isEmpty, report.sentOtherwise == 0 else {
      throw Difference(path: path, report: report)
    }
  }
}
