import Foundation
import JSEP
import Live
import Media
import Peer
import SDP
import Signaling
import Wire

/// One peer connection of a recording command, with what it sends and its signaling in the take.
final class CallPeer: Sendable {
  let connection: PeerConnection
  let plan: SendPlan
  private let transport: String
  let videoCodec: VideoCodecChoice?
  private let feeds = FileFeeds()

  init(
    _ connection: PeerConnection, sending plan: SendPlan, transport: String,
    preferring videoCodec: VideoCodecChoice?
  ) {
    self.videoCodec = videoCodec
    self.connection = connection
    self.plan = plan
    self.transport = transport
    Task { await connection.echoDataChannels() }
  }

  /// Makes an offer with one audio and one video track, a data channel and all candidates.
  func offer() async throws -> SessionDescription {
    let channel = try await connection.createDataChannel("retake")
    Task { await channel.echo() }
    for kind in [MediaKind.audio, .video] {
      let info = try await connection.addTrack(
        kind, source: plan.source(for: kind), streamIDs: ["retake"])
      try feed(info)
    }
    try await describe()
    return try await gatheredDescription()
  }

  /// Answers an offer: every track that the peer can receive is sent something.
  func answer(_ offer: SessionDescription) async throws -> SessionDescription {
    note(offer, isInbound: true)
    try await connection.setRemoteDescription(offer)
    for transceiver in try await connection.transceivers where transceiver.direction != .stopped {
      let info = try await connection.addTrack(
        transceiver.kind, source: plan.source(for: transceiver.kind), streamIDs: ["retake"])
      try feed(info)
    }
    try await describe()
    return try await gatheredDescription()
  }

  /// Makes and sets the own description, with the preferred codec first.
  func describe() async throws {
    try await connection.prefer(videoCodec)
    try await connection.setLocalDescription()
  }

  /// Takes the peer's answer.
  func accept(_ answer: SessionDescription) async throws {
    note(answer, isInbound: true)
    try await connection.setRemoteDescription(answer)
  }

  /// Waits for the candidates, so that plain signaling needs one message each way.
  func gatheredDescription() async throws -> SessionDescription {
    try await connection.waitForGatheringComplete()
    guard let description = try await connection.localDescription else {
      throw PeerError(name: "OperationError", message: "no local description was made")
    }
    note(description, isInbound: false)
    return description
  }

  func note(_ description: SessionDescription, isInbound: Bool) {
    note(description.type.rawValue, description.sdp, isInbound: isInbound)
  }

  /// Keeps a signaling message in the take.
  func note(_ type: String, _ message: String, isInbound: Bool) {
    connection.noteSignaling(
      SignalingMessage(
        isInbound: isInbound, transport: transport, type: type, message: message))
  }

  /// Feeds a transceiver from its file once media can flow.
  func feed(_ transceiver: TransceiverInfo) throws {
    guard let path = plan.file(for: transceiver.kind) else { return }
    do throws(MediaFileError) {
      try feeds.start(path, kind: transceiver.kind, on: transceiver.id, of: connection)
    } catch {
      throw CommandFailure(.inputOutput, "--send \(error.description)")
    }
  }

  /// Returns when the peer left, by hanging up or by silence.
  func waitUntilGone() async {
    for await states in connection.stateChanges {
      if states.secure == .closed || states.secure == .failed { return }
      if states.connection == .failed || states.connection == .closed { return }
    }
  }

  /// Frames each way in words, for a summary.
  var mediaSummary: String {
    let counters = connection.counters
    return "\(counters.audioSent) audio and \(counters.picturesSent) video frames sent, "
      + "\(counters.audioReceived) and \(counters.picturesReceived) received"
  }
}
