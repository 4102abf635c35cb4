import Observer
import Tape

/// Words that are never replaced, because they occur in everyone's calls.
///
/// They are terms of W3C and the RFCs, codec names, stats members, and words of signaling
/// protocols.
enum Vocabulary {
  /// Returns whether a string consists of common words, short numbers and separators.
  static func isCommon(_ text: String) -> Bool {
    var start = text.utf8.startIndex
    let bytes = text.utf8
    while start < bytes.endIndex {
      guard isWord(bytes[start]) else {
        start = bytes.index(after: start)
        continue
      }
      let end = bytes[start...].firstIndex { !isWord($0) } ?? bytes.endIndex
      guard isCommonWord(text[start..<end]) else { return false }
      start = end
    }
    return true
  }

  private static func isWord(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"),
      UInt8(ascii: "A")...UInt8(ascii: "Z"), 0x80...:
      true
    default: false
    }
  }

  private static func isCommonWord(_ word: Substring) -> Bool {
    let digits = word.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
    if digits { return word.utf8.count < 7 }
    let lower = word.lowercased()
    if words.contains(lower) || schema.contains(lower) { return true }
    // A common word with up to three digits, as in `profile1` and `extmap-3`, or one or two ASCII
    // characters.
    let letters = word.filter { !$0.isNumber }
    return word.utf8.count - letters.utf8.count <= 3 && letters.utf8.count > 1
      && words.contains(letters.lowercased())
      || word.utf8.count <= 2 && word.utf8.allSatisfy { $0 < 0x80 }
  }

  private static let words: Set<String> = {
    let texts = [w3c, protocols, statistics, signaling].joined(separator: " ")
    var words = Set(texts.split(whereSeparator: \.isWhitespace).map { $0.lowercased() })
    for form in ReportedStats.Form.allCases { words.insert(form.rawValue.lowercased()) }
    // State names in older logs of Chromium, as in `ICEConnectionStateChecking`.
    for prefix in ReportedNames.statePrefixes {
      for state in states.split(separator: " ") { words.insert(prefix.lowercased() + state) }
    }
    return words
  }()

  private static let states = """
    new checking connecting connected completed failed disconnected closed gathering complete \
    stable havelocaloffer haveremoteoffer havelocalpranswer haveremotepranswer
    """

  /// The words of the schema, which is in every take together with its comments.
  private static let schema: Set<String> = {
    guard let bytes = TakeSchema.emptyBytes else { return [] }
    var found: Set<String> = []
    for word in bytes.split(whereSeparator: { !isWord($0) || $0 >= 0x80 }) where word.count > 3 {
      found.insert(String(decoding: word, as: UTF8.self).lowercased())
    }
    return found
  }()

  private static let w3c = """
    offer answer pranswer rollback stable closed new connecting connected completed disconnected \
    failed checking gathering complete audio video application data datachannel channel chat \
    inactive sendrecv sendonly recvonly stopped in out local remote host srflx prflx relay udp tcp \
    tls all balanced maxcompat max compat bundle require negotiate unified plan planb have local \
    true false null undefined none high medium low very detail motion text maintain framerate \
    resolution camera screen screencast speech music open opening closing close live ended muted \
    mute unmute enabled disabled active passive actpass held holdconn frozen waiting in-progress \
    progress inprogress succeeded nominated controlling controlled unknown ethernet wifi cellular \
    bluetooth vpn wimax loopback any not applicable user environment left right inbound outbound \
    signaling connection ice gathering state establishing established establishment track stream \
    transceiver sender receiver report certificate rtcpmux muxed candidate candidates pair peer \
    peerconnection rtcpeerconnection createoffer createanswer setlocaldescription \
    setremotedescription addicecandidate addtrack addtransceiver addstream removetrack \
    createdatachannel getstats getusermedia getdisplaymedia oniceconnectionstatechange \
    onicecandidate ontrack onsignalingstatechange onconnectionstatechange negotiationneeded \
    onicegatheringstatechange onnegotiationneeded ondatachannel onsuccess onfailure create \
    signalingstatechange iceconnectionstatechange connectionstatechange icegatheringstatechange \
    icecandidate setconfiguration restartice caller callee \
    iceservers urls username credential credentialtype icetransportpolicy bundlepolicy \
    rtcpmuxpolicy icecandidatepoolsize sdpsemantics certificates optional mandatory constraints \
    sdpmid sdpmlineindex ordered negotiated maxretransmits maxpacketlifetime priority trackid \
    streamids \
    offerer answerer observed up down uplink \
    downlink initial default auto disable enable yes no on off default echo tone pattern counter \
    ecdsa rsa encoded decoded recovered concealed undecodable timer began lasts
    """

  private static let protocols = """
    aomediacodec github io spec dependency descriptor header extension layers allocation csrcs ntp \
    corruption detection rtcp mux report interval generic frame descriptor00 \
    opus pcmu pcma g g722 g711 isac cn telephone event red ulpfec flexfec flexfec rtx vp av1 av1x \
    h264 h265 hevc vp8 vp9 h 264 265 avp avpf savp savpf rtp rtcp srtp srtcp dtls sctp webrtc ip4 \
    ip6 ip ipv4 ipv6 sha md aead aes cm hmac gcm ctr ecdhe with chacha poly1305 chacha20 null sha1 \
    sha256 sha384 sha512 aes128 aes256 x25519 secp256r1 prime256v1 p256 suite b feff fefd fefc \
    urn ietf params hdrext rtpstream id repaired sdes mid rid http https www org experiments \
    rtphdrext abs send time transport wide cc extensions draft holmer rmcat toffset ssrc level \
    orientation gpp 3gpp playout delay content type \
    timing color space capture absolute inband csrc \
    minptime useinbandfec stereo sprop usedtx cbr maxaveragebitrate maxplaybackrate ptime maxptime \
    apt profile level asymmetry allowed packetization mode tier \
    idx rate goog remb ccm fir nack pli \
    sli rpsi ack rrtr lrr transportcc transportcc xgooglestartbitrate google start min bitrate fec \
    usrsctp app webrtcdatachannel datachannel extmap allow mixed msid semantic wms group bundle ls \
    lip sync fid sim fecfr fr cname mslabel label setup fingerprint ufrag pwd options trickle \
    renomination ice2 lite mux only rsize rtcpfb fb fmtp rtpmap simulcast send recv generation \
    network cost typ raddr rport tcptype so protocol reflexive stun stuns turn turns transport \
    srtp_aead_aes_128_gcm srtp binding request response success error indication allocate refresh \
    createpermission channelbind unauthorized unauthenticated stale nonce forbidden mismatch \
    allocation bad attribute role conflict
    """

  private static let statistics = """
    operationerror notallowederror notfounderror invalidstateerror invalidaccesserror typeerror \
    overconstrainederror aborterror notreadableerror rtcerror notsupportederror permission denied \
    dismissed requested device \
    rtp inboundrtp outboundrtp remoteinboundrtp remoteoutboundrtp mediasource mediaplayout playout \
    codec candidatepair localcandidate remotecandidate peerconnection datachannel streams \
    timestamp kind mimetype libvpx libopus openh264 libaom dav1d ffmpeg libgav1 simulcastencoder \
    adapter external hardware software internal quality limitation reason bandwidth cpu other \
    googcandidatepair googcomponent googtrack googcertificate googlibjinglesession videobwe \
    localcandidate remotecandidate \
    rtccodecstats stats ssrcs sr rr sdes bye nack fir remb xr twcc cc
    """

  private static let signaling = """
    janus plugin videoroom audiobridge echotest textroom videocall streaming sip publisher \
    publishers subscriber subscribers attached joined join joinandconfigure configure configured \
    publish published unpublish unpublished start \
    started stop update updated subscribe unsubscribe \
    leave leaving left keepalive trickle detach detached destroy destroyed create created webrtcup \
    hangup media slowlink event ack result ok server info session timeout message jsep ptype \
    request body websocket retake http whip whep \
    sora connect redirect ping pong notify push switched \
    switch reoffer reanswer sendrecv connected disconnect destroyed talking stopped talking \
    participants audiolevel opened frame application json sdp trickleicesdpfrag plain charset utf \
    get post put patch delete options content length type location etag link keep alive gzip \
    deflate chunked accept upgrade switching protocols ok created bad found method allowed text \
    html javascript nosniff allow origin control access headers methods expose max age vary cache \
    no store host connection \
    conference focus jicofo jigasi jibri jvb bridge colibri jingle endpoint endpoints visitor \
    visitors xmpp muc occupant members owner region moderator
    """
}
