public import Foundation
import Live
import Media

/// VP8's name in codec infos.
public let kRTCVideoCodecVp8Name = "VP8"
/// VP9's name in codec infos.
public let kRTCVideoCodecVp9Name = "VP9"

/// A video codec, identified by its name in descriptions.
public final class RTCVideoCodecInfo: Sendable, Hashable {
  /// The name, such as `VP8` or `VP9`.
  public let name: String
  /// The fmtp parameters by name.
  public let parameters: [String: String]

  /// Creates an info without parameters.
  public convenience init(name: String) { self.init(name: name, parameters: nil) }

  /// Creates an info with fmtp parameters; nil if there are none.
  public init(name: String, parameters: [String: String]?) {
    self.name = name
    self.parameters = parameters ?? [:]
  }

  /// Returns whether both name the same codec with the same parameters.
  public static func == (left: RTCVideoCodecInfo, right: RTCVideoCodecInfo) -> Bool {
    left.name.lowercased() == right.name.lowercased() && left.parameters == right.parameters
  }

  /// Hashes name and parameters.
  public func hash(into hasher: inout Hasher) {
    hasher.combine(name.lowercased())
    hasher.combine(parameters)
  }
}

/// The settings with which an encoder is created.
public final class RTCVideoEncoderSettings: Sendable {
  /// The codec's name in descriptions.
  public let name: String
  /// The first video frame's width in pixels.
  public let width: UInt16
  /// The first video frame's height in pixels.
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

/// An encoded frame's type, numbered as in the Objective-C header.
public enum RTCFrameType: UInt, Sendable {
  /// Nothing was encoded.
  case emptyFrame = 0
  /// An encoded audio packet.
  case audioFrameSpeech = 1
  /// An encoded packet of comfort noise.
  case audioFrameCN = 2
  /// A key frame.
  case videoFrameKey = 3
  /// A frame that depends on earlier frames.
  case videoFrameDelta = 4
}

/// An encoded video frame.
public final class RTCEncodedImage {
  /// The bitstream in the form that the codec's RTP payload format requires.
  public let buffer: Data
  /// The width in pixels.
  public let encodedWidth: Int32
  /// The height in pixels.
  public let encodedHeight: Int32
  /// The presentation time in ticks of a 90 kHz clock.
  public let timeStamp: UInt32
  /// Whether the frame is a key frame or depends on earlier frames.
  public let frameType: RTCFrameType
  /// The quantizer index; nil if it is unknown.
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

/// An encoded frame's codec-specific data; no codec here has any.
public protocol RTCCodecSpecificInfo: AnyObject {}

// MARK: - RTCVideoCodecFactories

/// Receives an encoded frame; returns whether the frame was accepted, which is always true here.
public typealias RTCVideoEncoderCallback = (RTCEncodedImage, (any RTCCodecSpecificInfo)?) -> Bool
/// Receives a decoded frame.
public typealias RTCVideoDecoderCallback = (RTCVideoFrame) -> Void

/// An application's encoder; called on the loop's thread.
///
/// It must call back before `encode` returns, since a later result could not be replayed: a frame
/// without a callback is dropped.
public protocol RTCVideoEncoder: AnyObject {
  /// Sets the closure that receives encoded frames.
  func setCallback(_ callback: RTCVideoEncoderCallback?)
  /// Starts the encoder; returns 0 on success.
  func startEncode(with settings: RTCVideoEncoderSettings, numberOfCores: Int32) -> Int
  /// Stops the encoder; returns 0 on success.
  func release() -> Int
  /// Encodes a frame; returns 0 on success.
  /// - Parameter frameTypes: the `RTCFrameType` that the encoded frame must have.
  func encode(
    _ frame: RTCVideoFrame, codecSpecificInfo info: (any RTCCodecSpecificInfo)?,
    frameTypes: [NSNumber]
  ) -> Int
  /// Limits the bitrate from now on; returns 0 on success.
  func setBitrate(_ bitrateKbit: UInt32, framerate: UInt32) -> Int32
  /// Returns the encoder's name in takes.
  func implementationName() -> String
}

/// An application's decoder; called on the loop's thread.
///
/// It must call back before `decode` returns.
public protocol RTCVideoDecoder: AnyObject {
  /// Sets the closure that receives decoded frames.
  func setCallback(_ callback: @escaping RTCVideoDecoderCallback)
  /// Starts the decoder; returns 0 on success.
  func startDecode(withNumberOfCores numberOfCores: Int32) -> Int
  /// Stops the decoder; returns 0 on success.
  func release() -> Int
  /// Decodes a frame; returns 0 on success.
  func decode(
    _ encodedImage: RTCEncodedImage, missingFrames: Bool,
    codecSpecificInfo info: (any RTCCodecSpecificInfo)?, renderTimeMs: Int64
  ) -> Int
  /// Returns the decoder's name in takes.
  func implementationName() -> String
}

/// Creates the application's encoders.
public protocol RTCVideoEncoderFactory: AnyObject {
  /// Creates an encoder; nil leaves the codec to the library.
  func createEncoder(_ info: RTCVideoCodecInfo) -> (any RTCVideoEncoder)?
  /// Returns the codecs that frames can be encoded to.
  func supportedCodecs() -> [RTCVideoCodecInfo]
}

/// Creates the application's decoders.
public protocol RTCVideoDecoderFactory: AnyObject {
  /// Creates a decoder; nil leaves the codec to the library.
  func createDecoder(_ info: RTCVideoCodecInfo) -> (any RTCVideoDecoder)?
  /// Returns the codecs that frames can be decoded from.
  func supportedCodecs() -> [RTCVideoCodecInfo]
}

/// The library's encoders, which every connection has.
public final class RTCDefaultVideoEncoderFactory: RTCVideoEncoderFactory, Sendable {
  /// Creates a factory that leaves all codecs to the library.
  public init() {}
  /// Leaves all codecs to the library.
  public func createEncoder(_ info: RTCVideoCodecInfo) -> (any RTCVideoEncoder)? { nil }
  /// Returns VP8 and VP9, and H.264 if this build has OpenH264.
  public func supportedCodecs() -> [RTCVideoCodecInfo] {
    codecs(LibraryCodecs.furtherEncoders)
  }
}

/// The library's decoders, which every connection has.
public final class RTCDefaultVideoDecoderFactory: RTCVideoDecoderFactory, Sendable {
  /// Creates a factory that leaves all codecs to the library.
  public init() {}
  /// Leaves all codecs to the library.
  public func createDecoder(_ info: RTCVideoCodecInfo) -> (any RTCVideoDecoder)? { nil }
  /// Returns VP8 and VP9, and H.264 and AV1 if this build has OpenH264 and dav1d.
  public func supportedCodecs() -> [RTCVideoCodecInfo] {
    codecs(LibraryCodecs.furtherDecoders)
  }
}

/// Returns VP8 and VP9, which every build has, and the additional codecs.
private func codecs(_ further: [String]) -> [RTCVideoCodecInfo] {
  ([kRTCVideoCodecVp8Name, kRTCVideoCodecVp9Name] + further.map { $0.uppercased() }).map {
    RTCVideoCodecInfo(name: $0)
  }
}

// MARK: - Conversion to the stack's types

/// Returns the supported codecs for which a factory creates an object, by lower-case name.
private func made<Codec>(
  _ infos: [RTCVideoCodecInfo], _ create: (RTCVideoCodecInfo) -> Codec?,
  _ implementation: (Codec) -> String
) -> [(codec: String, info: RTCVideoCodecInfo, implementation: String)] {
  infos.compactMap { info in
    create(info).map { (info.name.lowercased(), info, implementation($0)) }
  }
}

/// Adapts the application's encoder factory to the stack's protocol.
final class EncoderFactory: VideoEncoderFactory {
  private let factory: Handed<any RTCVideoEncoderFactory>
  private let infos: [(codec: String, info: RTCVideoCodecInfo)]
  let implementationName: String

