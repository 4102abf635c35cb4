import Foundation
import Retake
import Testing

/// The code in the article "Calls between others", and the library's pages of takes.
@Suite(.timeLimit(.minutes(10))) struct CallsBetweenOthersTests {
  private static let captures = URL(fileURLWithPath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent().appendingPathComponent("Captures").path

  private func importCall(
    in capture: String, _ keyLog: String, to take: String
  ) throws -> CaptureSummary {
    var settings = ImportSettings()
    settings.keyLogs = [keyLog]
    let summary = try CaptureImporter(capture, settings: settings).write(to: take)
    print(summary.words)
    return summary
  }

  @Test func aCaptureBecomesATakeThatReplays() async throws {
    let folder = FileManager.default.temporaryDirectory.path + "/import-" + UUID().uuidString
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let seen = try Take.open(Self.captures + "/virtual-loss.take")
    try await seen.exportPackets(to: folder + "/call.pcap", peer: 1)

    let take = folder + "/call.take"
    let summary = try importCall(in: folder + "/call.pcap", "", to: take)
    #expect(summary.take == take && summary.calls == 1 && summary.streams > 0)
    #expect(summary.packetsInClear < summary.packets)
    #expect(try await Take.open(take).replay().outcome == .identical)
    // An existing file is not replaced, and each call can have its own file.
    #expect(throws: TapeError.self) { try importCall(in: folder + "/call.pcap", "", to: take) }
    let calls = try CaptureImporter(folder + "/call.pcap").writeCalls(to: folder + "/calls")
    #expect(calls.takes.map(\.take) == [folder + "/calls/call-1.take"])
  }

  @Test func anUnreadableCaptureIsAnErrorThatNamesIt() throws {
    let path = Self.captures + "/README.md"
    #expect {
      try CaptureImporter(path).write(to: "/nowhere/call.take")
    } throws: { error in
      "\(error)".hasPrefix(path)
    }
  }

  @Test func aTakeIsServedToABrowser() async throws {
    let server = try await TakeServer([Self.captures + "/virtual-loss.take"])
    let url = try #require(URL(string: server.pageURL))
    let token = url.fragment?.replacingOccurrences(of: "token=", with: "") ?? ""
    let client = HTTPClient()
    let page = try await client.send("GET", String(server.pageURL.prefix { $0 != "#" }))
    #expect(page.status == 200 && page.text.contains("<html"))
    let list = try await client.send(
      "GET", String(server.pageURL.prefix { $0 != "#" }) + "takes",
      headers: [("Authorization", "Bearer \(token)")])
    #expect(list.status == 200 && list.text.contains("virtual-loss.take"))
    let refused = try await client.send(
      "GET", String(server.pageURL.prefix { $0 != "#" }) + "takes")
    #expect(refused.status == 401)
    await server.shutdown()
    await #expect(throws: TapeError.self) { try await TakeServer(["/nowhere.take"]) }
  }
}
