import SDP
import Signaling
import Synchronization
import Testing

/// Calls that record their requests.
final class ScriptedCalls: CallHandling {
  private let asked = Mutex<[String]>([])
  var log: [String] { asked.withLock { $0 } }

  private func note(_ text: String) { asked.withLock { $0.append(text) } }

  func begin(offer sdp: String) async throws(CallRefusal) -> CallDescription {
    note("offer \(sdp)")
    if sdp == "bad" { throw CallRefusal(.badRequest, "line 1: not an SDP") }
    if sdp == "busy" { throw CallRefusal(.busy, "all lines are in use") }
    return CallDescription(id: "c1", sdp: "answer to \(sdp)", type: "answer")
  }

  func makeOffer() async throws(CallRefusal) -> CallDescription {
    note("mkoffer")
    return CallDescription(id: "c2", sdp: "v=0 \"quoted\"\r\n", type: "offer")
  }

  func follow(offer sdp: String, call id: String) async throws(CallRefusal) -> CallDescription {
    note("offer \(id) \(sdp)")
    if id != "c1" { throw CallRefusal(.unknownCall, "there is no call \(id)") }
    return CallDescription(id: id, sdp: "answer to \(sdp)", type: "answer")
  }

  func makeOffer(call id: String, changing changes: OfferChanges) async throws(CallRefusal)
    -> CallDescription
  {
    note(
      "mkoffer \(id) \(changes.restartsICE) \(changes.additions) \(changes.stops) "
        + "\(changes.directions)")
    return CallDescription(id: id, sdp: "changed", type: "offer")
  }

  func accept(answer sdp: String, call id: String) async throws(CallRefusal) {
    note("answer \(id) \(sdp)")
    if id != "c2" { throw CallRefusal(.unknownCall, "there is no call \(id)") }
    if sdp == "again" { throw CallRefusal(.conflict, "the call was answered already") }
  }

  func add(_ candidate: CandidateInit?, call id: String) async throws(CallRefusal) {
    note("candidate \(id) \(candidate?.candidate ?? "none") \(candidate?.sdpMid ?? "-")")
  }

  func end(call id: String) async throws(CallRefusal) { note("end \(id)") }

  func list() async -> CallList {
    CallList(
      limit: 2, recording: "a.take",
      calls: [.init(id: "call-1", connection: "connected", take: "a.take")])
  }

  func stats(call id: String?) async throws(CallRefusal) -> String {
    if id == "broken" { throw CallRefusal(.failure, "no stats today") }
    return "{\"of\":\"\(id ?? "all")\"}"
  }

  func page(call id: String) async throws(CallRefusal) -> String {
    note("page \(id)")
    if id == "busy" { throw CallRefusal(.busy, "another page is being drawn") }
    return "<!doctype html>\(id)"
  }
}

struct SignalingRoutesTests {
  struct Case: Sendable, CustomTestStringConvertible {
    var request: String
    var body = ""
    var status: Int
    /// The response's body, or a part of the refusal.
    var response: String
    /// The requests made to the calls.
    var asked: [String] = []
    /// Whether the request carries the server's token.
    var isAuthorized = false
    var testDescription: String { "\(request) \(body.prefix(60))" }
  }

