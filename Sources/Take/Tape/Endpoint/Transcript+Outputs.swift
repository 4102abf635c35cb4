import Flow
import FoundationEssentials
import ICE
import Media
package import Peer
import RTP
import SDP
import Secure
import Stats
import Wire

// Writes outputs as rows.
extension Transcript {
  package mutating func append(_ output: PeerOutput) {
    switch output {
    case .datagram(let datagram): append(datagram, at: at, isInbound: false)
    case .request(.bindSocket(let id, let address)):
      add(NetworkRow(direction: .outbound, kind: "bind", request: id, address: address.description))
    case .request(.openStream(let id, let target)):
      add(
        NetworkRow(
          direction: .outbound, kind: target.rowKind, request: id,
          address: "\(target.local) \(target.name)", remote: target.remote.description))
    case .request(.listen(let id, let address)):
      add(
        NetworkRow(direction: .outbound, kind: "listen", request: id, address: address.description))
    case .request(.closeSocket(let address)):
      add(NetworkRow(direction: .outbound, kind: "close", address: address.description))
    case .request(.closeStream(let local, let remote)):
      add(
        NetworkRow(
          direction: .outbound, kind: "close", address: local.description,
          remote: remote.description))
    case .request(.publishName(let name, let address)):
      add(NetworkRow(direction: .outbound, kind: "publish", address: "\(name) \(address)"))
    case .request(.resolveName(let id, let name)):
      add(NetworkRow(direction: .outbound, kind: "resolve", request: id, address: name))
    case .reply(let id, let reply): append(reply, id: id)
    case .event(let event): append(event)
    case .relayed: break
    }
  }

  private mutating func append(_ reply: PeerReply, id: UInt32) {
    var text: String?
    var failure: String?
    switch reply {
    case .done: text = "null"
    case .description(let description):
      text =
        JSONText.object([
          ("sdp", .text(description.sdp)), ("type", .text(description.type.rawValue)),
        ]).text
    case .transceiver(let info): text = CanonicalJSON.text(info)
    case .transceivers(let list): text = CanonicalJSON.text(list)
    case .parameters(let parameters): text = CanonicalJSON.text(parameters)
    case .trackState(let state): text = CanonicalJSON.text(state)
    case .streams(let streams): text = CanonicalJSON.text(streams)
    case .dataChannel(let info): text = CanonicalJSON.text(info)
    case .dataChannels(let list): text = CanonicalJSON.text(list)
    case .sources(let sources): text = CanonicalJSON.text(sources)
    case .stats(let report): text = summary(of: report)
    case .failure(let error): failure = error.description
    }
    add(CallReplyRow(call: id, reply: text, error: failure))
    if case .stats(let report) = reply { append(report, id: id) }
  }

  /// Summarizes a report for the reply to its call: the number of objects, and the ids of objects
  /// that disappeared since the last complete report.
  private mutating func summary(of report: StatsReport) -> String {
    // No other object refers to the connection's own object, so only complete reports contain it. A
    // report about one sender or receiver does not show which other objects disappeared.
    guard report.objects.contains(where: { $0.type == "peer-connection" }) else {
      return String(report.objects.count)
    }
    let gone = notes(EndpointNotes.init).gone(report)
    guard !gone.isEmpty else { return String(report.objects.count) }
    return JSONText.object([
      ("objects", .integer(report.objects.count)), ("gone", .list(gone.map { .text($0) })),
    ]).text
  }

  /// Adds a row for each object of a report that changed since its last row.
  ///
  /// - Parameter id: the number of the call that requested the report; 0 for a periodic report.
  mutating func append(_ report: StatsReport, id: UInt32) {
    let notes = notes(EndpointNotes.init)
    for object in report.objects {
      let members = object.membersJSON
      guard notes.isNews(object.id, members) else { continue }
      add(
        StatRow(
          call: id, id: object.id, type: object.type, timestamp: object.timestamp,
          members: members))
    }
  }

