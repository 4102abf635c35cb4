import Wire

extension Codec {
  /// All codecs in order of preference within each kind; those that can be decoded come first.
  package static let all = [opus, pcmu, pcma, telephoneEvent, vp8, vp9, h264, av1]

  private static let opus = Codec(
    name: .opus, spelling: "opus", title: "Opus", kind: .audio, clockRate: 48_000, channels: 2,
    formats: [OfferedFormat("minptime=10;useinbandfec=1", 111)], payload: .whole)

  private static let pcmu = Codec(
    name: .pcmu, spelling: "PCMU", title: "G.711 (PCMU)", kind: .audio, clockRate: 8_000,
    formats: [OfferedFormat("", 0)], isUsual: false, payload: .whole)

  private static let pcma = Codec(
    name: .pcma, spelling: "PCMA", title: "G.711 (PCMA)", kind: .audio, clockRate: 8_000,
    formats: [OfferedFormat("", 8)], isUsual: false, payload: .whole)

  /// Events have the clock of the audio that they stand beside (RFC 7874 section 3).
  private static let telephoneEvent = Codec(
    name: .telephoneEvent, spelling: "telephone-event", title: "telephone events", kind: .audio,
    clockRate: 48_000,
    formats: [OfferedFormat("", 110), OfferedFormat("", 126, clockRate: 8_000)], isUsual: false,
    payload: .whole)

  private static let vp8 = Codec(
    name: .vp8, spelling: "VP8", title: "VP8", kind: .video, clockRate: 90_000,
    formats: [OfferedFormat("", 96)], poorQuantiser: 95, payload: .vp8)

  private static let vp9 = Codec(
    name: .vp9, spelling: "VP9", title: "VP9", kind: .video, clockRate: 90_000,
    formats: [OfferedFormat("profile-id=0", 98)], rules: .profile("profile-id", usual: "0"),
    poorQuantiser: 205, payload: .vp9)

  private static let h264 = Codec(
    name: .h264, spelling: "H264", title: "H.264", kind: .video, clockRate: 90_000,
    formats: [
      OfferedFormat(FormatRules.h264("42e01f", mode: 1), 102),
      OfferedFormat(FormatRules.h264("42e01f", mode: 0), 104),
      OfferedFormat(FormatRules.h264("4d001f", mode: 1), 106),
      OfferedFormat(FormatRules.h264("64001f", mode: 1), 108),
    ],
    rules: .h264, isPassedThrough: true, decoderTitle: "OpenH264", poorQuantiser: 37,
    payload: .h264, look: { H264Payload.look($0) },
    container: .byteStream(ending: "h264"))

  private static let av1 = Codec(
    name: .av1, spelling: "AV1", title: "AV1", kind: .video,
    clockRate: 90_000, formats: [OfferedFormat("level-idx=5;profile=0;tier=0", 45)],
    rules: .av1, isUsual: false, isOffered: false, isPassedThrough: true, decoderTitle: "dav1d",
    payload: .av1,
    look: { AV1Unit.look($0) }, recordsSize: true, container: .ivf(fourCC: "AV01"))
}
