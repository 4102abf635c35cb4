import Foundation
import JSEP
import Live
import Media
import Peer
import SDP
import Signaling
import Wire

/// A peer that calls a recorder, using the client stack, which is not recorded here.
struct Caller: Sendable {
  let connection: PeerConnection
  let recorder: Recorder
  private(set) var call = ""

  init(_ session: Session, _ recorder: Recorder) {
    self.recorder = recorder
    connection = session.makePeer(label: "caller", role: "caller")
  }

  /// Calls with an audio section and a data channel; returns once both are open.
  ///
  /// - Parameter sounds: whether to send a tone, or nothing.
  mutating func call(sounds: Bool) async throws {
    let channel = try await begin(sounds: sounds)
    try await connection.waitUntilConnected(timeout: .seconds(60))
    try await channel.waitUntilOpen(timeout: .seconds(60))
  }

  /// Sends an offer and applies the answer, without waiting for the connection.
  mutating func begin(sounds: Bool) async throws -> DataChannel {
    let channel = try await connection.createDataChannel("soak")
    if sounds {
      try await connection.addTrack(.audio, source: .tone(hertz: 440, pauseSeconds: 0))
    } else {
      try await connection.addTransceiver(.audio, direction: .recvonly)
    }
    try await offer()
    return channel
  }

  /// Sends an offer and applies the answer; a current call is renegotiated.
  mutating func offer(restartsICE: Bool = false) async throws {
    try await connection.setLocalDescription(
      try await connection.createOffer(iceRestart: restartsICE))
    try await connection.waitForGatheringComplete(timeout: .seconds(30))
    guard let offer = try await connection.localDescription else {
      throw SoakFailure("there is no offer")
    }
    var message = ["type": "offer", "sdp": offer.sdp]
    if !call.isEmpty { message["id"] = call }
    let answer = try await post("/offer", message)
    guard let sdp = answer["sdp"], let id = answer["id"] else {
      throw SoakFailure("the recorder gave no answer")
    }
    call = id
    try await connection.setRemoteDescription(SessionDescription(type: .answer, sdp: sdp))
  }

  /// Requests an offer and never answers it.
  func askForOffer() async throws { _ = try await post("/mkoffer", [:]) }

  /// Sends a text message and waits for its echo.
  func talk(_ text: String) async throws {
    guard let channel = connection.dataChannels.first else { throw SoakFailure("no channel") }
    try await channel.send(text)
    for await message in channel.messages where message == .text(text) { return }
    throw SoakFailure("what was said did not come back")
  }

  /// Hangs up properly: the recorder learns of it over DTLS.
  func hangUp() async {
    await connection.close()
    await connection.retire()
  }

  /// Dies silently: its sockets are closed, and nothing more is sent.
  func die() async { await connection.retire() }

  private func post(_ path: String, _ message: [String: String]) async throws -> [String: String] {
    let body = try JSONEncoder().encode(message)
    let response = try await HTTPClient(timeout: .seconds(60)).post(
      recorder.url + path, json: message.isEmpty ? "" : String(decoding: body, as: UTF8.self))
    guard response.status == 200 else {
      throw SoakFailure("\(path) was answered with \(response.status): \(response.text)")
    }
    return try JSONDecoder().decode([String: String].self, from: Data(response.body))
  }
}
