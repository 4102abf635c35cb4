package import JSEP
package import Live
package import MediaFiles
import Peer
package import RTP
import SDP
package import Wire

/// The preferred video codec, from `--video-codec vp8|vp9|h264|...`.
package struct VideoCodecChoice: Hashable, Sendable, CustomStringConvertible {
  package let name: CodecName

  /// Parses a video codec's name.
  package init?(argument: String) {
    guard Self.allValueStrings.contains(argument) else { return nil }
    name = CodecName(rawValue: argument)
  }

  /// The accepted names.
  package static var allValueStrings: [String] {
    Codec.all.filter { $0.kind == .video }.map(\.name.rawValue)
  }

  package var description: String { name.rawValue }

  /// The codec names that a take's genesis must list for this codec to be offered; nil if it is
  /// offered by default.
  package var offered: [String]? {
    guard name.codec?.isOffered == false else { return nil }
    return Codec.all.filter { $0.isOffered || $0.name == name }.map(\.spelling)
  }

  /// All offered video codecs, the chosen one first.
  package var codecs: [RTPCodec] {
    let all = RTPCodec.capabilities(.video, offering: offered)
    let chosen = all.filter { $0.mimeType.lowercased() == "video/\(name.rawValue)" }
    return chosen + all.filter { !chosen.contains($0) }
  }
}

extension VideoCodecChoice? {
  /// Returns the names of the codecs that can be negotiated for a kind, such as `VP8, VP9 or H264`.
  package func names(of kind: MediaKind) -> String {
    let names = Codec.all.filter {
      $0.kind == kind && $0.name.carriesMedia && ($0.isOffered || $0.name == self?.name)
    }.map(\.spelling)
    guard let last = names.last, names.count > 1 else { return names.joined() }
    return names.dropLast().joined(separator: ", ") + " or " + last
  }
}

extension PeerConnection {
  /// Prefers a codec on all video transceivers; nil leaves the order as it is.
  package func prefer(_ choice: VideoCodecChoice?) async throws {
    guard let choice else { return }
    try await prefer(choice.codecs) { $0 != .stopped }
  }

  /// Sets the codec preferences of the video transceivers whose direction matches.
  package func prefer(
    _ codecs: [RTPCodec], where isMeant: (TransceiverDirection) -> Bool
  ) async throws {
    for transceiver in try await transceivers
    where transceiver.kind == .video && isMeant(transceiver.direction) {
      try await setCodecPreferences(codecs, of: transceiver.id)
    }
  }
}

// MARK: - H264Clip

/// An offer and its answer, with their video sections.
struct Exchange {
  /// The video sections, paired by their index in offer and answer.
  private let pairs: [(offer: SDPSection, answer: SDPSection)]
  private let isOwnOffer: Bool

  init(offer: SessionDescription, answer: SessionDescription, isOwnOffer: Bool) {
    self.isOwnOffer = isOwnOffer
    let offered = (try? SDPDocument(parsing: offer.sdp))?.sections ?? []
    let answered = (try? SDPDocument(parsing: answer.sdp))?.sections ?? []
    pairs = zip(offered, answered).map { (offer: $0, answer: $1) }.filter { pair in
      pair.offer.kind == .video
    }
  }

  /// Whether the answer rejects offered video.
  fileprivate var refusesVideo: Bool {
    pairs.contains { !$0.offer.isRejected && $0.answer.isRejected }
  }

  /// The H.264 parameters of both peers, for each video section in which the answer accepts H.264.
  fileprivate var receptions: [H264Reception] {
    pairs.compactMap { pair in
      guard !pair.answer.isRejected else { return nil }
      // Of the answer's H.264 formats, the first is sent (RFC 3264 section 7).
      let h264 = pair.answer.values(RTPMap.self).filter { $0.name.uppercased() == "H264" }
      let formats = h264.map { String($0.payloadType) }
      guard let sent = pair.answer.formats.first(where: { formats.contains($0) }) else {
        return nil
      }
      let sections = isOwnOffer ? (pair.offer, pair.answer) : (pair.answer, pair.offer)
      func parameters(_ section: SDPSection) -> String {
        section.values(FormatParameters.self).first { $0.format == sent }?.parameters ?? ""
      }
      return H264Reception(own: parameters(sections.0), peer: parameters(sections.1))
    }
  }
}

/// An H.264 file, which is sent unchanged or not at all.
package struct H264Clip: Sendable {
  let path: String
  /// The codecs that can carry the clip, the best one first.
  let codecs: [RTPCodec]
  private let stream: H264Stream

  /// Checks an opened file.
  ///
  /// - Throws: `MediaFileError` if no codec used in calls has the file's profile.
  package init(_ path: String, _ source: H264FileSource) throws(MediaFileError) {
    self.path = path
    let profileLevelID = source.profileLevelID
    codecs = RTPCodec.h264(carrying: profileLevelID)
    stream = H264Stream(
      profileLevelID: profileLevelID, width: source.width, height: source.height,
      framesPerSecond: source.framesPerSecond)
    guard !codecs.isEmpty else {
      throw MediaFileError(
        path: path,
        reason: "H.264 of the profile and level \(profileLevelID) is not used in calls; encode it "
          + "in the baseline, main or high profile")
    }
  }

  /// Returns why the file cannot be sent after an exchange; nil if it can be sent.
  ///
  /// Unless an earlier exchange allowed the file, this ends the call: a decoder for another profile
  /// lacks coding tools that the file uses and would display nothing, and RFC 6184 section 8.2.2
  /// does not allow different profiles.
  func complaint(about exchange: Exchange) -> String? {
    guard exchange.refusesVideo else { return nil }
    return
      "the peer does not accept the H.264 profile of \(path), which is sent unchanged: send a .y4m "
      + "file, or let the peer accept that profile"
  }

  /// Returns why the peer may be unable to decode the file; nil if the peer declares support for
  /// the file's level.
  ///
  /// The call continues: a level only limits the size and rate of video frames. Browsers announce
  /// level 3.1 although they decode far more; taken literally, that would rule out every 1920x1080
  /// file.
  func warning(about exchange: Exchange) -> String? {
    guard let level = stream.level,
      let reception = exchange.receptions.first(where: { !$0.accepts(stream) })
    else { return nil }
    return
      "--send \(path) is H.264 of level \(level), and the peer accepts up to level "
      + "\(reception.level): most peers show it nevertheless; if this one does not, encode the "
      + "file with that level"
  }
}
