public import Foundation

/// The name of VP8 in codec infos.
public let kRTCVideoCodecVp8Name = "VP8"
/// The name of VP9 in codec infos.
public let kRTCVideoCodecVp9Name = "VP9"

/// A codec of video frames, by the name that descriptions have for it.
public final class RTCVideoCodecInfo: Sendable, Hashable {
  /// `VP8`, `VP9`.
  public let name: String
  /// Parameters as descriptions have them.
  public let parameters: [String: String]

  /// Creates an info without parameters.
  public convenience init(name: String) { self.init(name: name, parameters: nil) }

  /// Creates an info.
  public init(name: String, parameters: [String: String]?) {
    self.name = name
    self.parameters = parameters ?? [:]
  }

  /// Whether both name the same codec with the same parameters.
  public static func == (left: RTCVideoCodecInfo, right: RTCVideoCodecInfo) -> Bool {
    left.name.lowercased() == right.name.lowercased() && left.parameters == right.parameters
  }

  /// Hashes name and parameters.
  public func hash(into hasher: inout Hasher) {
    hasher.combine(name.lowercased())
    hasher.combine(parameters)
  }
}

/// What an encoder is made for.
public final class RTCVideoEncoderSettings: Sendable {
  /// The codec's name.
  public let name: String
  /// The width of the first video frame.
  public let width: UInt16
  /// The height of the first video frame.
  public let height: UInt16
  /// What may be spent at first, in kbit/s.
  public let startBitrate: UInt32
  /// How many video frames per second are expected.
  public let maxFramerate: UInt32

  init(name: String, width: Int, height: Int, startBitrate: UInt64, maxFramerate: Int) {
    self.name = name
    (self.width, self.height) = (UInt16(clamping: width), UInt16(clamping: height))
    self.startBitrate = UInt32(clamping: startBitrate / 1000)
    self.maxFramerate = UInt32(clamping: maxFramerate)
  }
}

/// What a decoder needs of an encoded video frame, numbered as in the Objective-C header.
public enum RTCFrameType: UInt, Sendable {
  /// Nothing was encoded.
  case emptyFrame = 0
  /// An encoded block of audio.
  case audioFrameSpeech = 1
  /// An encoded block of comfort noise.
  case audioFrameCN = 2
  /// A video frame that a decoder can begin with.
  case videoFrameKey = 3
  /// A video frame that needs those before it.
  case videoFrameDelta = 4
}

/// A video frame as a codec has it.
public final class RTCEncodedImage {
  /// The bitstream, as the codec's RTP payload format takes it.
  public let buffer: Data
  /// The width in pixels.
  public let encodedWidth: Int32
  /// The height in pixels.
  public let encodedHeight: Int32
  /// When it is to be shown, in units of 90 kHz.
  public let timeStamp: UInt32
  /// Whether a decoder can begin with it.
  public let frameType: RTCFrameType
  /// The quantiser index; nil when it is not known.
  public let qp: NSNumber?

  /// Creates an encoded video frame.
  public init(
    buffer: Data, encodedWidth: Int32, encodedHeight: Int32, timeStamp: UInt32,
    frameType: RTCFrameType, qp: NSNumber? = nil
  ) {
    self.buffer = buffer
    self.encodedWidth = encodedWidth
    self.encodedHeight = encodedHeight
    self.timeStamp = timeStamp
    self.frameType = frameType
    self.qp = qp
  }
}

/// What only one codec knows of its encoded video frames; no codec here has any.
public protocol RTCCodecSpecificInfo: AnyObject {}
