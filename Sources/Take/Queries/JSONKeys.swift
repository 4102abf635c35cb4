/// What a key in a JSON column means.
package struct JSONKey: Sendable, Hashable {
  /// The table and column, such as `rtcp.fields`.
  package var column: String
  /// The type or name of the rows that have the key, such as `sr`; nil for all rows.
  package var type: String?
  package var key: String
  package var meaning: String

  /// All documented keys, except members of `stat`, which `StatsMembers` describes.
  package static let all: [JSONKey] = table.split(separator: "\n").map { line in
    let parts = line.split(separator: "|", maxSplits: 1)
    let words = parts[0].split(separator: " ").map(String.init)
    return JSONKey(
      column: words[0], type: words[1] == "*" ? nil : words[1], key: words[2],
      meaning: String(parts[1].dropFirst()))
  }

  /// Returns whether a column's key is documented for rows of a type.
  package static func isKnown(_ key: String, of column: String, type: String) -> Bool {
    all.contains { $0.column == column && $0.key == key && ($0.type ?? type) == type }
  }

  /// The keys as SQL comments, as `retake sql --schema` prints them.
  package static var text: String {
    var text = "-- Keys of columns with JSON, by the type or the name of the row (*: of all):\n"
    var column = ""
    for key in all {
      if key.column != column { text += "--\n-- \(key.column)\n" }
      column = key.column
      let name = "\(key.type ?? "*") \(key.key)"
      let space = String(repeating: " ", count: max(1, 38 - name.count))
      text += "--   \(name)\(space)\(key.meaning)\n"
    }
    return text
  }

  private static let table = """
    take.toolchain * cpu | architecture and features of the processor
    take.toolchain * openssl | version of OpenSSL, and the fingerprint of its engine
    take.toolchain * opus | version of libopus
    take.toolchain * srtp | version of libsrtp2
    take.toolchain * vpx | version of libvpx
    take.toolchain * openh264 | version of OpenH264, if it is installed
    take.toolchain * dav1d | version of dav1d, if it is installed
    take.toolchain * tags | the tags given to the recording, by key; see the view tag
    peer.configuration * answersAsDTLSClient | whether an answer makes the peer the DTLS client
    peer.configuration * audioBitrate | bits per second of an Opus encoder
    peer.configuration * awaitsSlowPaths | whether checks await responses of slow paths
    peer.configuration * bundlePolicy | as in W3C's RTCConfiguration
    peer.configuration * certificates | certificates from the application
    peer.configuration * codecs | codecs that are offered, the preferred first
    peer.configuration * decoders | codecs that this build can decode in addition to those of all \
    builds
    peer.configuration * drawnBytes | the drawn random bytes, if the seed was redacted
    peer.configuration * enablesDSCP | whether packets are marked with their priority (RFC 8837)
    peer.configuration * encoders | codecs that this build can encode in addition to VP8 and VP9
    peer.configuration * establishmentNeedsAllCandidates | whether the time for a connection \
    begins with the last candidate
    peer.configuration * establishmentTimeoutMilliseconds | how long a connection may take; 0: no \
    limit
    peer.configuration * hasCompleteStatistics | whether getStats has the members of format 7
    peer.configuration * headerExtensions | header extensions that are used, by URI
    peer.configuration * iceAddressPrivacy | whether local addresses are hidden behind mDNS names
    peer.configuration * iceCandidatePoolSize | transports that gather before they are needed
    peer.configuration * iceReceivingTimeoutMilliseconds | silence that counts as disconnected
    peer.configuration * iceServers | STUN and TURN servers
    peer.configuration * urls | their addresses
    peer.configuration * username | the name for a TURN server
    peer.configuration * credential | the password for it
    peer.configuration * iceTCP | whether TCP candidates are gathered
    peer.configuration * iceTransportPolicy | all or relay
    peer.configuration * ignoresUnusedTransports | whether transports may close after bundling
    peer.configuration * jitterBufferMinimum | the minimum playout delay in milliseconds
    peer.configuration * limitationFollowsTarget | whether a low target counts as limited bandwidth
    peer.configuration * notices | optional events that are reported
    peer.configuration * ownCodecs | the application's codecs
    peer.configuration * rampsVolume | whether changes of gain are spread over a block
    peer.configuration * receivesAllOffered | whether codecs that the answer omits are received
    peer.configuration * relays | whether the peer is one leg of a relay
    peer.configuration * reportsWithKeyframeDemands | whether a receiver report is sent with each \
    PLI
    peer.configuration * srtpProtections | SRTP profiles that are offered, the preferred first
    peer.configuration * takesOfferedLayers | whether an offer that asks for simulcast gets layers
    peer.configuration * usesIPv6 | whether IPv6 candidates are gathered
    peer.configuration * videoBitrateMaximum | bits per second at most
    peer.configuration * videoBitrateStart | bits per second at first
    actor.configuration observer awaitsKeys | whether packets wait for later keys
    actor.configuration observer countsEarlyRepeats | whether repairs count before their NACK
    actor.configuration observer decoders | decoders besides VP8 and VP9
    actor.configuration observer decodes | whether media was decoded
    actor.configuration observer findsIdentifiers | whether RTCP's key identifiers are always found
    actor.configuration observer firstPeer | the number of the first peer of the observer
    actor.configuration observer followsKeys | whether an end may change its SRTP key
    actor.configuration observer isClear | whether media without keys is unencrypted
    actor.configuration observer judgesClosely | whether streams are judged by all evidence
    actor.configuration observer names | the names of ends by address
    actor.configuration observer address | the address of a named end
    actor.configuration observer name | the name of the end
    actor.configuration observer pathsMaximum | how many paths are followed
    actor.configuration observer payloadTypes | payload types that were given by options
    actor.configuration observer playsG711 | whether G.711 is decoded always
    actor.configuration observer repairsFully | whether all repairs of a receiver are applied
    actor.configuration observer revision | which revision of the observer made the rows
    actor.configuration observer rowsPerStep | how many rows a step has, approximately
    actor.configuration observer startUnixNanoseconds | Unix time at at_ns = 0
    actor.configuration observer tellsTransports | whether statistics include transports and pairs
    actor.configuration observer waitingBytesMaximum | how many bytes may wait for keys
    actor.configuration observer waitingPacketsMaximum | how many packets may wait for keys
    actor.configuration observer wakeMilliseconds | how exactly the ends are woken
    actor.configuration room actionTimeoutMilliseconds | how long the service may take to answer
    actor.configuration room audioOccupants | the maximum number of received voices
    actor.configuration room checksRoomID | whether names of rooms are checked before they are \
    sent
    actor.configuration room connectTimeoutMilliseconds | how long joining may take
    actor.configuration room drawnBytes | the drawn random bytes, if the seed was \
    redacted
    actor.configuration room needsToken | whether the service needs a token
    actor.configuration room restartDelayMilliseconds | how long to wait for a connection before \
    ICE restarts
    actor.configuration room restartMaximum | how often ICE may restart
    actor.configuration room restartsOnceConnected | whether a restart that is requested before \
    a connection has a state happens once it is connected
    actor.configuration room signaling | the protocol of the service
    actor.configuration room protocolName | janus, sora, ...
    actor.configuration room options | the protocol's options
    actor.configuration room plugin | which plugin of Janus
    actor.configuration room urls | addresses of the service
    actor.configuration room subscribesAudio | whether remote audio is received
    actor.configuration room videoReceiverGrowthRate | how many video receivers are added at a time
    actor.configuration room videoReceiverInitialCount | the initial number of video receivers
    actor.configuration room videoReceiverMaximumCount | the maximum number of video receivers
    rtcp.fields * blocks | report blocks (RFC 3550 section 6.4.1); query the view report_block
    rtcp.fields * ssrc | whose stream it is about
    rtcp.fields * fraction_lost | packets lost since the last report, in parts of 256
    rtcp.fields * lost | packets lost in all
    rtcp.fields * highest | the highest sequence number received, with wraps in the upper 16 bits
    rtcp.fields * jitter | interarrival jitter in ticks of the stream's clock
    rtcp.fields * lsr | the middle of the NTP time of the last sender report
    rtcp.fields * dlsr | the time since then, in 1/65536 s
    rtcp.fields sr unix_us | the sender's clock, microseconds since 1970
    rtcp.fields sr rtp_time | the same instant on the stream's clock
    rtcp.fields sr packets | packets sent so far
    rtcp.fields sr octets | payload bytes sent so far
    rtcp.fields sdes chunks | the items of each source
    rtcp.fields sdes cname | the name that the streams of one sender share
    rtcp.fields bye ssrcs | sources that end
    rtcp.fields bye reason | why, in words
    rtcp.fields nack sequences | requested sequence numbers; query the view nack
    rtcp.fields fir entries | sources from which a key frame is requested
    rtcp.fields fir number | counts the requests to one source
    rtcp.fields remb bitrate | bits per second that the receiver can handle
    rtcp.fields remb ssrcs | streams that share them
    rtcp.fields transport-cc base | the first transport-wide sequence number; query the view \
    arrival
    rtcp.fields transport-cc count | how many packets the feedback covers
    rtcp.fields transport-cc received | how many of them arrived
    rtcp.fields transport-cc reference | the time of the first one in units of 64 ms
    rtcp.fields transport-cc feedback | counts the feedback
    rtcp.fields xr reference_unix_us | the receiver's clock (RFC 3611 section 4.4), \
    microseconds since 1970
    rtcp.fields xr delays | how long ago reference times were received (section 4.5)
    rtcp.fields xr lrr | the middle of the NTP time of the last reference time
    rtcp.fields xr dlrr | the time since then, in 1/65536 s
    rtcp.fields * length | bytes of a packet that is not parsed
    call.arguments * _0 | the first argument without a name
    call.arguments * _1 | the second argument without a name
    call.arguments * transceiver | the transceiver's number in its peer
    call.arguments * kind | audio or video
    call.arguments * mid | the m-section
    call.arguments * number | a number in the room or the peer
    call.arguments * media | media of a room, and m-sections that carry them
    call.arguments * type | offer, answer, pranswer or rollback
    call.arguments * sdp | a session description; query the views description and sdp_line
    call.arguments * candidate | a candidate, or its attribute
    call.arguments * sdpMid | the m-section of a candidate
    call.arguments * sdpMLineIndex | the place of that section, from 0
    call.arguments * usernameFragment | the ICE generation of a candidate
    call.arguments clearPath source | the near end's address of a path without encryption
    call.arguments clearPath destination | the far end's address
    call.arguments clearPath fragments | the ICE username fragments of both ends
    call.arguments addTrack source | what is sent: a pattern, a tone, or what the application \
    hands in
    call.arguments addTrack pattern | moving pictures
    call.arguments addTrack echo | what is received, sent back
    call.arguments addTrack application | what the application hands in
    call.arguments addTrack tone | a sine
    call.arguments addTrack framesPerSecond | of the pattern
    call.arguments addTrack width | of the pattern, pixels
    call.arguments addTrack height | of the pattern, pixels
    call.arguments addTrack hertz | of the tone
    call.arguments addTrack pauseSeconds | how long the tone is silent between its beeps
    call.arguments addTrack streamIDs | MediaStreams that the track belongs to
    call.arguments addTrack trackID | the name of the track
    call.arguments createDataChannel label | the channel's name
    call.arguments createDataChannel protocol | its subprotocol
    call.arguments createDataChannel ordered | whether messages arrive in order
    call.arguments createDataChannel negotiated | whether both ends created it without \
    negotiation in band
    call.arguments createDataChannel priority | as in RFC 8831 section 6.4
    call.arguments createOffer iceRestart | whether ICE restarts
    call.arguments getStats codecTimes | the time spent in codecs
    call.arguments getStats isInbound | whether it was spent in a decoder
    call.arguments getStats nanoseconds | the time
    call.arguments noteCapture event | what happened to a capturer
    call.arguments noteCapture framesPerSecond | of the capturer
    call.arguments noteCapture width | of its pictures, pixels
    call.arguments noteCapture height | of its pictures, pixels
    call.arguments noteCapture isScreencast | whether it is a screen
    call.arguments noteCapture pixelFormat | of its pictures
    call.arguments setCodecPreferences mimeType | as in W3C's RTCRtpCodec
    call.arguments setCodecPreferences clockRate | Hz
    call.arguments setCodecPreferences sdpFmtpLine | parameters of the codec
    call.arguments notSeen count | how many
    call.arguments notSeen detail | of what
    call.arguments connect displayName | the name for others
    call.arguments connect role | whether to send, receive, or both
    call.arguments connect room | the room
    call.arguments publish id | what the application calls the media
    call.arguments publish isActive | whether it is sent immediately
    call.arguments publish isAlwaysOn | whether it is always sent
    call.arguments publish extraValue | its owner's value
    call.arguments publish layers | layers of a simulcast
    call.arguments * report | a report of one of the room's connections
    call.arguments * description | a description that it made
    call.arguments * state | the state that it entered
    call.arguments * audioSlot | a receiver for a selected voice
    call.arguments * isHeld | whether it is in use
    call.arguments * receiving | media that begins to arrive
    call.arguments * sending | media that begins to be sent
    call.arguments * secured | that DTLS is done
    call.arguments * opened | that a signaling connection is open
    call.arguments * closed | that it is closed
    call.arguments * subprotocol | the subprotocol of a WebSocket
    call.arguments * code | the code that closed it
    call.arguments * reason | why, in words
    call.reply * id | the transceiver's number, or the stream of a channel
    call.reply * kind | audio or video
    call.reply * mid | the m-section
    call.reply * direction | what the transceiver is meant to do
    call.reply * currentDirection | the negotiated direction
    call.reply * remoteStreamIDs | the remote peer's MediaStreams with the track
    call.reply * type | offer or answer
    call.reply * sdp | a session description; query the views description and sdp_line
    call.reply * gone | ids of statistics objects that no longer exist
    call.reply * objects | how many statistics objects there are
    call.reply createDataChannel number | the channel's number in its peer
    call.reply createDataChannel readyState | as in W3C's RTCDataChannel
    call.reply createDataChannel bufferedAmount | bytes that wait to be sent
    call.reply createDataChannel isRemote | whether the remote peer created it
    call.reply createDataChannel maxMessageSize | bytes of the largest message
    call.reply createDataChannel options | the options that it was created with
    call.reply createDataChannel label | its name
    call.reply createDataChannel protocol | its subprotocol
    call.reply createDataChannel ordered | whether messages arrive in order
    call.reply createDataChannel negotiated | whether both ends created it without negotiation in \
    band
    call.reply createDataChannel priority | as in RFC 8831 section 6.4
    event.detail * candidate | a candidate attribute; none: the end of candidates
    event.detail * sdpMid | its m-section
    event.detail * sdpMLineIndex | the place of that section, from 0
    event.detail * usernameFragment | its ICE generation
    event.detail * kind | audio or video
    event.detail * mid | the m-section
    event.detail * direction | of a transceiver, or in and out of a track
    event.detail * currentDirection | the negotiated direction
    event.detail * remoteStreamIDs | the remote peer's MediaStreams with the track
    event.detail * track | the transceiver's number
    event.detail * transceiver | the transceiver's number
    event.detail * contributor | the CSRC of a voice in a mix
    event.detail * channel | the channel's number in its peer
    event.detail * id | the remote peer's identifier; of a track the transceiver's number
    event.detail * tracks | tracks of a MediaStream
    event.detail * reason | why, in words
    event.detail * transport | which transport, where there are several
    event.detail * layer | the layer that refused something
    event.detail certificate certificate | a local certificate, DER in base64
    event.detail keylog clientRandom | names the DTLS association in key logs
    event.detail keylog serverRandom | the random value of its server
    event.detail keylog masterSecret | secret: what all keys of it derive from
    event.detail keylog localCertificate | the local certificate, DER in base64
    event.detail keylog remoteCertificate | the remote peer's
    event.detail secured cipherSuite | the IANA name of the cipher suite
    event.detail secured profile | the SRTP profile
    event.detail secured remoteFingerprint | the SHA-256 of the remote peer's certificate
    event.detail secured role | client or server of DTLS
    event.detail secured version | of DTLS: FEFD is 1.2
    event.detail * participant | the participant, by the service's identifier
    event.detail * participants | who is in the room, with spaces between
    event.detail * progress | how far joining a room has come, in percent
    event.detail * media | the number of media in the room
    event.detail * local | the number of the local media
    event.detail * owner | whose media it is
    event.detail * active | whether it is sent
    event.detail * connection | which connection of the room carries it
    event.detail talking talking | whether there is speech
    event.detail talking dbov | the level that the service reports
    event.detail order order | what a room orders its signaling or a connection to do
    event.detail order with | the arguments of the order
    event.detail order _0 | the first argument without a name
    event.detail order _1 | the second argument without a name
    event.detail order extraValue | the owner's value for the media
    event.detail order number | a number in the room
    event.detail order isActive | whether media is sent immediately
    event.detail order isAlwaysOn | whether it is always sent
    event.detail order sdp | a session description
    event.detail order type | offer or answer
    event.detail order policy | how a description is applied
    event.detail order code | the code that closes a WebSocket
    event.detail order iceRestart | whether ICE restarts
    event.detail order subprotocols | subprotocols of a WebSocket
    event.detail order headers | headers of a request
    event.detail order servers | STUN and TURN servers of a connection
    event.detail order url | the address
    event.detail order layers | layers of a simulcast
    """
}