  /// Creates an adapter; nil if the factory creates no encoder.
  init?(_ factory: (any RTCVideoEncoderFactory)?) {
    guard let factory else { return nil }
    let found = made(
      factory.supportedCodecs(), { factory.createEncoder($0) }, { $0.implementationName() })
    guard let first = found.first else { return nil }
    self.factory = Handed(factory)
    implementationName = first.implementation
    infos = found.map { ($0.codec, $0.info) }
  }

  var supportedCodecs: [String] { infos.map(\.codec) }

  func makeEncoder(_ settings: VideoEncoderSettings) throws(VideoCodecError)
    -> any VideoEncoder
  {
    guard let info = infos.first(where: { $0.codec == settings.codec })?.info,
      let encoder = factory.value.createEncoder(info)
    else { throw VideoCodecError(reason: "the application has no encoder for \(settings.codec)") }
    return try ApplicationEncoder(encoder, settings)
  }
}

/// Adapts an application's encoder to the stack's protocol.
private final class ApplicationEncoder: VideoEncoder {
  private final class Result {
    var image: RTCEncodedImage?
  }

  private let encoder: any RTCVideoEncoder
  private let framesPerSecond: Int
  private let result = Result()

  init(_ encoder: any RTCVideoEncoder, _ settings: VideoEncoderSettings)
    throws(VideoCodecError)
  {
    self.encoder = encoder
    framesPerSecond = settings.framesPerSecond
    encoder.setCallback { [result] image, _ in
      result.image = image
      return true
    }
    let wanted = RTCVideoEncoderSettings(
      name: settings.codec.uppercased(), width: settings.width, height: settings.height,
      startBitrate: settings.bitrate, maxFramerate: settings.framesPerSecond)
    let code = encoder.startEncode(with: wanted, numberOfCores: 1)
    guard code == 0 else { throw VideoCodecError(reason: "the encoder did not start: \(code)") }
  }

