import JSEP
package import Live
import Media
import MediaFiles
import Peer
package import SDP
import Secure
package import Signaling
import Synchronization
import Wire

/// A recorded peer connection that sends media and writes its signaling to the take.
package final class CallPeer: Sendable {
  package let connection: PeerConnection
  let plan: SendPlan
  private let transport: String
  let videoCodec: VideoCodecChoice?
  private let feeds: [MediaKind: FileFeeds]
  private let devices: LocalDevices?
  private let session: Session
  /// Objects that keep the microphone and the loudspeaker open for as long as they exist.
  private let opened = Mutex<[any Sendable]>([])
  private let failures: SendFailures
  /// Warnings already printed in this call.
  private let warned = Mutex<Set<String>>([])
  private let agreed = Mutex(false)
  /// Transceivers that already have something to send.
  private let sending = Mutex<Set<UInt32>>([])

  package init(
    _ connection: PeerConnection, in session: Session, sending plan: SendPlan,
    devices: LocalDevices? = nil, transport: String, preferring videoCodec: VideoCodecChoice?,
    telling failures: SendFailures
  ) {
    self.session = session
    self.devices = devices
    self.failures = failures
    feeds = Dictionary(
      uniqueKeysWithValues: [MediaKind.audio, .video].map { kind in
        (kind, FileFeeds { failures.report($0, kind) })
      })
    self.videoCodec = videoCodec
    self.connection = connection
    self.plan = plan
    self.transport = transport
    Task { await connection.echoDataChannels() }
    // If the microphone is sent too, playback starts when sending does.
    if let devices, devices.plan.plays, !devices.plan.sends.contains(.microphone) {
      let kept = devices.attach(connection, sending: nil, in: session)
      opened.withLock { $0 = kept }
    }
  }

  /// Creates an offer with an audio and a video section, a data channel and all candidates.
  package func offer() async throws -> SessionDescription {
    let channel = try await connection.createDataChannel("retake")
    let messages = plan.messages
    Task {
      guard let messages else { return await channel.echo() }
      try await messages.hold(over: connection, on: channel)
    }
    for kind in [MediaKind.audio, .video] { try await send(kind, isOffered: true) }
    try await describe()
    return try await gatheredDescription()
  }

  /// Answers an initial or later offer, and sends media on every transceiver that has not been
  /// stopped.
  package func answer(_ offer: SessionDescription) async throws -> SessionDescription {
    record(offer, isInbound: true)
    try await connection.setRemoteDescription(offer)
    for transceiver in try await connection.transceivers where transceiver.direction != .stopped {
      guard !sending.withLock({ $0.contains(transceiver.id) }) else { continue }
      try await send(transceiver.kind)
    }
    try await describe()
    let answer = try await gatheredDescription()
    try look(at: Exchange(offer: offer, answer: answer, isOwnOffer: false))
    return answer
  }

  /// Offers to change a running call.
  package func offer(changing changes: OfferChanges) async throws -> SessionDescription {
    let transceivers = try await connection.transceivers
    func transceiver(_ mid: String) throws(PeerError) -> UInt32 {
      guard let found = transceivers.first(where: { $0.mid == mid }) else {
        throw PeerError(
          name: "InvalidAccessError", message: "no audio or video m-section has the mid \(mid)")
      }
      return found.id
    }
    for mid in changes.stops { try await connection.stopTransceiver(try transceiver(mid)) }
    for (mid, direction) in changes.directions.sorted(by: { $0.key < $1.key }) {
      guard let direction = TransceiverDirection(rawValue: direction), direction != .stopped else {
        throw PeerError(
          name: "TypeError", message: "\(direction) is not a direction of an m-section")
      }
      try await connection.setDirection(direction, of: try transceiver(mid))
    }
    for addition in changes.additions {
      guard let kind = MediaKind(rawValue: addition) else {
        throw PeerError(name: "TypeError", message: "\(addition) is neither audio nor video")
      }
      try await send(kind)
    }
    try await preferCodecs()
    let offer = try await connection.createOffer(iceRestart: changes.restartsICE)
    try await connection.setLocalDescription(offer)
    return try await gatheredDescription()
  }

  /// Creates and sets the local description, with the preferred codec first.
  func describe() async throws {
    try await preferCodecs()
    try await connection.setLocalDescription()
  }

  /// Prefers the codecs that can carry the H.264 file, or the requested codec if no such file is
  /// sent.
  func preferCodecs() async throws {
    if let clip = plan.clip {
      try await connection.prefer(clip.codecs) { $0.sends }
    } else {
      try await connection.prefer(videoCodec)
    }
  }

  /// Sends media of `kind` on a free transceiver, or on a new one.
  ///
  /// If `isOffered`, video is sent in the plan's simulcast layers, and a kind that the plan does
  /// not send is offered as receive-only.
  ///
  /// Never inlined: the Swift 6.3.1 compiler crashes if it inlines this method into the loop over
  /// kinds.
  @inline(never)
  private func send(_ kind: MediaKind, isOffered: Bool = false) async throws {
    guard let source = plan.source(for: kind) else {
      if isOffered { try await connection.addTransceiver(kind, direction: .recvonly) }
      return
    }
    let info: TransceiverInfo
    if kind == .video, isOffered, !plan.layers.isEmpty {
      info = try await connection.addTransceiver(
        kind, source: source, streamIDs: ["retake"], sendEncodings: plan.layers)
    } else {
      info = try await connection.addTrack(kind, source: source, streamIDs: ["retake"])
    }
    sending.withLock { _ = $0.insert(info.id) }
    feed(info)
  }

  /// Applies the peer's answer.
  /// - Throws: `CallRefusal` if the answer leaves no way to send the requested file, `PeerError` if
  ///   it cannot be applied.
  package func accept(_ answer: SessionDescription) async throws {
    record(answer, isInbound: true)
    let offer = try await connection.localDescription
    try await connection.setRemoteDescription(answer)
    guard let offer else { return }
    try look(at: Exchange(offer: offer, answer: answer, isOwnOffer: true))
  }

  /// Whether an earlier exchange allowed the H.264 file to be sent, in which case a later refusal
  /// does not end the call.
  package var hasAgreed: Bool { agreed.withLock(\.self) }

  /// Refuses an exchange that leaves no way to send the H.264 file, and warns if the peer may be
  /// unable to decode it.
  func look(at exchange: Exchange) throws(CallRefusal) {
    guard let clip = plan.clip else { return }
    if let complaint = clip.complaint(about: exchange) {
      throw CallRefusal(.unprocessable, complaint)
    }
    agreed.withLock { $0 = true }
    guard let warning = clip.warning(about: exchange) else { return }
    let isNew = warned.withLock { $0.insert(warning).inserted }
    if isNew { failures.warn(warning) }
  }

  /// Returns the local description once gathering is complete, so that signaling needs only one
  /// message in each direction.
  package func gatheredDescription() async throws -> SessionDescription {
    try await connection.waitForGatheringComplete()
    guard let description = try await connection.localDescription else {
      throw PeerError(name: "OperationError", message: "no local description was created")
    }
    record(description, isInbound: false)
    return description
  }

  package func record(_ description: SessionDescription, isInbound: Bool) {
    record(description.type.rawValue, description.sdp, isInbound: isInbound)
  }

  /// Writes a signaling message to the take.
  package func record(_ type: String, _ message: String, isInbound: Bool) {
    connection.recordSignaling(
      SignalingMessage(
        isInbound: isInbound, transport: transport, type: type, message: message))
  }

  /// Feeds a transceiver from its device, or from its file once media can flow.
  ///
  /// If the file has become unreadable since the command checked it, the call continues without it.
  func feed(_ transceiver: TransceiverInfo) {
    switch plan.device(for: transceiver.kind) {
    case .microphone?:
      let kept = devices?.attach(connection, sending: transceiver.id, in: session) ?? []
      opened.withLock { $0 += kept }
    case .camera?, .screen?: devices?.sendVideo(on: transceiver.id, of: connection)
    case nil: feedFile(transceiver)
    }
  }

  /// Releases the devices, which stop unless another call uses them.
  package func endDevices() {
    let kept = opened.withLock { opened in
      defer { opened = [] }
      return opened
    }
    withExtendedLifetime(kept) {}
    guard let devices else { return }
    for transceiver in sending.withLock({ $0.sorted() }) {
      devices.endVideo(on: transceiver, of: connection)
    }
  }

  private func feedFile(_ transceiver: TransceiverInfo) {
    guard let path = plan.file(for: transceiver.kind), let format = MediaFileFormat(path: path)
    else { return }
    do throws(MediaFileError) {
      try feeds[transceiver.kind]?.start(
        path, format: format, on: transceiver.id, of: connection,
        framesPerSecond: plan.framesPerSecond)
    } catch {
      failures.report(error, transceiver.kind)
    }
  }

  /// Returns once the connection has been closed or has failed.
  package func waitUntilGone() async {
    for await states in connection.stateChanges {
      if states.dtls == .closed || states.dtls == .failed { return }
      if states.connection == .failed || states.connection == .closed { return }
    }
  }

  /// Returns once the connection has ended, or if the peer does not connect within `limit`.
  func waitUntilGone(connectingWithin limit: Duration) async {
    guard (try? await connection.waitUntilConnected(timeout: limit)) != nil else { return }
    await waitUntilGone()
  }

  /// The progress line's text during a recording.
  package var progress: String { (devices?.level ?? "") + mediaSummary }

  /// A summary of the frames sent and received, for display.
  package var mediaSummary: String {
    let counters = connection.counters
    return "\(counters.audioSent) audio and \(counters.videoFramesSent) video frames sent, "
      + "\(counters.audioReceived) and \(counters.videoFramesReceived) received"
  }
}

