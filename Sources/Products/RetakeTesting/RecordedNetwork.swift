public import Live
import Media
public import Peer
public import SDP

/// A connection whose network is a take, to test an application against a session that happened.
///
/// The application gets an ordinary `PeerConnection` and calls it as it always does. The answers of
/// the network, of the peer and of the operating system, and what was captured, come from the take,
/// at the recorded times of a clock that does not wait; nothing is sent anywhere. Where the
/// recorded application called, the take waits until this one calls.
///
///     let network = try RecordedNetwork("Captures/june.take")
///     let app = MyApp(network.connection)
///     try await app.answer(network.remoteDescriptions[0])
///     try await network.connection.waitUntilConnected()
///     try await network.expectSameSession()
public final class RecordedNetwork: Sendable {
  /// How far the application's session was that of the take.
  public struct Report: Hashable, Sendable {
    /// How many steps of the peer the take has, and how many were reached.
    public var recordedSteps: Int
    /// How many of them were reached.
    public var steps: Int
    /// How many datagrams were sent as in the recording, byte for byte.
    public var sentAsRecorded: Int
    /// How many were sent otherwise, not sent, or sent besides.
    public var sentOtherwise: Int
    /// Where the application called something else than the recorded one, in words, with the
    /// arguments that differ.
    public var deviations: [String]
  }

  /// The application called something else than the recorded one, or the stack sent something else.
  public struct Difference: Error, Hashable, Sendable, CustomStringConvertible {
    /// The take.
    public var path: String
    /// How far it went.
    public var report: Report

    /// What differs.
    public var description: String {
      let reasons =
        report.deviations.isEmpty
        ? ["\(report.sentOtherwise) datagrams differ from the recorded ones"] : report.deviations
      return "\(path): the session is not the recorded one: \(reasons.joined(separator: "; "))"
    }
  }

  /// The connection for the application.
  public var connection: PeerConnection { peer.connection }
  /// The messages of the recorded application's signaling channel, both ways.
  public var signaling: [SignalingMessage] { peer.signaling }
  /// The descriptions that the recorded application got from its peer.
  public let remoteDescriptions: [SessionDescription]
  /// The candidates that the recorded application got from its peer; nil stands for their end.
  public let remoteCandidates: [CandidateInit?]

  private let path: String
  private let peer: RecordedPeer

  /// Opens a take.
  ///
  /// - Parameters:
  ///   - path: the take; a relative one is looked for from the package's folder, where tests run.
  ///   - peer: the number of the peer whose place the application takes.
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

  /// Waits until the application has called what the recorded one called, lets the rest of the take
  /// happen, and closes the connection.
  ///
  /// The application may still be at work, in tasks of its own, when this is called. What it has
  /// not called after the limit is a deviation; only to close is left to it.
  ///
  /// - Parameter limit: how long to wait at most.
  public func finish(within limit: Duration = .seconds(10)) async -> Report {
    let report = await peer.finish(within: limit)
    return Report(
      recordedSteps: report.recordedSteps, steps: report.steps,
      sentAsRecorded: report.sentAsRecorded, sentOtherwise: report.sentOtherwise,
      deviations: report.deviations)
  }

  /// Finishes, and throws `Difference` when something was not as in the recording.
  ///
  /// Not to close the connection is no difference: whoever tests the beginning of a call need not.
  ///
  /// - Parameter limit: how long to wait at most for what the application has not called yet.
  public func expectSameSession(within limit: Duration = .seconds(10)) async throws(Difference) {
    let report = await finish(within: limit)
    guard report.deviations.isEmpty, report.sentOtherwise == 0 else {
      throw Difference(path: path, report: report)
    }
  }
}
