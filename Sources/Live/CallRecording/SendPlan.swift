package import Live
package import Media
package import Peer
import SCTP
package import Wire

/// The media that a recording's peers send: files and devices, or an echo or test pattern for a
/// kind of media that has neither.
package struct SendPlan: Sendable {
  /// The source for media without a file or device.
  package enum Filling: Hashable, Sendable {
    /// Echoes the received media.
    case echo
    /// Sends a tone and a test pattern.
    case pattern

    /// Returns the tone or test pattern for a kind of media.
    static func generated(_ kind: MediaKind) -> MediaSource {
      switch kind {
      case .audio: .tone(hertz: 440, pauseSeconds: 0)
      case .video: .pattern(width: 640, height: 360, framesPerSecond: 30)
      }
    }
  }

  /// The source for kinds of media without a file or device; nil means the pattern, or nothing if
  /// any device is sent.
  private let filling: Filling?
  private let files: [MediaKind: String]
  /// The devices that are sent and played.
  package let devices: DevicePlan
  /// The H.264 file's requested frame rate; nil for the file's own.
  package let framesPerSecond: Double?
  /// The H.264 file, if any.
  package let clip: H264Clip?
  /// The messages that the peer sends on its own data channel; nil to echo received messages.
  package let messages: Conversation?
  /// The simulcast layers of local offers, the largest first; empty for one stream.
  package let layers: [RTPEncoding]

  package init(
    _ filling: Filling?, files: [MediaKind: String] = [:], devices: DevicePlan = .none,
    framesPerSecond: Double? = nil, clip: H264Clip? = nil, messages: Conversation? = nil,
    layers: [RTPEncoding] = []
  ) {
    self.filling = filling
    self.files = files
    self.devices = devices
    self.framesPerSecond = framesPerSecond
    self.clip = clip
    self.messages = messages
    self.layers = layers
  }

  /// Returns the source for a kind of media: its file or device, or else the filling; nil if
  /// nothing is sent.
  ///
  /// If a device is sent and no filling was requested, a kind without a device or file is not sent.
  package func source(for kind: MediaKind) -> MediaSource? {
    if files[kind] != nil || device(for: kind) != nil { return .application }
    if filling == nil, !devices.sends.isEmpty { return nil }
    return filling == .echo ? .echo : Filling.generated(kind)
  }

  /// Returns the device that captures a kind of media; nil if none does.
  package func device(for kind: MediaKind) -> SendDevice? { devices.sends.carrying(kind) }

  /// Returns the file that is sent for a kind of media; nil if there is none.
  package func file(for kind: MediaKind) -> String? { files[kind] }
}

// MARK: - DevicePlan

/// A device whose media is sent.
package enum SendDevice: String, Hashable, Sendable, CaseIterable {
  case microphone
  case camera
  case screen

  /// The kind of media captured.
  package var kind: MediaKind { self == .microphone ? .audio : .video }
}

/// The camera to use: `front`, `back`, or a device file.
package enum CameraChoice: Hashable, Sendable {
  case position(CameraPosition)
  case device(String)

  package static let wanted = "a camera is front, back, or a device file, as in /dev/video2"

  /// Parses a position or a path.
  package init?(argument: String) {
    if let position = CameraPosition(rawValue: argument) {
      self = .position(position)
    } else if argument.contains("/"), argument.utf8.count < 4_096 {
      self = .device(argument)
    } else {
      return nil
    }
  }

  /// The camera's position; front for a device file.
  package var position: CameraPosition {
    if case .position(let position) = self { return position }
    return .front
  }

  /// The device file; nil to use the camera at `position`.
  package var path: String? {
    if case .device(let path) = self { return path }
    return nil
  }
}

/// The devices of this machine that a recording sends and plays.
package struct DevicePlan: Sendable {
  package var sends: Set<SendDevice>
  package var plays: Bool
  package var camera: CameraChoice
  /// The width of video frames in pixels; nil for the default.
  package var width: Int?
  package var height: Int?
  /// The X display to send.
  package var display: String

  /// Whether no device has to be opened.
  package var isEmpty: Bool { sends.isEmpty && !plays }
  /// Whether the system's audio device is needed.
  package var needsAudio: Bool { plays || sends.contains(.microphone) }

  package init(
    _ sends: Set<SendDevice> = [], plays: Bool = false, camera: CameraChoice = .position(.front),
    size: (width: Int, height: Int)? = nil, display: String = ""
  ) {
    self.sends = sends
    self.plays = plays
    self.camera = camera
    width = size?.width
    height = size?.height
    self.display = display
  }

  package static let none = DevicePlan()

  /// A new capturer for the camera or the screen; nil if neither is sent.
  package var capturer: ProcessVideoCapturer? {
    func format(_ width: Int, _ height: Int, _ rate: Double) -> VideoFormat {
      VideoFormat(
        width: self.width ?? width, height: self.height ?? height, framesPerSecond: rate)
    }
    if sends.contains(.camera) {
      return .camera(
        camera.position, device: camera.path, supportedFormats: [format(640, 480, 30)])
    }
    guard sends.contains(.screen) else { return nil }
    return .wholeScreen(display: display, fittedInto: format(1_280, 720, 15))
  }
}

extension Set<SendDevice> {
  /// Returns the device in the set that captures a kind of media; nil if there is none.
  package func carrying(_ kind: MediaKind) -> SendDevice? {
    SendDevice.allCases.first { contains($0) && $0.kind == kind }
  }
}

// MARK: - MessageSizes

/// The sizes of the messages that a recorded peer sends over its data channel, parsed from an
/// option such as `--say 0,1200,65536`.
package struct MessageSizes: Hashable, Sendable, CustomStringConvertible {
  /// The sizes in bytes, in sending order.
  package var bytes: [Int]

  /// A description of the expected format, for the error message.
  package static let wanted =
    "sizes are at most 1000 whole numbers from 0 to 1048576, separated by commas"

  /// Parses sizes separated by commas.
  package init?(argument: String) {
    let parts = argument.split(separator: ",", omittingEmptySubsequences: false).map { Int($0) }
    bytes = parts.compactMap { $0 }
    guard bytes.count == parts.count, bytes.count <= 1000,
      bytes.allSatisfy({ (0...1 << 20).contains($0) })
    else {
      return nil
    }
  }

  package var description: String { bytes.map(String.init).joined(separator: ",") }
}

/// The messages that a recorded peer sends over the data channels it opens.
package struct Conversation: Sendable {
  package var sizes: MessageSizes
  /// The number of further channels.
  ///
  /// Each one is opened, carries a message and its reply, and is closed.
  package var channels = 0

  package init(sizes: MessageSizes, channels: Int = 0) {
    self.sizes = sizes
    self.channels = channels
  }

  /// Waits for the channel to open, sends a text and a binary message of each size, and then sends
  /// one message over each further channel.
  ///
  /// Messages received on the first channel are ignored.
  package func hold(over connection: PeerConnection, on channel: DataChannel) async throws {
    try await channel.waitUntilOpen()
    for size in sizes.bytes {
      try await channel.send(String(repeating: "x", count: size))
      try await channel.send((0..<size).map { UInt8(truncatingIfNeeded: $0 &* 7) })
    }
    for number in 0..<channels {
      let other = try await connection.createDataChannel(
        "retake \(number + 1)", DataChannelInit(ordered: number.isMultiple(of: 2)))
      try await other.waitUntilOpen()
      try await other.send("message \(number + 1)")
      for await _ in other.messages { break }
      await other.close()
      try await other.waitUntilClosed()
    }
  }
}
