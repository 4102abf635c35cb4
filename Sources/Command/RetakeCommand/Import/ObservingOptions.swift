import ArgumentParser
import FoundationEssentials
import Importing
import Media
import Observer
import Tape
import Wire

/// What is told of calls between others beside their packets, and what is kept of them.
struct ObservingOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "An SRTP key with its salt, in hexadecimal or base64; before it may stand whose packets it "
        + "is for, as in ssrc:1234=KEY or 192.0.2.1:5000=KEY. \(Taking.secretForm)",
      valueName: "key"),
    transform: Taking.secret(ObservingOptions.key))
  var srtpKey: [String] = []

  @Option(
    help: "A session description of one of the ends; may be given several times.",
    completion: .file(), transform: Taking.path)
  var sdp: [String] = []

  @Option(
    help: "What payload types stand for, as in 96=vp8,97=rtx,111=opus/48000.",
    transform: ObservingOptions.payloadTypes)
  var map: String?

  @Flag(
    help: """
      Read RTP without keys as RTP in the clear, where its payloads do not show that by themselves.
      """)
  var clear = false

  @Flag(help: "Decode what the ends receive, for levels and digests of video and audio.")
  var decode = false

  @Flag(help: "Do not keep encoded frames in the clear.")
  var noMediaCopy = false

  @Option(
    help: ArgumentHelp(
      "How many paths between two addresses are told apart; an eighth of them may be new within "
        + "ten minutes without an answer. What comes on others is counted as of no call. "
        + "Default: \(ObserverSettings.usualPathsMaximum).",
      valueName: "count"),
    transform: Taking.whole(8...1_000_000))
  var paths = ObserverSettings.usualPathsMaximum

  @Option(help: "A name for the take.", transform: Taking.text())
  var label = ""

  @Option(
    help: ArgumentHelp(
      "What the end at an address is called, as in 192.0.2.1=alice or 192.0.2.1:5000=bob; may be "
        + "given several times.",
      valueName: "address=name"),
    transform: ObservingOptions.endName)
  var name: [ObserverGenesis.EndName] = []

  private static let key: Taking.Reader<String> = { word in
    do throws(SRTPKeyError) {
      _ = try SRTPKey(parsing: word)
    } catch {
      throw Taking.Refusal(error.reason)
    }
    return word
  }

  private static let endName: Taking.Reader<ObserverGenesis.EndName> = { word in
    let parts = word.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.count == 2, (1...200).contains(parts[1].utf8.count),
      !parts[1].unicodeScalars.contains(where: { $0.value < 32 })
    else {
      throw Taking.Refusal("it is an address and a name, as in 192.0.2.1=alice")
    }
    let name = String(parts[1])
    if let address = SocketAddress(parts[0]) {
      return ObserverGenesis.EndName(address: address.description, name: name)
    }
    guard let address = IPAddress(parts[0]) else {
      throw Taking.Refusal("\(parts[0]) is no address; give one as 192.0.2.1 or 192.0.2.1:5000")
    }
    return ObserverGenesis.EndName(address: address.description, name: name)
  }

  private static let payloadTypes: Taking.Reader<String> = { word in
    guard PayloadTypeMapping.list(parsing: word) != nil else {
      throw Taking.Refusal(
        "payload types are from 0 to 127, each with its codec, as in 96=vp8,97=rtx")
    }
    return word
  }

  /// How a take is made with these.
  func settings() throws(CommandFailure) -> ImportSettings {
    var settings = ImportSettings()
    settings.label = label
    settings.keepsMedia = !noMediaCopy
    settings.payloadTypes = map
    settings.isClear = clear
    settings.decodes = decode
    if decode { LibraryCodecs.missingDecoders.forEach { printError("retake: \($0)") } }
    settings.srtpKeys = srtpKey
    settings.pathsMaximum = paths
    settings.names = name
    for path in sdp { settings.descriptions.append(try Self.text(path)) }
    return settings
  }

  /// The text in a file.
  static func text(_ path: String) throws(CommandFailure) -> String {
    switch FileBytes.read(path) {
    case .success(let bytes): return String(decoding: bytes, as: UTF8.self)
    case .failure(let code):
      throw CommandFailure(.noSuchFile, "\(path): it cannot be read: \(code)")
    }
  }
}
