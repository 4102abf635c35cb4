import Foundation
import Testing

/// A peer over HTTP that accepts audio and data channels, and rejects video in every answer.
final class RefusingPeer: Sendable {
  private let run: Run
  private let folder: Folder
  /// The address, `http://127.0.0.1:PORT`.
  let url: String

  static let isPossible = Tool.has("python3")

  init() async throws {
    folder = try Folder()
    let script = try folder.write("peer.py", Self.script.utf8)
    run = try Run("/usr/bin/env", ["python3", script])
    try await run.waitForErrors(with: "listening on ")
    let port = run.errors.split(separator: "\n").first?.split(separator: " ").last
    url = "http://127.0.0.1:\(try #require(port))"
  }

  deinit { run.send(SIGKILL) }

  /// Answers the offer in a file, without the network.
  static func answer(toOfferIn path: String) async throws -> String {
    let folder = try Folder()
    let script = try folder.write("peer.py", Self.script.utf8)
    let outcome = try await Tool.shell("python3 '\(script)' '\(path)'")
    #expect(outcome.status == 0, "\(outcome.errors)")
    return outcome.output
  }

  private static let script = #"""
    import http.server, json, re, sys

    OWN = ["a=ice-ufrag:abcd", "a=ice-pwd:abcdefghijklmnopqrstuvwx", "a=setup:active",
           "a=fingerprint:sha-256 " + ":".join(["AB"] * 32)]
    KEPT = r"a=(mid|rtpmap|fmtp|rtcp-mux|sctp-port|max-message-size)"

    def answer(offer):
        sections = re.split(r"(?m)^(?=m=)", offer.replace("\r\n", "\n"))[1:]
        taken, lines = [], []
        for section in sections:
            first, *rest = section.strip().split("\n")
            refused = first.startswith("m=video")
            mid = next(line[6:] for line in rest if line.startswith("a=mid:"))
            lines += [re.sub(r" \d+ ", " 0 " if refused else " 9 ", first, count=1)]
            lines += ["c=IN IP4 0.0.0.0"]
            lines += [line for line in rest if re.match(KEPT, line)]
            if refused:
                lines += ["a=inactive"]
            else:
                taken.append(mid)
                lines += OWN + ["a=sendrecv"] * first.startswith("m=audio")
        head = ["v=0", "o=- 1 1 IN IP4 127.0.0.1", "s=-", "t=0 0"]
        group = ["a=group:BUNDLE " + " ".join(taken)]
        return "\r\n".join(head + group + lines) + "\r\n"

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            if self.path == "/whip":
                self.reply(201, "application/sdp", answer(body))
            else:
                reply = {"type": "answer", "sdp": answer(json.loads(body)["sdp"])}
                self.reply(200, "application/json", json.dumps(reply))

        def do_OPTIONS(self):
            self.reply(204, "text/plain", "")

        do_DELETE = do_PATCH = do_OPTIONS

        def reply(self, status, kind, text):
            self.send_response(status)
            self.send_header("Location", "/session")
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *words):
            pass

    if len(sys.argv) > 1:
        print(json.dumps({"sdp": answer(json.load(open(sys.argv[1]))["sdp"])}))
    else:
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        print("listening on", server.server_port, file=sys.stderr, flush=True)
        server.serve_forever()
    """#
}
