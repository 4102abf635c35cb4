package import Live
package import Media
package import Peer
import SCTP
package import Wire

/// The media that the peers of a recording send: files and devices, and for the other kinds an echo
/// or a test pattern.
package struct SendPlan: Sendable {
  /// The source for a kind of media without file or device.
  package enum Filling: Hashable, Sendable {
    /// The received media.
    case echo
    /// A tone and a test pattern.
    case pattern

    /// The test pattern of a kind.
    static func generated(_ kind: MediaKind) -> MediaSource {
      switch kind {
      case .audio: .tone(hertz: 440, pauseSeconds: 0)
      case .video: .pattern(width: 640, height: 360, framesPerSecond: 30)
      }
    }
  }

  /// The source for kinds without file or device; nil: the pattern, or nothing if there are
  /// devices.
  private let filling: Filling?
  private let files: [MediaKind: String]
  /// The devices that are sent and played.
  package let devices: DevicePlan
  /// The pace of a file of H.264, when it was given.
  package let framesPerSecond: Double?
  /// The H.264 file, if any.
  package let clip: H264Clip?
  /// The messages on the peer's own data channel; nil for an echo.
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

  /// The source of a kind of media: its file or device, or else the filling; nil for nothing: with
  /// only a microphone, no test pattern is sent.
  package func source(for kind: MediaKind) -> MediaSource? {
    if files[kind] != nil || device(for: kind) != nil { return .application }
    if filling == nil, !devices.sends.isEmpty { return nil }
    return filling == .echo ? .echo : Filling.generated(kind)
  }

  /// The device that carries a kind.
  package func device(for kind: MediaKind) -> SendDevice? { devices.sends.carrying(kind) }

  /// The file that feeds a kind.
  package func file(for kind: MediaKind) -> String? { files[kind] }
}

// MARK: - DevicePlan

/// A device of the machine that is sent.
package enum SendDevice: String, Hashable, Sendable, CaseIterable {
  case microphone
  case camera
  case screen

  /// The kind of media that it captures.
  package var kind: MediaKind { self == .microphone ? .audio : .video }
}

/// The camera to use: `front`, `back`, or a device file.
package enum CameraChoice: Hashable, Sendable {
  case position(CameraPosition)
  case device(String)

  package static let wanted = "a camera is front, back, or the file of a device, as in /dev/video2"

  /// Reads a place or a file.
  package init?(argument: String) {
    if let position = CameraPosition(rawValue: argument) {
      self = .position(position)
    } else if argument.contains("/"), argument.utf8.count < 4_096 {
      self = .device(argument)
    } else {
      return nil
    }
  }

  /// The position of the camera; front if the plan uses its own device.
  package var position: CameraPosition {
    if case .position(let position) = self { return position }
    return .front
  }

  /// The file of the device; nil for that of the position.
  package var path: String? {
    if case .device(let path) = self { return path }
    return nil
  }
}

/// The devices of the machine that are sent and played.
package struct DevicePlan: Sendable {
  package var sends: Set<SendDevice>
  package var plays: Bool
  package var camera: CameraChoice
  /// The size of the video frames, in pixels; nil for the usual one.
  package var width: Int?
  package var height: Int?
  /// The X display whose screen is sent.
  package var display: String

  /// Whether no device has to be opened.
  package var isEmpty: Bool { sends.isEmpty && !plays }
  /// Whether the audio device of the system is needed.
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

  /// No devices.
  package static let none = DevicePlan()

  /// The capturer of the camera or the screen; nil when neither is sent.
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
  /// The device that carries a kind; nil when none does.
  package func carrying(_ kind: MediaKind) -> SendDevice? {
    SendDevice.allCases.first { contains($0) && $0.kind == kind }
  }
}

// MARK: - MessageSizes

/// The sizes of the messages that a recorded peer sends over its data channel: `--say
/// 0,1200,65536`.
package struct MessageSizes: Hashable, Sendable, CustomStringConvertible {
  /// The sizes in bytes, in the order of sending.
  package var bytes: [Int]

  /// The expected format, for the error message.
  package static let wanted =
    "sizes are whole numbers from 0 to 1048576 with commas between, at most 1000"

  /// Reads sizes with commas between them.
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

/// The messages that a recorded peer sends over data channels that it opens.
package struct Conversation: Sendable {
  package var sizes: MessageSizes
  /// The number of additional channels per message: each is opened for it and closed after an
  /// answer.
  package var channels = 0

  package init(sizes: MessageSizes, channels: Int = 0) {
    self.sizes = sizes
    self.channels = channels
  }

  /// Sends a text and one block of each size once the channel is open, then messages over the other
  /// channels.
  ///
  /// Received messages of the first channel are ignored.
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
