import Foundation

/// Descriptions made by browsers and servers, one per file.
enum Samples {
  static let names = [
    "aiortc-answer", "aiortc-offer", "chromium-answer", "chromium-datachannel-offer",
    "chromium-offer", "chromium-recvonly-offer", "chromium-simulcast-offer",
    "chromium-unencrypted-offer", "firefox-answer", "firefox-offer", "firefox-recvonly-answer",
    "janus-answer", "janus-audiobridge-answer", "janus-offer", "janus-recording-offer",
    "libwebrtc-answer", "libwebrtc-offer", "chromium-called", "firefox-called",
    "gstreamer-called", "gstreamer-offer", "janus-bridge-called", "janus-bridge-offer",
    "janus-echo-called", "janus-room-called", "libwebrtc-called",
  ]

  /// Returns a sample's text with its original line ends.
  static func text(_ name: String) throws -> String {
    let folder = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Samples")
    return try String(contentsOf: folder.appending(path: name + ".sdp"), encoding: .utf8)
  }

  /// Returns a sample's lines without line ends.
  static func lines(_ name: String) throws -> [String] {
    try text(name).split(separator: "\r\n").map { String($0) }
  }
}

/// Joins lines to a description as sent on the wire.
func joined(_ lines: [String]) -> String { lines.map { $0 + "\r\n" }.joined() }