  mutating func append(_ event: PeerEvent) {
    switch event {
    case .state(let transition):
      add(StateRow(machine: transition.machine, from: transition.from, to: transition.to))
    case .negotiationNeeded: detail("negotiationneeded", [])
    case .localCandidate(let candidate):
      detail(
        "icecandidate",
        [
          ("candidate", candidate.map { .text($0.candidate) }),
          ("sdpMLineIndex", candidate?.sdpMLineIndex.map { .integer(Int64($0)) }),
          ("sdpMid", candidate?.sdpMid.map { .text($0) }),
          ("usernameFragment", candidate?.usernameFragment.map { .text($0) }),
        ])
    case .candidate(let isLocal, let candidate): append(candidate, isLocal: isLocal)
    case .candidatePair(let pair): append(pair)
    case .certificate, .keyLog: if format >= 3 { appendSecret(event) }
    case .secured(let transport):
      detail(
        "secured",
        [
          ("version", .text(transport.version)), ("cipherSuite", .text(transport.cipherSuite)),
          ("profile", .text(transport.profile)), ("role", .text(transport.role)),
          ("remoteFingerprint", .text(transport.remoteFingerprint)),
          ("transport", transport.transport == 0 ? nil : .integer(Int64(transport.transport))),
        ])
    case .track(let info):
      add(EventRow(type: "track", detail: CanonicalJSON.text(info)))
    case .trackEnded(let transceiver):
      detail("trackended", [("transceiver", .integer(Int64(transceiver)))])
    case .streamAdded(let stream):
      add(EventRow(type: "addstream", detail: CanonicalJSON.text(stream)))
    case .streamRemoved(let id): detail("removestream", [("id", .text(id))])
    case .trackNegotiated(let track): append(track)
    case .rtcp(let block):
      add(
        RTCPRow(
          direction: Direction(isInbound: block.isInbound), type: block.type, ssrc: block.ssrc,
          fields: block.fields))
    case .frame(let frame): append(frame)
    case .dataChannel(let channel): append(channel)
    case .message(let message): append(message, call: nil)
    case .bufferedAmountLow(let channel):
      detail("bufferedamountlow", [("channel", .integer(Int64(channel)))])
    case .dataChannelError(let channel, let reason):
      detail(
        "datachannelerror", [("channel", .integer(Int64(channel))), ("reason", .text(reason))])
    case .dominantSpeaker(let speaker):
      detail("speaker", speaker.map { members(of: $0) } ?? [])
    case .loudestSpeakers(let volumes): appendLoudest(volumes)
    case .audioSlot(let track, let isHeld):
      detail(isHeld ? "audiosubscribed" : "audiounsubscribed", members(of: track))
    case .speech(let speech): append(speech)
    case .trackChanged, .candidatesRemoved, .gatheringError, .selectedPair, .mutedSpeech,
      .connectionEnded:
      appendNotice(event)
    case .refused(let layer, let reason):
      detail("refused", [("layer", .text(layer)), ("reason", .text(reason))])
    }
  }

  /// Adds a row for a certificate or key log, so that packets can be decrypted without the original
  /// libraries.
  private mutating func appendSecret(_ event: PeerEvent) {
    switch event {
    case .certificate(let bytes):
      add(EventRow(type: "certificate", detail: CanonicalJSON.text(CertificateText(bytes))))
    case .keyLog(let log):
      add(EventRow(type: "keylog", detail: CanonicalJSON.text(KeyLogText(log))))
    default: break
    }
  }

  mutating func detail(_ type: String, _ members: [(String, JSONText?)]) {
    add(EventRow(type: type, detail: JSONText.object(members).text))
  }

  private mutating func append(_ candidate: ICECandidate, isLocal: Bool) {
    let extensions = candidate.extensions
    add(
      CandidateRow(
        type: isLocal ? "local-candidate" : "remote-candidate",
        candidateType: candidate.kind.rawValue, foundation: candidate.foundation,
        component: candidate.component, protocol: candidate.transport,
        priority: candidate.priority, address: candidate.host.description, port: candidate.port,
        relatedAddress: candidate.related?.ip.description,
        relatedPort: candidate.related?.port,
        usernameFragment: extensions.first { $0.name == "ufrag" }?.value,
        extensions: extensions.map { "\($0.name) \($0.value)" }.joined(separator: " ")))
  }

  private mutating func append(_ pair: ICEPairReport) {
    add(
      CandidatePairRow(
        pair: pair.id, local: end(pair.local), localType: pair.local.kind.rawValue,
        remote: end(pair.remote), remoteType: pair.remote.kind.rawValue,
        base: pair.base.description, state: pair.state.rawValue, nominated: pair.nominated,
        selected: pair.selected, priority: pair.priority, requestsSent: pair.requestsSent,
        requestsReceived: pair.requestsReceived, responsesSent: pair.responsesSent,
        responsesReceived: pair.responsesReceived,
        consentRequestsSent: pair.consentRequestsSent,
        currentRoundTrip: pair.currentRoundTrip?.seconds,
        totalRoundTrip: pair.totalRoundTrip.seconds))
  }

