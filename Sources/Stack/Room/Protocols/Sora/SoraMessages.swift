import Peer
import SDP
import Wire

/// An offer of a Sora server (`type: offer`).
struct SoraOffer {
  var connection: String
  var session: String?
  var sdp: String
  var servers: ICEServers
  /// The section of the local video, for its layers.
  var videoMid: String?
  var layers: [SendLayer]
  var channels: [SoraChannel]

  init?(_ value: JSONValue) {
    guard let sdp = value["sdp"]?.text, let connection = value["connection_id"]?.text else {
      return nil
    }
    self.sdp = sdp
    self.connection = connection
    session = value["session_id"]?.text
    let config = value["config"]
    let list = (config?["iceServers"]?.elements ?? []).prefix(16).map { server in
      ICEServerConfiguration(
        urls: server["urls"]?.elements.compactMap(\.text) ?? [], username: server["username"]?.text,
        credential: server["credential"]?.text)
    }
    let policy = config?["iceTransportPolicy"]?.text.flatMap(ICETransportPolicy.init(rawValue:))
    servers = ICEServers(list, policy: policy ?? .all)
    videoMid = value["mid"]?["video"]?.text
    layers = (value["encodings"]?.elements ?? []).prefix(8).compactMap(SendLayer.init(sora:))
    channels = (value["data_channels"]?.elements ?? []).prefix(64).compactMap(SoraChannel.init)
  }
}

/// A data channel that the server opens.
struct SoraChannel: Hashable, Sendable {
  static let signaling = "signaling"
  static let notify = "notify"
  static let push = "push"
  static let stats = "stats"
  /// With a sender in front of an application's messages, the length of its name in bytes.
  static let senderLength = 26

  var label: String
  var isCompressed: Bool
  var carriesSender: Bool

  init?(_ value: JSONValue) {
    guard let label = value["label"]?.text else { return nil }
    self.label = label
    isCompressed = value["compress"]?.flag ?? false
    carriesSender =
      value["header"]?.elements.contains {
        $0["type"]?.text == "sender_connection_id"
      } ?? false
  }

  /// Whether it belongs to the application.
  var isOwn: Bool { label.hasPrefix("#") }

  static let expandedMaximum = 4 << 20

  /// The bytes of a message; nil if it is not in the channel's format.
  func bytes(_ frame: SignalingFrame) -> [UInt8]? {
    let bytes: [UInt8]
    switch frame {
    case .text(let text): bytes = Array(text.utf8)
    case .binary(let binary): bytes = binary
    }
    guard isCompressed else { return bytes }
    return try? Zlib.expanded(bytes, limit: SoraChannel.expandedMaximum)
  }

  func frame(_ text: String) -> SignalingFrame {
    isCompressed ? .binary(Zlib.compressed(Array(text.utf8))) : .text(text)
  }
}

extension SendLayer {
  /// Parses an encoding of an offer.
  init?(sora value: JSONValue) {
    guard let rid = value["rid"]?.text else { return nil }
    self.init(
      rid: rid, isActive: value["active"]?.flag ?? true,
      maximumBitrate: value["maxBitrate"]?.integer.flatMap { UInt64(exactly: $0) },
      maximumFrameRate: value["maxFramerate"]?.number,
      scaleResolutionDownBy: value["scaleResolutionDownBy"]?.number,
      scalabilityMode: value["scalabilityMode"]?.text)
  }
}

/// The first message of a client (`type: connect`).
enum SoraConnect {
  /// Options passed through in this order: as JSON if they are valid JSON, or else as text.
  static let names = [
    "client_id", "bundle_id", "audio", "video", "simulcast", "simulcast_multicodec",
    "simulcast_rid", "spotlight", "spotlight_number", "spotlight_focus_rid",
    "spotlight_unfocus_rid", "data_channel_signaling", "ignore_disconnect_websocket",
    "data_channels", "forwarding_filters", "audio_streaming_language_code",
    "signaling_notify_metadata",
  ]

  static func message(_ join: RoomJoin, _ options: [String: String], isRedirected: Bool)
    -> JSONValue
  {
    let role =
      switch join.role {
      case .up: "sendonly"
      case .down: "recvonly"
      case .both: "sendrecv"
      }
    var members: [JSONValue.Member] = [
      .init("type", "connect"), .init("role", .text(role)),
      .init("channel_id", .text(join.room)),
      .init("multistream", .flag(options["multistream"] != "false")),
      .init("sora_client", "Retake"),
    ]
    if let metadata = JSONValue(text: join.metadata) ?? join.token.map(access) {
      members.append(.init("metadata", metadata))
    }
    for name in names {
      guard let option = options[name] else { continue }
      members.append(.init(name, JSONValue(text: option) ?? .text(option)))
    }
    if !join.displayName.isEmpty, options["client_id"] == nil {
      members.append(.init("client_id", .text(join.displayName)))
    }
    if isRedirected { members.append(.init("redirect", true)) }
    return .object(members)
  }

  /// The access token as services on top of Sora expect it.
  private static func access(_ token: String) -> JSONValue {
    .members(("access_token", .text(token)))
  }
}
