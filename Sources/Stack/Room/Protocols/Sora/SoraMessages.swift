import Peer
import SDP
import Wire

/// The parameters for joining a channel of WebRTC SFU Sora, with the names and defaults of the
/// service's own SDKs.
public struct SoraConfiguration: Hashable, Sendable {
  /// Whether the client sends media, receives it, or both.
  public enum Role: String, Hashable, Sendable, CaseIterable {
    /// Send only.
    case sendonly
    /// Receive only.
    case recvonly
    /// Send and receive.
    case sendrecv
  }

  /// The participants whose media a spotlight channel sends in full quality.
  public enum Spotlight: Hashable, Sendable {
    /// All participants: the channel is not a spotlight.
    case disabled
    /// The most recent speakers; nil leaves their number to the server.
    case enabled(number: Int?)
  }

  /// The signaling URLs, `wss://host/signaling`, tried in order.
  public var urlCandidates: [String]
  /// The identifier of the channel to join.
  public var channelId: String
  /// Whether the client sends media, receives it, or both.
  public var role: Role
  /// Whether several participants may send in the channel; nil means yes, the servers' current
  /// default.
  public var multistreamEnabled: Bool?
  /// The local stream's identifier, which distinguishes it from received streams.
  public var publisherStreamId = "mainStream"
  /// Whether the camera is on initially; otherwise it is not started, and the local video is black.
  public var initialCameraEnabled = true
  /// Whether the microphone is on initially; otherwise it is stopped, and the local audio is
  /// silent.
  public var initialMicrophoneEnabled = true
  /// The time limit for joining in seconds, 1 to 3600.
  public var connectionTimeout = 30
  /// The client's name for other participants, if any.
  public var clientId: String?
  /// The identifier that all connections of one participant share, if any.
  public var bundleId: String?
  /// Authentication metadata for the service, as JSON, if any.
  public var signalingConnectMetadata: String?
  /// Metadata for other participants, as JSON, if any.
  public var signalingNotifyMetadata: String?
  /// Whether video is sent and received, as the role permits.
  public var videoEnabled = true
  /// Whether audio is sent and received, as the role permits.
  public var audioEnabled = true
  /// The video codec's name in Sora (`VP8`, `VP9`, ...); nil leaves it to the server.
  public var videoCodec: String?
  /// The video bit rate in kbit/s; nil leaves it to the server.
  public var videoBitRate: Int?
  /// Whether video is sent as simulcast.
  public var simulcastEnabled = false
  /// The received layer: `r0`, `r1` or `r2`; nil leaves it to the server.
  public var simulcastRid: String?
  /// Whether the channel is a spotlight, and for how many speakers.
  public var spotlightEnabled = Spotlight.disabled
  /// Whether signaling moves to data channels; nil leaves it to the server.
  public var dataChannelSignaling: Bool?
  /// Whether the session continues without the WebSocket once signaling uses data channels; nil
  /// leaves it to the server.
  public var ignoreDisconnectWebSocket: Bool?
  /// Labels of data channels for messages in both directions; each must start with `#`.
  public var messagingLabels: [String] = []

  /// An object that an upper layer stores here, such as the application's handlers.
  package var attachment: SoraAttachment?

  /// Creates a configuration for a server with a single signaling URL.
  public init(url: String, channelId: String, role: Role, multistreamEnabled: Bool? = nil) {
    self.init(
      urlCandidates: [url], channelId: channelId, role: role,
      multistreamEnabled: multistreamEnabled)
  }

  /// Creates a configuration with several URLs; the first one that responds is used.
  public init(
    urlCandidates: [String], channelId: String, role: Role, multistreamEnabled: Bool? = nil
  ) {
    self.urlCandidates = urlCandidates
    self.channelId = channelId
    self.role = role
    self.multistreamEnabled = multistreamEnabled
  }

  /// The room protocol's configuration.
  package var signaling: SignalingConfiguration {
    SignalingConfiguration(
      protocolName: SoraMachine.name, urls: urlCandidates, options: options)
  }

  /// The intent to join the channel.
  package var join: RoomJoin {
    let role: ConnectionRole =
      switch role {
      case .sendonly: .up
      case .recvonly: .down
      case .sendrecv: .both
      }
    return RoomJoin(room: channelId, role: role, metadata: signalingConnectMetadata)
  }

  private var options: [String: String] {
    var options = ["connection_timeout": String(connectionTimeout)]
    options["multistream"] = multistreamEnabled.map { $0 ? "true" : "false" }
    options["client_id"] = clientId
    options["bundle_id"] = bundleId
    options["signaling_notify_metadata"] = signalingNotifyMetadata
    if !audioEnabled { options["audio"] = "false" }
    options["video"] = video
    if simulcastEnabled { options["simulcast"] = "true" }
    options["simulcast_rid"] = simulcastRid
    if case .enabled(let number) = spotlightEnabled {
      options["spotlight"] = "true"
      options["spotlight_number"] = number.map { String($0) }
    }
    options["data_channel_signaling"] = dataChannelSignaling.map { $0 ? "true" : "false" }
    options["ignore_disconnect_websocket"] = ignoreDisconnectWebSocket.map { $0 ? "true" : "false" }
    if !messagingLabels.isEmpty {
      let channels = messagingLabels.map {
        JSONValue.members(("label", .text($0)), ("direction", "sendrecv"))
      }
      options["data_channels"] = JSONValue.list(channels).json
    }
    return options
  }

  /// The value of `video` as JSON: `false`, or the requested parameters; nil if no parameters are
  /// requested.
  private var video: String? {
    guard videoEnabled else { return "false" }
    guard videoCodec != nil || videoBitRate != nil else { return nil }
    return JSONValue.members(
      ("codec_type", videoCodec.map { .text($0) }),
      ("bit_rate", videoBitRate.map { .integer(Int64($0)) })
    ).json
  }
}

/// An object that an upper layer stores with a configuration; ignored by comparison.
package struct SoraAttachment: Hashable, Sendable {
  package let object: any Sendable

  package init(_ object: any Sendable) { self.object = object }

  package static func == (left: SoraAttachment, right: SoraAttachment) -> Bool { true }
  package func hash(into hasher: inout Hasher) {}
}

// MARK: - SoraMessages

/// An offer from a Sora server (`type: offer`).
struct SoraOffer {
  var connection: String
  var session: String?
  var sdp: String
  var servers: ICEServers
  /// The local video's section, to which the layers apply; nil if there is none.
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
  /// The length in bytes of the sender's name, which may precede an application's message.
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

  /// Whether the channel belongs to the application.
  var isOwn: Bool { label.hasPrefix("#") }

  static let expandedMaximum = 4 << 20

  /// Returns a message's bytes, or nil if they are not in the channel's format.
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
  /// Parses one of an offer's encodings; nil if it has no rid.
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

/// The client's first message (`type: connect`).
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

  /// Wraps the access token in the form that services based on Sora expect.
  private static func access(_ token: String) -> JSONValue {
    .members(("access_token", .text(token)))
  }
}