// MARK: - Session

// WHIP and WHEP sessions, as client or server; media flows in one direction only.
extension CallPeer {
  /// The signaling type recorded for a fragment of candidates.
  package static let candidateType = "candidate"
  /// The signaling type recorded for a fragment that restarts ICE.
  package static let restartType = "restart"
  /// The signaling type recorded for the end of a session.
  package static let byeType = "bye"

  // MARK: Client

  /// Adds a session client's transceivers: send-only for WHIP, receive-only for WHEP.
  package func prepareOffer(_ kind: SessionProtocol) async throws {
    for media in [MediaKind.audio, .video] {
      switch kind {
      case .whip:
        guard let source = plan.source(for: media) else { continue }
        let info = try await connection.addTransceiver(
          media, direction: .sendonly, source: source, streamIDs: ["retake"],
          sendEncodings: media == .video ? plan.layers : [])
        feed(info)
      case .whep: try await connection.addTransceiver(media, direction: .recvonly)
      }
    }
    try await preferCodecs()
  }

  /// Creates and sets an offer without waiting for candidates.
  package func bareOffer() async throws -> SessionDescription {
    let offer = try await connection.createOffer()
    try await connection.setLocalDescription(offer)
    record(offer, isInbound: false)
    return offer
  }

  /// Restarts ICE and returns the fragment for the server.
  package func restartOffer() async throws -> SDPFragment {
    try await connection.setLocalDescription(try await connection.createOffer(iceRestart: true))
    return try await gatheredFragment()
  }