  deinit { _ = encoder.release() }

  func encode(_ frame: I420Buffer, mediaTime: UInt32, needsKey: Bool) throws(VideoCodecError)
    -> EncodedVideoFrame?
  {
    result.image = nil
    let shown = RTCVideoFrame(
      buffer: RTCI420Buffer(frame), rotation: ._0,
      timeStampNs: Int64(mediaTime) * 100_000 / 9)
    let type = needsKey ? RTCFrameType.videoFrameKey : .videoFrameDelta
    let code = encoder.encode(
      shown, codecSpecificInfo: nil, frameTypes: [NSNumber(value: type.rawValue)])
    guard code == 0 else { throw VideoCodecError(reason: "the encoder failed: \(code)") }
    return result.image.map { image in
      EncodedVideoFrame(
        bytes: Array(image.buffer), isKey: image.frameType == .videoFrameKey,
        quantiser: image.qp.map { UInt8(clamping: $0.intValue) } ?? 0)
    }
  }

  func setBitrate(_ bitsPerSecond: UInt64) {
    _ = encoder.setBitrate(
      UInt32(clamping: bitsPerSecond / 1000), framerate: UInt32(clamping: framesPerSecond))
  }
}

/// Adapts the application's decoder factory to the stack's protocol.
final class DecoderFactory: VideoDecoderFactory {
  private let factory: Handed<any RTCVideoDecoderFactory>
  private let infos: [(codec: String, info: RTCVideoCodecInfo)]
  let implementationName: String

  /// Creates an adapter; nil if the factory creates no decoder.
  init?(_ factory: (any RTCVideoDecoderFactory)?) {
    guard let factory else { return nil }
    let found = made(
      factory.supportedCodecs(), { factory.createDecoder($0) }, { $0.implementationName() })
    guard let first = found.first else { return nil }
    self.factory = Handed(factory)
    implementationName = first.implementation
    infos = found.map { ($0.codec, $0.info) }
  }

  var supportedCodecs: [String] { infos.map(\.codec) }

  func makeDecoder(_ codec: String) throws(VideoCodecError) -> any VideoDecoder {
    guard let info = infos.first(where: { $0.codec == codec })?.info,
      let decoder = factory.value.createDecoder(info)
    else { throw VideoCodecError(reason: "the application has no decoder for \(codec)") }
    return try ApplicationDecoder(decoder)
  }
}

/// Adapts an application's decoder to the stack's protocol.
private final class ApplicationDecoder: VideoDecoder {
  private final class Result {
    var frame: RTCVideoFrame?
  }

  private let decoder: any RTCVideoDecoder
  private let result = Result()

  init(_ decoder: any RTCVideoDecoder) throws(VideoCodecError) {
    self.decoder = decoder
    decoder.setCallback { [result] frame in result.frame = frame }
    let code = decoder.startDecode(withNumberOfCores: 1)
    guard code == 0 else { throw VideoCodecError(reason: "the decoder did not start: \(code)") }
  }

  deinit { _ = decoder.release() }

  func decode(_ bytes: [UInt8]) throws(VideoCodecError) -> I420Buffer {
    result.frame = nil
    let image = RTCEncodedImage(
      buffer: Data(bytes), encodedWidth: 0, encodedHeight: 0, timeStamp: 0,
      frameType: .emptyFrame)
    let code = decoder.decode(image, missingFrames: false, codecSpecificInfo: nil, renderTimeMs: 0)
    guard code == 0, let frame = result.frame?.native else {
      throw VideoCodecError(reason: "the decoder failed: \(code)")
    }
    return frame.upright.videoFrame()
  }
}
