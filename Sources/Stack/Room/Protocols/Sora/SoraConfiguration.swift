import Wire

/// How a channel of WebRTC SFU Sora is entered, by the names and with the defaults of the service's
/// own SDKs.
public struct SoraConfiguration: Hashable, Sendable {
  /// Which way media goes.
  public enum Role: String, Hashable, Sendable, CaseIterable {
    /// Local media only.
    case sendonly
    /// Media of others only.
    case recvonly
    /// Both.
    case sendrecv
  }

  /// Whose media a spotlight channel sends in full.
  public enum Spotlight: Hashable, Sendable {
    /// Everybody's.
    case disabled
    /// That of the last who spoke; how many of them, nil leaves it to the server.
    case enabled(number: Int?)
  }

  /// The addresses of signaling, `wss://host/signaling`, tried in order.
  public var urlCandidates: [String]
  /// The channel.
  public var channelId: String
  /// Which way media goes.
  public var role: Role
  /// Whether several may send in the channel; nil is yes, as servers have it by now.
  public var multistreamEnabled: Bool?
  /// What the local stream is called, by which an application tells it from those it receives.
  public var publisherStreamId = "mainStream"
  /// Whether the camera is on at first; else it is not started, and the local video is black.
  public var initialCameraEnabled = true
  /// Whether the microphone is on at first; else it is stopped, and the local audio is silent.
  public var initialMicrophoneEnabled = true
  /// How long entering may take, in seconds, 1 to 3600.
  public var connectionTimeout = 30
  /// The name of the own client, for others; nil: none.
  public var clientId: String?
  /// What connections of one participant share; nil: none.
  public var bundleId: String?
  /// What the service's authentication gets, as JSON; nil: nothing.
  public var signalingConnectMetadata: String?
  /// What others are told of this side, as JSON; nil: nothing.
  public var signalingNotifyMetadata: String?
  /// Whether there is video, and audio.
  public var videoEnabled = true
  /// Whether there is audio.
  public var audioEnabled = true
  /// The codec of video by its name in Sora (`VP8`, `VP9`, ...); nil leaves it to the server.
  public var videoCodec: String?
  /// The bit rate of video in kbit/s; nil leaves it to the server.
  public var videoBitRate: Int?
  /// Whether video is sent in several layers.
  public var simulcastEnabled = false
  /// Which layer is received: `r0`, `r1` or `r2`; nil leaves it to the server.
  public var simulcastRid: String?
  /// Whether the channel is a spotlight.
  public var spotlightEnabled = Spotlight.disabled
  /// Whether signaling goes on over data channels; nil leaves it to the server.
  public var dataChannelSignaling: Bool?
  /// Whether the loss of the WebSocket then is none; nil leaves it to the server.
  public var ignoreDisconnectWebSocket: Bool?
  /// Labels of data channels for messages in both directions; each begins with `#`.
  public var messagingLabels: [String] = []

  /// What a layer above keeps with the configuration: its handlers.
  package var attachment: SoraAttachment?

  /// Enters a channel at one address.
  public init(url: String, channelId: String, role: Role, multistreamEnabled: Bool? = nil) {
    self.init(
      urlCandidates: [url], channelId: channelId, role: role,
      multistreamEnabled: multistreamEnabled)
  }

  /// Enters a channel at the first of several addresses that answers.
  public init(
    urlCandidates: [String], channelId: String, role: Role, multistreamEnabled: Bool? = nil
  ) {
    self.urlCandidates = urlCandidates
    self.channelId = channelId
    self.role = role
    self.multistreamEnabled = multistreamEnabled
  }

  /// The protocol as a room speaks it.
  package var signaling: SignalingConfiguration {
    SignalingConfiguration(
      protocolName: SoraMachine.name, urls: urlCandidates, options: options)
  }

  /// The intent that enters the channel.
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

  /// `false`, or what is asked for; nil if nothing is.
  private var video: String? {
    guard videoEnabled else { return "false" }
    guard videoCodec != nil || videoBitRate != nil else { return nil }
    return JSONValue.members(
      ("codec_type", videoCodec.map { .text($0) }),
      ("bit_rate", videoBitRate.map { .integer(Int64($0)) })
    ).json
  }
}

/// An object that a layer above keeps with a configuration; configurations do not differ by it.
package struct SoraAttachment: Hashable, Sendable {
  package let object: any Sendable

  package init(_ object: any Sendable) { self.object = object }

  package static func == (left: SoraAttachment, right: SoraAttachment) -> Bool { true }
  package func hash(into hasher: inout Hasher) {}
}
