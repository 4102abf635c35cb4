import Flow
import ICE
import Media
package import Peer
import RTP
import SDP
import Stats
import Wire

// The rows of what followed from an input.
extension Transcript {
  /// Adds the rows of an output.
  package mutating func append(_ output: borrowing PeerOutput) {
    switch copy output {
    case .datagram(let datagram): append(datagram, at: at, isInbound: false)
    case .bindSocket(let id, let address):
      network("bind", isInbound: false, request: id, address: address.description)
    case .openStream(let id, let target):
      network(
        target.rowKind, isInbound: false, request: id, address: "\(target.local) \(target.name)",
        remote: target.remote.description)
    case .listen(let id, let address):
      network("listen", isInbound: false, request: id, address: address.description)
    case .closeSocket(let address):
      network("close", isInbound: false, address: address.description)
    case .closeStream(let local, let remote):
      network(
        "close", isInbound: false, address: local.description, remote: remote.description)
    case .publishName(let name, let address):
      network("publish", isInbound: false, address: "\(name) \(address)")
    case .resolveName(let id, let name):
      network("resolve", isInbound: false, request: id, address: name)
    case .reply(let id, let reply): append(reply, id: id)
    case .event(let event): append(event)
    }
  }

  private mutating func append(_ reply: PeerReply, id: UInt32) {
    var text: String?
    var failure: String?
    switch reply {
    case .done: text = "null"
    case .description(let description):
      text =
        DetailText([
          ("sdp", .text(description.sdp)), ("type", .text(description.type.rawValue)),
        ]).json
    case .transceiver(let info): text = CanonicalJSON.text(info)
    case .transceivers(let list): text = CanonicalJSON.text(list)
    case .parameters(let parameters): text = CanonicalJSON.text(parameters)
    case .streams(let streams): text = CanonicalJSON.text(streams)
    case .dataChannel(let info): text = CanonicalJSON.text(info)
    case .dataChannels(let list): text = CanonicalJSON.text(list)
    case .sources(let sources): text = CanonicalJSON.text(sources)
    case .stats(let report): text = summary(of: report)
    case .failure(let error): failure = error.description
    }
    stampedRow(.callReply)
    add(.number(id))
    add(.text(text))
    add(.text(failure))
    if case .stats(let report) = reply { append(report, id: id) }
  }

  /// How many objects a report has; when some of the last whole report are gone, which ones.
  private mutating func summary(of report: StatsReport) -> String {
    // The report of a single sender or receiver says nothing about other objects; nothing refers
    // to the connection's own object, so that one is in whole reports alone.
    guard report.objects.contains(where: { $0.type == "peer-connection" }) else {
      return String(report.objects.count)
    }
    let gone = gone(report)
    guard !gone.isEmpty else { return String(report.objects.count) }
    let names = gone.map { jsonString($0) }.joined(separator: ",")
    return "{\"objects\":\(report.objects.count),\"gone\":[\(names)]}"
  }

  private mutating func append(_ report: StatsReport, id: UInt32) {
    for object in report.objects {
      let members = object.membersJSON
      guard isNews(object.id, members) else { continue }
      stampedRow(.stat)
      add(.number(id))
      add(.text(object.id))
      add(.text(object.type))
      add(.measure(object.timestamp))
      add(.text(members))
    }
  }

  private mutating func append(_ event: PeerEvent) {
    switch event {
    case .state(let transition):
      stampedRow(.state)
      add(.text(transition.machine))
      add(.text(transition.from))
      add(.text(transition.to))
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
      stampedRow(.event)
      add(.text("track"))
      add(.text(CanonicalJSON.text(info)))
    case .trackEnded(let transceiver):
      detail("trackended", [("transceiver", .integer(Int64(transceiver)))])
    case .streamAdded(let stream):
      stampedRow(.event)
      add(.text("addstream"))
      add(.text(CanonicalJSON.text(stream)))
    case .streamRemoved(let id): detail("removestream", [("id", .text(id))])
    case .trackNegotiated(let track): append(track)
    case .rtcp(let block):
      stampedRow(.rtcp)
      add(.text(directionName(block.isInbound)))
      add(.text(block.type))
      add(.number(block.ssrc))
      add(.text(block.fields))
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
    case .refused(let layer, let reason):
      detail("refused", [("layer", .text(layer)), ("reason", .text(reason))])
    }
  }

