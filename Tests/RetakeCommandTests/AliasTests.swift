import ArgumentParser
import Testing

@testable import RetakeCommand

/// Options and verbs have W3C's and the IETF's names; their former names are accepted as well.
struct AliasTests {
  private func read<Command: ParsableCommand>(_ type: Command.Type, _ words: String...) throws
    -> Command
  {
    try #require(try CommandReading.read(words) as? Command)
  }

  @Test(arguments: ["--frame-rate", "--rate"])
  func framesAreReadAtARate(option: String) throws {
    #expect(try read(RecordDemo.self, "record", "demo", option, "7").rate == 7)
    let export = try read(
      ExportCommand.self, "export", "a.take", "--media", "m", option, "24")
    #expect(export.rate == 24)
  }

  @Test(arguments: ["--ice-transport-policy", "--ice-policy"])
  func thePolicyOfTransportsIsThatOfW3C(option: String) throws {
    let serve = try read(
      RecordServe.self, "record", "serve", option, "relay", "--ice-server",
      "turn:a:b@192.0.2.1")
    #expect("\(serve.options.session.icePolicy)" == "relay")
  }

  @Test(arguments: ["--mdns-candidates", "--ice-names"])
  func hostCandidatesGetNames(option: String) throws {
    #expect(try read(RecordServe.self, "record", "serve", option).options.hidesAddresses)
  }

  @Test(arguments: ["minimise", "minimize"])
  func takesAreShortenedOnBothSidesOfTheOcean(verb: String) throws {
    #expect(try read(MinimiseCommand.self, verb, "a.take").options.take == "a.take")
  }
}
