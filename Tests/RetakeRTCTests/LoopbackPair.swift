import Foundation
import Live
import Media
import RetakeRTC
import Testing
import Wire

/// Two connections of one factory over loopback.
struct LoopbackPair {
  let factory: RTCPeerConnectionFactory
  let caller: RTCPeerConnection
  let callee: RTCPeerConnection
  let callerHears = Listener()
  let calleeHears = Listener()

  static let none = RTCMediaConstraints(mandatoryConstraints: nil, optionalConstraints: nil)
  static let microphone = MediaSource.tone(hertz: 440, pauseSeconds: 0)

  init() throws { try self.init(session: try Self.session()) }

  init(
    session: Session, device: RTCAudioDeviceModule? = nil, codecs: GreyCodecs? = nil
  ) throws {
    factory = RTCPeerConnectionFactory(
      session: session, microphone: Self.microphone, encoderFactory: codecs,
      decoderFactory: codecs, audioDeviceModule: device)
    let configuration = RTCConfiguration()
    configuration.tcpCandidatePolicy = .disabled
    caller = try #require(
      factory.peerConnection(
        with: configuration, constraints: Self.none, delegate: callerHears))
    callee = try #require(
      factory.peerConnection(
        with: configuration, constraints: Self.none, delegate: calleeHears))
  }

  /// Starts a session over loopback that samples no stats, recorded if a take is named.
  static func session(take: String? = nil) throws -> Session {
    var options = Session.Options()
    options.takePath = take
    options.statsInterval = nil
    options.bind = .addresses([try #require(IPAddress("127.0.0.1"))])
    return try Session(options)
  }

  /// Exchanges an offer and its answer, without waiting for candidates.
  func negotiate() async throws {
    let offer = try await caller.offer(for: Self.none)
    try await caller.setLocalDescription(offer)
    try await callee.setRemoteDescription(offer)
    let answer = try await callee.answer(for: Self.none)
    try await callee.setLocalDescription(answer)
    try await caller.setRemoteDescription(answer)
  }

  /// Exchanges candidates as they are gathered, until the returned task is cancelled.
  func trickle() -> Task<Void, Never> {
    Task { [callerHears, calleeHears, caller, callee] in
      await withTaskGroup { group in
        group.addTask {
          for await candidate in callerHears.candidates { try? await callee.add(candidate) }
        }
        group.addTask {
          for await candidate in calleeHears.candidates { try? await caller.add(candidate) }
        }
      }
    }
  }

  /// Negotiates and trickles, and waits until both are connected.
  func connect() async throws {
    try await negotiate()
    let trickling = trickle()
    await callerHears.told.wait(for: "connection connected")
    await calleeHears.told.wait(for: "connection connected")
    trickling.cancel()
  }
}