  /// What lets a take outlive the libraries that it was made with; format 2 did not have it.
  private mutating func appendSecret(_ event: PeerEvent) {
    switch event {
    case .certificate(let bytes):
      stampedRow(.event)
      add(.text("certificate"))
      add(.text(CanonicalJSON.text(CertificateText(bytes))))
    case .keyLog(let log):
      stampedRow(.event)
      add(.text("keylog"))
      add(.text(CanonicalJSON.text(KeyLogText(log))))
    default: break
    }
  }

  mutating func detail(_ type: String, _ members: [(String, StatsValue?)]) {
    stampedRow(.event)
    add(.text(type))
    add(.text(DetailText(members).json))
  }

  private mutating func append(_ candidate: ICECandidate, isLocal: Bool) {
    stampedRow(.candidate)
    add(.text(isLocal ? "local-candidate" : "remote-candidate"))
    add(.text(candidate.kind.rawValue))
    add(.text(candidate.foundation))
    add(.number(candidate.component))
    add(.text(candidate.transport))
    add(.number(candidate.priority))
    add(.text(candidate.host.description))
    add(.number(candidate.port))
    add(.text(candidate.related?.ip.description))
    add(.number(candidate.related?.port))
    add(.text(candidate.extensions.first { $0.name == "ufrag" }?.value))
    add(.text(candidate.extensions.map { "\($0.name) \($0.value)" }.joined(separator: " ")))
  }

  private mutating func append(_ pair: ICEPairReport) {
    stampedRow(.candidatePair)
    add(.number(pair.id))
    add(.text(end(pair.local)))
    add(.text(pair.local.kind.rawValue))
    add(.text(end(pair.remote)))
    add(.text(pair.remote.kind.rawValue))
    add(.text(pair.base.description))
    add(.text(pair.state.rawValue))
    add(.flag(pair.nominated))
    add(.flag(pair.selected))
    add(.number(pair.priority))
    add(.number(pair.requestsSent))
    add(.number(pair.requestsReceived))
    add(.number(pair.responsesSent))
    add(.number(pair.responsesReceived))
    add(.number(pair.consentRequestsSent))
    add(.measure(pair.currentRoundTrip?.seconds))
    add(.measure(pair.totalRoundTrip.seconds))
  }

  private func end(_ candidate: ICECandidate) -> String {
    candidate.address?.description ?? "\(candidate.host):\(candidate.port)"
  }

  private mutating func append(_ track: TrackRecord) {
    if track.transportSequenceID != 0 { transportSequenceID = track.transportSequenceID }
    stampedRow(.track)
    add(.number(track.transceiver))
    add(.text(track.mid))
    add(.text(track.kind.rawValue))
    add(.text(directionName(track.isInbound)))
    add(.number(track.ssrc))
    add(.text(track.codec))
    add(.number(track.payloadType))
    add(.number(track.clockRate))
    add(.number(track.transportSequenceID))
  }

  private mutating func append(_ frame: FrameRecord) {
    var shape = FrameShape(
      transceiver: frame.transceiver, kind: frame.kind, isInbound: frame.isInbound,
      codec: frame.codec.rawValue, ssrc: frame.ssrc, outcome: frame.outcome, isKey: frame.isKey,
      isVoice: frame.isVoice)
    if frame.kind == .video { (shape.width, shape.height) = (frame.width, frame.height) }
    if case .audio(let block) = frame.decoded {
      (shape.channels, shape.samples) = (block.channels, block.frameCount)
    }
    let format = formatNumber(FormatKey(peer: peer, frame: shape))
    row(.frame)
    add(.number(at.nanoseconds))
    add(.number(format))
    add(.signed(frame.rtpTime))
    add(.number(frame.bytes.count))
    add(.number(frame.quantiser))
    add(.number(frame.audioLevel))
    add(.number(frame.peak))
    add(.number(frame.energy))
    add(digest(of: frame.decoded))
    add(keepsMedia ? .blob(frame.bytes) : .null)
    if frame.kind == .audio {
      appendLevel(frame, samples: shape.samples ?? AudioBlock.sampleRate / 50)
    }
  }
}

extension StreamTarget {
  /// How a row calls the question for such a connection.
  fileprivate var rowKind: String {
    switch kind {
    case .server: "connect"
    case .secureServer: "connect-tls"
    case .peer: "connect-peer"
    }
  }
}
