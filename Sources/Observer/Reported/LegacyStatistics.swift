package import Wire

/// Adds W3C names to statistics that predate them, keeping the original members.
///
/// The `goog...` members in Chromium's callback-based getStats (until 2022) are all strings.
package enum LegacyStatistics {
  /// Derives an object's type from its id, for dumps from 2017 to 2022 that lack types.
  static func type(ofID id: String) -> String {
    for (prefix, type) in typesByPrefix where id.hasPrefix(prefix) { return type }
    return ""
  }

  private static let typesByPrefix = [
    ("RTCInboundRTP", "inbound-rtp"), ("RTCOutboundRTP", "outbound-rtp"),
    ("RTCRemoteInboundRtp", "remote-inbound-rtp"),
    ("RTCRemoteOutboundRTP", "remote-outbound-rtp"), ("RTCIceCandidatePair_", "candidate-pair"),
    ("RTCIceCandidate_", "local-candidate"), ("RTCTransport_", "transport"),
    ("RTCCertificate_", "certificate"), ("RTCCodec_", "codec"),
    ("RTCPeerConnection", "peer-connection"), ("RTCDataChannel", "data-channel"),
    ("RTCMediaStreamTrack_", "track"), ("RTCMediaStream_", "stream"),
    ("RTCAudioSource_", "media-source"), ("RTCVideoSource_", "media-source"),
  ]

  /// Adds the W3C members that correspond to the legacy ones.
  package static func translated(_ members: [JSONValue.Member], id: String) -> [JSONValue.Member] {
    var object = Object(members: members)
    let type = object.text("type") ?? ""
    switch type {
    case "local-candidate", "remote-candidate":
      if object.flag("isRemote") == true { object.set("type", .text("remote-candidate")) }
      object.copy("ip", to: "address")
    case "localcandidate", "remotecandidate":
      object.set("type", .text(type == "localcandidate" ? "local-candidate" : "remote-candidate"))
      object.copy("ipAddress", to: "address")
      object.copy("transport", to: "protocol")
      object.copyNumber("portNumber", to: "port")
      object.replace(
        "candidateType",
        [
          ("local", "host"), ("stun", "srflx"), ("serverreflexive", "srflx"),
          ("peerreflexive", "prflx"), ("relayed", "relay"),
        ])
    case "ssrc": translateStream(&object, id)
    case "googCandidatePair": translatePair(&object)
    case "candidate-pair", "candidatepair":
      // Firefox used the second name until 2017. Its state `cancelled` means that another pair made
      // a check unnecessary. That is not a failure, and webrtc-stats has no name for it, so the
      // state is kept.
      object.set("type", .text("candidate-pair"))
      object.replace("state", [("inprogress", "in-progress")])
    case "inboundrtp", "outboundrtp":
      let isRemote = object.flag("isRemote") == true
      object.set(
        "type",
        .text((isRemote ? "remote-" : "") + (type == "inboundrtp" ? "inbound-rtp" : "outbound-rtp"))
      )
    default: break
    }
    if object.text("kind") == nil { object.copy("mediaType", to: "kind") }
    return object.members
  }

  private static func translateStream(_ object: inout Object, _ id: String) {
    let isInbound = id.hasSuffix("_recv")
    object.set("type", .text(isInbound ? "inbound-rtp" : "outbound-rtp"))
    for name in [
      "ssrc", "packetsLost", "packetsReceived", "packetsSent", "bytesReceived", "bytesSent",
    ] {
      object.makeNumber(name)
    }
    let renamed = [
      ("googNacksReceived", "nackCount"), ("googNacksSent", "nackCount"),
      ("googPlisReceived", "pliCount"), ("googPlisSent", "pliCount"),
      ("googFirsReceived", "firCount"), ("googFirsSent", "firCount"),
      ("googFrameWidthReceived", "frameWidth"), ("googFrameHeightReceived", "frameHeight"),
      ("googFrameWidthSent", "frameWidth"), ("googFrameHeightSent", "frameHeight"),
      ("googFrameRateDecoded", "framesPerSecond"), ("googFrameRateSent", "framesPerSecond"),
    ]
    for (from, to) in renamed { object.copyNumber(from, to: to) }
    object.copyNumber("googJitterReceived", to: "jitter", times: 0.001)
    object.copyNumber("audioOutputLevel", to: "audioLevel", times: 1 / 32767)
    object.copyNumber("audioInputLevel", to: "audioLevel", times: 1 / 32767)
    object.copy("googTrackId", to: "trackIdentifier")
    for (member, reason) in [
      ("googBandwidthLimitedResolution", "bandwidth"), ("googCpuLimitedResolution", "cpu"),
    ] where object.flag(member) == true {
      object.set("qualityLimitationReason", .text(reason))
    }
  }

  private static func translatePair(_ object: inout Object) {
    object.set("type", .text("candidate-pair"))
    object.set("selected", .flag(object.flag("googActiveConnection") == true))
    object.set("state", .text(object.flag("googReadable") == true ? "succeeded" : "in-progress"))
    for name in ["bytesReceived", "bytesSent", "packetsSent", "requestsSent", "responsesReceived"] {
      object.makeNumber(name)
    }
    object.copyNumber("googRtt", to: "currentRoundTripTime", times: 0.001)
  }

  private struct Object {
    var members: [JSONValue.Member]

    func value(_ name: String) -> JSONValue? { members.last { $0.name == name }?.value }
    func text(_ name: String) -> String? { value(name)?.text }

    func flag(_ name: String) -> Bool? {
      switch value(name) {
      case .flag(let flag)?: flag
      case .text("true")?: true
      case .text("false")?: false
      default: nil
      }
    }

    func number(_ name: String) -> Double? {
      value(name).flatMap { $0.number ?? $0.text.flatMap(Double.init) }
    }

    mutating func set(_ name: String, _ value: JSONValue) {
      if let place = members.lastIndex(where: { $0.name == name }) {
        members[place].value = value
      } else {
        members.append(JSONValue.Member(name, value))
      }
    }

    mutating func copy(_ from: String, to name: String) {
      guard value(name) == nil, let value = value(from) else { return }
      set(name, value)
    }

    mutating func copyNumber(_ from: String, to name: String, times factor: Double = 1) {
      guard value(name) == nil, let number = number(from), number.isFinite else { return }
      set(name, Self.value(number * factor))
    }

    mutating func makeNumber(_ name: String) {
      guard text(name) != nil, let number = number(name), number.isFinite else { return }
      set(name, Self.value(number))
    }

    mutating func replace(_ name: String, _ words: [(String, String)]) {
      for (old, new) in words where text(name) == old { set(name, .text(new)) }
    }

    private static func value(_ number: Double) -> JSONValue {
      Int64(exactly: number).map { .integer($0) } ?? .number(number)
    }
  }
}