  static let cases = [
    Case(
      request: "POST /offer", body: #"{"sdp":"x","type":"offer"}"#, status: 200,
      response: #"{"id":"c1","sdp":"answer to x","type":"answer"}"#, asked: ["offer x"]),
    Case(
      request: "POST /offer", body: #"{"sdp":"x"}"#, status: 200,
      response: #"{"id":"c1","sdp":"answer to x","type":"answer"}"#, asked: ["offer x"]),
    Case(
      request: "POST /offer", body: #"{"sdp":"x","type":"answer"}"#, status: 400,
      response: "the type is answer, but offer is expected"),
    Case(request: "POST /offer", body: #"{"sdp":""}"#, status: 400, response: "the sdp is empty"),
    Case(
      request: "POST /offer", body: #"{"sdp":"bad"}"#, status: 400, response: "line 1: not an SDP",
      asked: ["offer bad"]),
    Case(
      request: "POST /offer", body: #"{"sdp":"busy"}"#, status: 503,
      response: "all lines are in use",
      asked: ["offer busy"]),
    Case(request: "POST /offer", body: "", status: 400, response: "needs a JSON object"),
    Case(request: "POST /offer", body: "[1]", status: 400, response: "needs a JSON object"),
    Case(request: "POST /offer", body: #"{"sdp":1}"#, status: 400, response: "needs a JSON object"),
    Case(
      request: "POST /offer", body: String(repeating: "[", count: 100_000), status: 400,
      response: "needs a JSON object"),
    Case(
      request: "POST /mkoffer", status: 200,
      response: #"{"id":"c2","sdp":"v=0 \"quoted\"\r\n","type":"offer"}"#, asked: ["mkoffer"]),
    Case(
      request: "POST /offer", body: #"{"id":"c1","sdp":"x"}"#, status: 200,
      response: #"{"id":"c1","sdp":"answer to x","type":"answer"}"#, asked: ["offer c1 x"]),
    Case(
      request: "POST /offer", body: #"{"id":"c9","sdp":"x"}"#, status: 404,
      response: "there is no call c9", asked: ["offer c9 x"]),
    Case(
      request: "POST /mkoffer", body: "{}", status: 200,
      response: #"{"id":"c2","sdp":"v=0 \"quoted\"\r\n","type":"offer"}"#, asked: ["mkoffer"]),
    Case(
      request: "POST /mkoffer",
      body: #"{"id":"c1","iceRestart":true,"add":["video"],"directions":{"0":"inactive"}}"#,
      status: 200, response: #"{"id":"c1","sdp":"changed","type":"offer"}"#,
      asked: [#"mkoffer c1 true ["video"] [] ["0": "inactive"]"#]),
    Case(
      request: "POST /mkoffer", body: #"{"stop":["1"]}"#, status: 400,
      response: "needs the id of the call"),
    Case(
      request: "POST /mkoffer", body: #"{"add":"video"}"#, status: 400,
      response: "needs a JSON object"),
    Case(
      request: "POST /answer", body: #"{"id":"c2","sdp":"y","type":"answer"}"#, status: 200,
      response: "{}", asked: ["answer c2 y"]),
    Case(
      request: "POST /answer", body: #"{"id":"c2","sdp":"again"}"#, status: 409,
      response: "answered already", asked: ["answer c2 again"]),
    Case(
      request: "POST /answer", body: #"{"id":"c9","sdp":"y"}"#, status: 404,
      response: "there is no call c9", asked: ["answer c9 y"]),
    Case(
      request: "POST /answer", body: #"{"sdp":"y"}"#, status: 400,
      response: "the answer has no id"),
    Case(
      request: "POST /candidate", body: #"{"id":"c1","candidate":"candidate:1","sdpMid":"0"}"#,
      status: 200, response: "{}", asked: ["candidate c1 candidate:1 0"]),
    Case(
      request: "POST /candidate", body: #"{"id":"c1","candidate":null}"#, status: 200,
      response: "{}", asked: ["candidate c1 none -"]),
    Case(
      request: "POST /bye", body: #"{"id":"c1"}"#, status: 200, response: "{}", asked: ["end c1"]),
    Case(request: "DELETE /call/c%31", status: 200, response: "{}", asked: ["end c1"]),
    Case(
      request: "GET /calls", status: 200,
      response: #"{"calls":[{"connection":"connected","id":"call-1","take":"a.take"}],"limit":2,"#
        + #""recording":"a.take"}"#, isAuthorized: true),
    // Without the token, calls cannot be listed; a known call can be viewed.
    Case(
      request: "GET /calls", status: 200,
      response: #"{"calls":[],"limit":2,"recording":"a.take"}"#),
    Case(
      request: "GET /calls?id=call-1", status: 200,
      response: #"{"calls":[{"connection":"connected","id":"call-1","take":"a.take"}],"limit":2,"#
        + #""recording":"a.take"}"#),
    Case(
      request: "GET /page?id=c%31", status: 200, response: "<!doctype html>c1", asked: ["page c1"]),
    Case(
      request: "GET /page?id=busy", status: 503, response: "another page", asked: ["page busy"]),
    Case(request: "GET /page", status: 400, response: "needs the id of a call"),
    Case(request: "POST /page?id=c1", status: 405, response: "/page supports GET"),
    Case(request: "GET /stats", status: 401, response: "needs the token from the address"),
    Case(request: "GET /stats", status: 200, response: #"{"of":"all"}"#, isAuthorized: true),
    Case(request: "GET /stats?x&id=a+b", status: 200, response: #"{"of":"a b"}"#),
    Case(request: "GET /stats?id=broken", status: 500, response: "no stats today"),
    Case(request: "GET /", status: 200, response: "<!doctype html>"),
    Case(request: "HEAD /stats", status: 200, response: #"{"of":"all"}"#, isAuthorized: true),
    Case(request: "OPTIONS /offer", status: 204, response: ""),
    Case(request: "GET /offer", status: 405, response: "/offer supports POST"),
    Case(request: "POST /stats", status: 405, response: "/stats supports GET"),
    Case(request: "BREW /", status: 405, response: "/ supports GET"),
    Case(request: "GET /nothing", status: 404, response: "there is nothing at /nothing"),
    Case(request: "GET /%", status: 404, response: "there is nothing at /%"),
  ]

  @Test(arguments: cases) func answers(_ row: Case) async {
    let calls = ScriptedCalls()
    let words = row.request.split(separator: " ")
    var request = HTTPRequest(
      method: String(words[0]), target: String(words[1]), body: Array(row.body.utf8))
    request.isAuthorized = row.isAuthorized
    let response = await SignalingRoutes(calls: calls).respond(to: request)
    #expect(response.status == row.status)
    if row.status == 200, response.text.hasPrefix("{") {
      #expect(response.text == row.response)
    } else {
      #expect(response.text.contains(row.response))
    }
    #expect(calls.log == row.asked)
  }

  @Test func aRefusedMethodNamesTheRightOnes() async {
    let request = HTTPRequest(method: "PUT", target: "/call/x")
    let response = await SignalingRoutes(calls: ScriptedCalls()).respond(to: request)
    #expect(response.headers.contains { $0.name == "Allow" && $0.value == "DELETE" })
  }

  @Test func thePageLoadsNothingElse() {
    #expect(!callPage.contains("src=\"http"))
    #expect(!callPage.contains("href=\"http"))
    #expect(callPage.contains("window.retake"))
    #expect(callPage.utf8.count < 20_000)
  }
}