  private func end(_ candidate: ICECandidate) -> String {
    candidate.address?.description ?? "\(candidate.host):\(candidate.port)"
  }

  private mutating func append(_ track: TrackRecord) {
    if track.transportSequenceID != 0 {
      notes(EndpointNotes.init).transportSequenceID = track.transportSequenceID
    }
    add(
      TrackRow(
        track: track.transceiver, mid: track.mid, kind: track.kind.rawValue,
        direction: Direction(isInbound: track.isInbound), ssrc: track.ssrc, codec: track.codec,
        payloadType: track.payloadType, clockRate: track.clockRate,
        transportSequenceID: track.transportSequenceID))
  }

  private mutating func append(_ frame: FrameRecord) {
    var format = FormatRow(
      track: frame.transceiver, kind: frame.kind.rawValue,
      direction: Direction(isInbound: frame.isInbound), codec: frame.codec.rawValue,
      ssrc: frame.ssrc, outcome: frame.outcome, isKey: frame.isKey, isVoice: frame.isVoice)
    if frame.kind == .video { (format.width, format.height) = (frame.width, frame.height) }
    if case .audio(let block) = frame.decoded {
      (format.channels, format.samples) = (block.channels, block.frameCount)
    }
    add(
      FrameRow(
        at: at, format: self.format(of: format), rtpTime: WireNumber(number: frame.rtpTime),
        size: frame.bytes.count, quantiser: Int(frame.quantiser), audioLevel: frame.audioLevel,
        peak: frame.peak, energy: frame.energy, digest: digest(of: frame.decoded),
        bytes: keepsMedia ? frame.bytes : nil))
    // If audio was not decoded, only the level in the sender's packets is known.
    let isMute: Bool = if case .none = frame.decoded { frame.isInbound } else { false }
    if frame.kind == .audio, !isMute || frame.audioLevel != nil {
      appendLevel(frame, samples: format.samples ?? AudioBlock.sampleRate / 50)
    }
  }
}

extension StreamTarget {
  /// The kind of connection, as named in rows.
  fileprivate var rowKind: String {
    switch kind {
    case .server: "connect"
    case .secureServer: "connect-tls"
    case .peer: "connect-peer"
    }
  }
}

// MARK: - KeyLogText

/// The secrets of a DTLS association, as JSON in the detail of a `keylog` event.
///
/// Random values and the master secret are in hexadecimal, as in NSS key logs; certificates are in
/// base64, as in statistics.
package struct KeyLogText: Codable {
  private var transport: Int?
  private var clientRandom: String
  private var serverRandom: String
  private var masterSecret: String
  private var localCertificate: Data
  private var remoteCertificate: Data
  /// The rest of the remote certificate chain; nil if the peer sent no other certificate.
  private var remoteIssuers: [Data]?

  init(_ log: KeyLog) {
    transport = log.transport == 0 ? nil : log.transport
    clientRandom = hexadecimal(log.secrets.clientRandom)
    serverRandom = hexadecimal(log.secrets.serverRandom)
    masterSecret = hexadecimal(log.secrets.masterSecret)
    localCertificate = Data(log.localCertificate)
    remoteCertificate = Data(log.remoteCertificate)
    remoteIssuers = log.remoteIssuers.isEmpty ? nil : log.remoteIssuers.map { Data($0) }
  }

  /// The decoded secrets; nil if one of the values is malformed.
  package var log: KeyLog? {
    guard let client = [UInt8](hexadecimal: clientRandom),
      let server = [UInt8](hexadecimal: serverRandom),
      let master = [UInt8](hexadecimal: masterSecret)
    else { return nil }
    return KeyLog(
      transport: transport ?? 0,
      secrets: DTLSSecrets(clientRandom: client, serverRandom: server, masterSecret: master),
      localCertificate: [UInt8](localCertificate), remoteCertificate: [UInt8](remoteCertificate),
      remoteIssuers: (remoteIssuers ?? []).map { [UInt8]($0) })
  }
}

/// A local certificate, as JSON in the detail of a `certificate` event.
package struct CertificateText: Codable {
  private var certificate: Data

  init(_ bytes: [UInt8]) { certificate = Data(bytes) }

  /// The certificate in DER.
  package var bytes: [UInt8] { [UInt8](certificate) }
}

/// The result of a DTLS handshake, as JSON in the detail of a `secured` event.
package struct SecuredText: Codable {
  package var version: String
  package var cipherSuite: String
  package var profile: String
  package var role: String
}
