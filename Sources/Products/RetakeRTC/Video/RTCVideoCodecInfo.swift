public import Foundation

/// The name of VP8 in codec infos.
public let kRTCVideoCodecVp8Name = "VP8"
/// The name of VP9 in codec infos.
public let kRTCVideoCodecVp9Name = "VP9"

/// A video codec by its name in descriptions.
public final class RTCVideoCodecInfo: Sendable, Hashable {
  /// `VP8`, `VP9`.
  public let name: String
  /// Its fmtp parameters.
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

/// The settings that an encoder is created with.
public final class RTCVideoEncoderSettings: Sendable {
  /// The codec's name.
  public let name: String
  /// The width of the first video frame.
  public let width: UInt16
  /// The height of the first video frame.
  public let height: UInt16
  /// The initial bitrate in kbit/s.
  public let startBitrate: UInt32
  /// The expected frame rate.
  public let maxFramerate: UInt32

  init(name: String, width: Int, height: Int, startBitrate: UInt64, maxFramerate: Int) {
    self.name = name
    (self.width, self.height) = (UInt16(clamping: width), UInt16(clamping: height))
    self.startBitrate = UInt32(clamping: startBitrate / 1000)
    self.maxFramerate = UInt32(clamping: maxFramerate)
  }
}

/// The type of an encoded frame, numbered as in the Objective-C header.
public enum RTCFrameType: UInt, Sendable {
  /// Nothing was encoded.
  case emptyFrame = 0
  /// An encoded audio packet.
  case audioFrameSpeech = 1
  /// An encoded packet of comfort noise.
  case audioFrameCN = 2
  /// A keyframe.
  case videoFrameKey = 3
  /// A frame that depends on earlier ones.
  case videoFrameDelta = 4
}

/// An encoded video frame.
public final class RTCEncodedImage {
  /// The bitstream, in the form of the codec's RTP payload format.
  public let buffer: Data
  /// The width in pixels.
  public let encodedWidth: Int32
  /// The height in pixels.
  public let encodedHeight: Int32
  /// The presentation time in units of 90 kHz.
  public let timeStamp: UInt32
  /// Whether it is a keyframe.
  public let frameType: RTCFrameType
  /// The quantizer index; nil when it is unknown.
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

/// Codec-specific data of an encoded frame; no codec here has any.
public protocol RTCCodecSpecificInfo: AnyObject {}
