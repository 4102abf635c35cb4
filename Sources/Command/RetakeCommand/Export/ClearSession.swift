import Wire

/// What tells a reader of packets in the clear which codecs they carry: an INVITE with its answer
/// (RFC 3261), whose descriptions (RFC 8866) name the addresses and payload types.
struct ClearSession {
  /// A payload type with its meaning.
  struct Format: Hashable {
    var payloadType: UInt8
    var codec: String
    var clockRate: UInt32
    var isAudio: Bool
  }

  var source: SocketAddress
  var destination: SocketAddress
  var formats: [Format]
  /// Tells the sessions of one file apart.
  var number: Int

  private static let port: UInt16 = 5060

  /// The two messages with the ends that they go between.
  var messages: [(from: SocketAddress, to: SocketAddress, text: String)] {
    let (caller, callee) = (
      SocketAddress(source.ip, port: Self.port), SocketAddress(destination.ip, port: Self.port)
    )
    return [
      (
        caller, callee, message("INVITE sip:callee@retake.invalid SIP/2.0", description(of: source))
      ),
      (callee, caller, message("SIP/2.0 200 OK", description(of: destination))),
    ]
  }

  private func message(_ first: String, _ body: String) -> String {
    let lines = [
      first, "Via: SIP/2.0/UDP retake.invalid;branch=z9hG4bK-retake-\(number)",
      "From: <sip:caller@retake.invalid>;tag=caller-\(number)",
      "To: <sip:callee@retake.invalid>" + (first.hasPrefix("SIP") ? ";tag=callee-\(number)" : ""),
      "Call-ID: retake-\(number)@retake.invalid", "CSeq: 1 INVITE",
      "Contact: <sip:retake@retake.invalid>", "Content-Type: application/sdp",
      "Content-Length: \(body.utf8.count)", "", "",
    ]
    return lines.joined(separator: "\r\n") + body
  }

  /// One section for all, because all go over one pair of ports.
  private func description(of end: SocketAddress) -> String {
    let family = end.ip.isIPv4 ? "IP4" : "IP6"
    let kind = formats.contains { $0.isAudio } ? "audio" : "video"
    let types = formats.map { String($0.payloadType) }.joined(separator: " ")
    var lines = [
      "v=0", "o=retake \(number) 1 IN \(family) \(end.ip)", "s=in the clear",
      "c=IN \(family) \(end.ip)", "t=0 0", "m=\(kind) \(end.port) RTP/AVP \(types)",
    ]
    for format in formats {
      lines.append("a=rtpmap:\(format.payloadType) \(format.codec)/\(format.clockRate)")
    }
    return lines.joined(separator: "\r\n") + "\r\n"
  }
}