  // MARK: Server

  /// Answers a client's offer: receives what a publisher sends, or sends what a player requests.
  func answer(_ offer: SessionDescription, _ kind: SessionProtocol) async throws
    -> SessionDescription
  {
    record(offer, isInbound: true)
    try await connection.setRemoteDescription(offer)
    if kind == .whep {
      for transceiver in try await connection.transceivers where transceiver.direction != .stopped {
        guard let source = plan.playerSource(for: transceiver.kind) else { continue }
        let info = try await connection.addTrack(
          transceiver.kind, source: source, streamIDs: ["retake"])
        try await connection.setDirection(.sendonly, of: info.id)
        feed(info)
      }
    }
    try await describe()
    let answer = try await connection.localDescription
    // Nothing is sent to publishers.
    if kind == .whep, let answer {
      try look(at: Exchange(offer: offer, answer: answer, isOwnOffer: false))
    }
    let document = try answer.map { try SDPDocument(parsing: $0.sdp) }
    guard let document, document.sections.contains(where: { !$0.isRejected }) else {
      throw CallRefusal(
        .unprocessable,
        "no m-section of the offer can be accepted: audio must be \(videoCodec.names(of: .audio)),"
          + " video \(videoCodec.names(of: .video)), over RTP with DTLS")
    }
    return try await gatheredDescription()
  }

  /// Restarts ICE at a client's request.
  ///
  /// - Parameter offer: the offer equivalent to the client's fragment.
  /// - Returns: the fragment for the client.
  func followRestart(_ offer: SessionDescription) async throws -> SDPFragment {
    try await connection.setRemoteDescription(offer)
    try await connection.setLocalDescription()
    return try await gatheredFragment()
  }

  /// Passes candidates to the connection, which refuses candidates of another ICE session.
  func addCandidates(of fragment: SDPFragment) async throws {
    for candidate in fragment.candidates {
      try await connection.addICECandidate(
        CandidateInit(
          candidate: candidate.text, sdpMid: candidate.mid,
          usernameFragment: fragment.credentials?.usernameFragment))
    }
    if fragment.hasEnded { try await connection.addICECandidate(nil) }
  }

  // MARK: Gathering

  /// Returns the local ICE parameters with all candidates, once gathering is complete.
  private func gatheredFragment() async throws -> SDPFragment {
    try await connection.waitForGatheringComplete()
    guard let description = try await connection.localDescription else {
      throw PeerError(name: "OperationError", message: "no local description was created")
    }
    let document = try SDPDocument(parsing: description.sdp)
    return document.fragment(
      candidates: document.sections.flatMap(\.candidates), hasEnded: true)
  }
}

extension SendPlan {
  /// Returns the media that a WHEP player receives; nil if none of this kind is sent.
  ///
  /// A player sends nothing that could be echoed, so a tone or test pattern replaces the echo.
  func playerSource(for kind: MediaKind) -> MediaSource? {
    let source = source(for: kind)
    return source == .echo ? Filling.generated(kind) : source
  }
}

extension PeerConnection {
  /// Echoes all messages on the remote peer's data channels until the connection is closed.
  package func echoDataChannels() async {
    await forEachRemoteDataChannel { await $0.echo() }
  }
}

extension DataChannel {
  /// Sends every message back, as fast as the path allows.
  package func echo() async {
    for await message in messages {
      // Messages larger than the peer's maximum are not echoed.
      try? await send(message)
    }
  }
}
