public import Media
import Peer
package import RTP

/// An error in an application's codec: an encoder's error ends sending, and a decoder's error drops
/// the frame.
public struct VideoCodecError: Error, Hashable, Sendable {
  /// The reason in one sentence.
  public var reason: String

  /// Creates an error with a reason in one sentence.
  public init(reason: String) { self.reason = reason }
}

/// A video encoder's parameters.
public struct VideoEncoderSettings: Hashable, Sendable {
  /// The codec's encoding name in lower case, such as `vp8`.
  public var codec: String
  /// The first frame's width in pixels; later frames may have another size.
  public var width: Int
  /// The first frame's height in pixels.
  public var height: Int
  /// The expected frame rate.
  public var framesPerSecond: Int
  /// The initial bit rate in bits per second.
  public var bitrate: UInt64
}

/// An encoder's output frame.
public struct EncodedVideoFrame: Hashable, Sendable {
  /// The bitstream in the form that the codec's RTP payload format requires.
  public var bytes: [UInt8]
  /// Whether decoding can start at this frame.
  public var isKey: Bool
  /// The quantiser index, for the statistics.
  public var quantiser: UInt8

  /// Creates a frame.
  public init(bytes: [UInt8], isKey: Bool, quantiser: UInt8 = 0) {
    self.bytes = bytes
    self.isKey = isKey
    self.quantiser = quantiser
  }
}

/// Encodes video (RTCVideoEncoder); called on the loop's thread.
public protocol VideoEncoder: AnyObject {
  /// Encodes a frame; returns nil to drop it.
  /// - Parameters:
  ///   - mediaTime: the frame's time in the 90 kHz clock.
  ///   - needsKey: whether the result must be a key frame.
  func encode(_ frame: I420Buffer, mediaTime: UInt32, needsKey: Bool) throws(VideoCodecError)
    -> EncodedVideoFrame?
  /// Sets the bit rate in bits per second.
  func setBitrate(_ bitsPerSecond: UInt64)
}

/// Decodes video (RTCVideoDecoder); called on the loop's thread.
public protocol VideoDecoder: AnyObject {
  /// Decodes one complete frame of the codec's bitstream.
  func decode(_ bytes: [UInt8]) throws(VideoCodecError) -> I420Buffer
}

/// Creates the application's encoders (RTCVideoEncoderFactory).
///
/// A take records the encoders' name, because a replay needs the same encoders; without them, it
/// uses the recorded frames.
public protocol VideoEncoderFactory: Sendable {
  /// The encoders' name in takes.
  var implementationName: String { get }
  /// The codecs that frames can be encoded to, by lower-case encoding name: `vp8`, `vp9`.
  var supportedCodecs: [String] { get }
  /// Creates an encoder for one track.
  func makeEncoder(_ settings: VideoEncoderSettings) throws(VideoCodecError) -> any VideoEncoder
}

/// Creates the application's decoders (RTCVideoDecoderFactory).
public protocol VideoDecoderFactory: Sendable {
  /// The decoders' name in takes.
  var implementationName: String { get }
  /// The codecs that frames can be decoded from, by lower-case encoding name: `vp8`, `vp9`.
  var supportedCodecs: [String] { get }
  /// Creates a decoder for one track.
  func makeDecoder(_ codec: String) throws(VideoCodecError) -> any VideoDecoder
}

/// Combines the application's codecs with libraries for the rest.
package final class FactoryCodecs: CodecFactory {
  private let encoders: (any VideoEncoderFactory)?
  private let decoders: (any VideoDecoderFactory)?
  private let libraries = LibraryCodecs()

  package init(
    _ encoders: (any VideoEncoderFactory)?, _ decoders: (any VideoDecoderFactory)?
  ) {
    self.encoders = encoders
    self.decoders = decoders
  }

  package var applicationCodecs: [OwnCodec] {
    let encoding = (encoders?.supportedCodecs ?? []).map {
      OwnCodec(codec: $0, role: .encoder, implementation: encoders?.implementationName ?? "")
    }
    let decoding = (decoders?.supportedCodecs ?? []).map {
      OwnCodec(codec: $0, role: .decoder, implementation: decoders?.implementationName ?? "")
    }
    return encoding + decoding
  }

  package func audioEncoder(
    track: String, _ settings: OpusSettings
  ) throws(CodecError) -> any AudioEncoding {
    try libraries.audioEncoder(track: track, settings)
  }

  package func audioDecoder(
    track: String, _ codec: CodecName, channels: Int
  ) throws(CodecError) -> any AudioDecoding {
    try libraries.audioDecoder(track: track, codec, channels: channels)
  }

  package func videoEncoder(
    track: String, _ settings: VideoSettings
  ) throws(CodecError) -> any VideoEncoding {
    let codec = settings.codec.rawValue
    guard let encoders, encoders.supportedCodecs.contains(codec) else {
      return try libraries.videoEncoder(track: track, settings)
    }
    let wanted = VideoEncoderSettings(
      codec: codec, width: settings.width, height: settings.height,
      framesPerSecond: settings.framesPerSecond, bitrate: settings.bitrate)
    do throws(VideoCodecError) {
      return OwnVideoEncoder(try encoders.makeEncoder(wanted))
    } catch {
      throw CodecError(reason: error.reason)
    }
  }

  package func videoDecoder(
    track: String, _ codec: CodecName
  ) throws(CodecError) -> any VideoDecoding {
    guard let decoders, decoders.supportedCodecs.contains(codec.rawValue) else {
      return try libraries.videoDecoder(track: track, codec)
    }
    do throws(VideoCodecError) {
      return OwnVideoDecoder(try decoders.makeDecoder(codec.rawValue))
    } catch {
      throw CodecError(reason: error.reason)
    }
  }
}

extension PeerConfiguration {
  /// The codecs besides VP8 and VP9 that this build or the application encodes.
  var furtherEncoders: [String] {
    let library = LibraryCodecs.furtherEncoders
    let own = (ownCodecs ?? []).filter { $0.role == .encoder }.map(\.codec)
    return library
      + own.filter { CodecName(rawValue: $0).isPassedThrough && !library.contains($0) }
  }
}

private final class OwnVideoEncoder: VideoEncoding {
  private let encoder: any VideoEncoder

  init(_ encoder: any VideoEncoder) { self.encoder = encoder }

  var wantsPixels: Bool { true }

  func encode(_ videoFrame: I420Buffer, mediaTime: UInt32, forceKey: Bool) throws(CodecError)
    -> EncodedVideo?
  {
    do throws(VideoCodecError) {
      return try encoder.encode(videoFrame, mediaTime: mediaTime, needsKey: forceKey).map {
        EncodedVideo(bytes: $0.bytes, isKey: $0.isKey, quantiser: $0.quantiser)
      }
    } catch {
      throw CodecError(reason: error.reason)
    }
  }

  func setBitrate(_ bitsPerSecond: UInt64) { encoder.setBitrate(bitsPerSecond) }
}

private final class OwnVideoDecoder: VideoDecoding {
  private let decoder: any VideoDecoder

  init(_ decoder: any VideoDecoder) { self.decoder = decoder }

  func decode(_ bytes: [UInt8]) throws(CodecError) -> DecodedVideo {
    do throws(VideoCodecError) {
      return DecodedVideo(videoFrame: try decoder.decode(bytes), quantiser: 0)
    } catch {
      throw CodecError(reason: error.reason)
    }
  }
}
