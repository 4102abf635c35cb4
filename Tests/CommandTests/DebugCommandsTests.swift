import Foundation
import Testing

/// Tests the `retake debug` commands with valid, invalid and missing arguments.
struct DebugCommandsTests {
  private func debug(_ path: String, _ commands: String...) async throws -> Tool.Outcome {
    try await Tool.run(["debug", path] + commands.flatMap { ["-c", $0] })
  }

  @Test(arguments: [
    ("fly", "no command"), ("help fly", "no command"), ("continue 5", "no further arguments"),
    ("mark here", "no further arguments"), ("seek", "needs a place"), ("seek nowhere", "nowhere"),
    ("seek 99s", "later than the end"), ("seek step:999999", "the take has"),
    ("seek start here", "neither a place"), ("seek ssrc", "number of a source"),
    ("seek ssrc abc", "number of a source"), ("seek packet sequence=abc", "needs a number"),
    ("seek packet sequence>", "needs a value"), ("seek frame codec>vp8", "needs a number"),
    ("seek stat", "threshold"), ("seek stat colour>3", "no stats here have a member colour"),
    ("seek stat fecBytesReceived>0", "Opus carries its FEC"),
    ("seek stat freezeCount>0 packetsSent>0", "no stats object has all of"),
    ("next 0", "a count from 1 on"), ("next -3", "a count from 1 on"),
    ("back 0", "a count from 1 on"), ("steps x", "from 1 to 20"), ("steps 21", "from 1 to 20"),
    ("stats colour", "there are candidate-pair, "), ("show 1 colour", "nothing at \"colour\""),
    ("show 1 transprt", "did you mean transport?"),
    ("show 1 dtlsRole", "did you mean transport.dtlsRole?"),
    ("show 1 transport.dtlsRol", "did you mean transport.dtlsRole?"),
    ("show 9", "there is 1 caller, 2 callee"), ("show flow receiving", "a peer and a path"),
    ("show 1 ice.pairs[7]", "at ice.pairs there "), ("show ice.role.x", "the value is controll"),
    ("watch colour", "nothing at"), ("delete 3", "no breakpoint 3"),
    ("break packet colour=red", "payload_type, marker, local, remote, peer, label"),
    ("diff", "mark"), ("diff packet", "a step or a time"), ("picture", "name of a file"),
    ("frame peer=1", "name of a file"),
    ("frame x.png colour", "\"colour\" is not an argument"),
    ("frame x.png peer=a", "\"peer=a\" is not an argument"),
    ("frame /nowhere/x.png", "no video was received"),
    ("audio x.wav seconds=0", "from 0.02 to 600"),
  ])
  func aWrongCommandEndsAScriptInOneSentence(_ command: String, _ words: String) async throws {
    let made = try await Takes.lossyCall()
    let outcome = try await debug(made.path, "next 30", command, "next")
    #expect(outcome.status == 64)
    #expect(outcome.errorLines.count == 1 && outcome.errors.contains(words), "\(outcome.errors)")
  }

  @Test func filesAreNotOverwritten() async throws {
    let made = try await Takes.lossyCall()
    let folder = try Folder()
    let file = folder.file("a.png")
    let written = try await debug(made.path, "seek 2s", "picture \(file)", "picture \(file)")
    #expect(written.status == 74 && written.output.contains("the same samples"))
    #expect(written.errors.contains("exists already"))
    let lost = try await debug(made.path, "seek 2s", "sound \(folder.path)/no/a.wav")
    #expect(
      lost.status == 74 && lost.errors.contains("No such file or directory"), "\(lost.errors)")
  }

  @Test func seekingTheCurrentTimeDoesNotMove() async throws {
    let made = try await Takes.lossyCall()
    let once = try await debug(made.path, "seek 1.5s")
    let again = try await debug(made.path, "seek 1.5s", "seek 1.5s", "seek 1.5")
    let line = try #require(once.output.split(separator: "\n").last)
    #expect(line.hasPrefix("at 1.") && again.output.hasSuffix("\(line)\n"))
  }

  @Test func placesLieAheadOrBehind() async throws {
    let made = try await Takes.lossyCall()
    let outcome = try await debug(
      made.path, "seek 1.5s", "back step:40", "next step:60", "next 1s", "back 0.5s", "next 0.2s",
      "back 2s")
    let places = outcome.output.split(separator: "\n").filter { $0.hasPrefix("at ") }
    try #require(places.count == 7, "\(outcome.output) \(outcome.errors)")
    #expect(places[1].hasSuffix("after step 39") && places[2].hasSuffix("after step 59"))
    #expect(places[3].hasPrefix("at 0.9") || places[3].hasPrefix("at 1."))
    #expect(places[4].hasPrefix("at 0.4") || places[4].hasPrefix("at 0.5"))
    #expect(places[5] == places[4] && places[6] == places[4])
    #expect(outcome.output.contains("nothing later matches \"0.2s\""))
    #expect(outcome.output.contains("nothing earlier matches \"2s\""))
  }

  @Test func anUnsuccessfulSearchDoesNotMove() async throws {
    let made = try await Takes.lossyCall()
    let outcome = try await debug(
      made.path, "seek step:200", "next state connection failed", "seek state connection failed",
      "next stat freezeCount>1000", "seek stat jitter>1000", "back stat framesDecoded>1000",
      "back event nothing")
    let places = outcome.output.split(separator: "\n").filter { $0.hasPrefix("at ") }
    #expect(places.count == 7 && Set(places).count == 1, "\(outcome.output) \(outcome.errors)")
    #expect(outcome.output.contains("nothing in the take matches \"stat jitter>1000\""))
  }

  @Test func aBreakpointStopsAtTimesStepsRowsAndThresholds() async throws {
    let made = try await Takes.lossyCall()
    let outcome = try await debug(
      made.path, "break 1s", "break step:300", "break packet rtcp nack",
      "break stat framesDecoded>=5 kind=video peer=2", "continue", "continue", "continue",
      "continue", "delete 3", "continue", "continue", "continue")
    let stops = outcome.output.split(separator: "\n").filter { $0.hasPrefix("breakpoint ") }
    #expect(stops.contains("breakpoint 1: 1s") && stops.contains("breakpoint 2: step:300"))
    #expect(stops.contains("breakpoint 4: stat framesDecoded>=5 kind=video peer=2"))
    #expect(stops.contains("breakpoint 3: packet rtcp nack"), "\(outcome.output)")
    let times = outcome.output.split(separator: "\n").filter { $0.hasPrefix("at ") }
    #expect(times == times.sorted())
  }
}
