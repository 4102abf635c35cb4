import Foundation
import Testing

extension LiveMediaTests {
  /// Calls with a microphone, a camera and a loudspeaker, which are simulated by replacing the
  /// system's audio and video programs in PATH.
  struct DeviceRecordingTests {
    /// A machine whose microphone delivers a 500 Hz tone, whose camera shows grey, and whose
    /// loudspeaker writes its input to a file.
    private struct Machine {
      let folder: Folder
      var environment: [String: String]

      init() throws {
        folder = try Folder()
        let programs = folder.file("programs")
        try FileManager.default.createDirectory(
          atPath: programs, withIntermediateDirectories: true)
        // 20 ms of a 500 Hz square wave at 48 kHz, repeated in real time.
        let wave = (0..<960).flatMap { $0 / 48 % 2 == 0 ? [0, 16] : [0, 240] as [UInt8] }
        try Data(wave).write(to: folder.url("wave"))
        try Data(repeating: 90, count: 320 * 240 * 3 / 2).write(to: folder.url("frame"))
        try Data().write(to: folder.url("video"))
        let scripts = [
          "parec": "while cat '\(folder.file("wave"))'; do sleep 0.019; done",
          "pacat": "cat > '\(folder.file("played"))'",
          "ffmpeg": """
          echo "$@" > '\(folder.file("asked"))'
          while cat '\(folder.file("frame"))'; do sleep 0.06; done
          """,
        ]
        for (name, script) in scripts {
          let path = "\(programs)/\(name)"
          try "#!/bin/sh\n\(script)\n".write(toFile: path, atomically: true, encoding: .utf8)
          try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: path)
        }
        environment = ["PATH": "\(programs):/usr/bin:/bin", "PULSE_SERVER": "here"]
      }
    }

    @Test func aCallWithDevicesIsRecordedPlayedAndReplayed() async throws {
      let machine = try Machine()
      let (answered, called) = (
        machine.folder.file("serve.take"), machine.folder.file("call.take")
      )
      let server = try await LiveTests.serve(
        "--once", "--send", "pattern", "--out", answered, at: "/offer")
      let call = try await Tool.run(
        [
          "record", "call", server.url, "--send", "microphone,camera", "--play", "--camera",
          machine.folder.file("video"), "--camera-size", "320x240", "--seconds", "5", "--bind",
          "127.0.0.1", "--out", called,
        ], environment: machine.environment)
      #expect(call.status == 0, "\(call.errors)")
      #expect(call.errors.contains("wear headphones"), "\(call.errors)")
      _ = try await server.run.outcome()
      // The remote peer received the microphone's tone and the camera's frames.
      let heard = "SELECT count(*) FROM audio_level WHERE dbov > -40"
      #expect(try Takes.number(answered, heard) > 20)
      let seen = """
        SELECT count(*) FROM frame WHERE kind = 'video' AND direction = 'in'
          AND outcome = 'decoded' AND width = 320
        """
      #expect(try Takes.number(answered, seen) > 10)
      let asked = try String(contentsOf: machine.folder.url("asked"), encoding: .utf8)
      #expect(asked.contains("-f v4l2") && asked.contains(machine.folder.file("video")))
      // The remote peer's tone was played: the loudspeaker's input is more than silence.
      let played = try Data(contentsOf: machine.folder.url("played"))
      #expect(played.count { $0 != 0 } > 20_000, "\(played.count)")
      // The devices are in the take, and the take replays completely.
      let routes = "SELECT count(*) FROM state WHERE machine = 'audio-route'"
      #expect(try Takes.number(called, routes) > 0)
      for path in [answered, called] { try await Takes.expectIdentical(path) }
    }

    /// Microphone and camera work in a room too, and the terminal shows the voice level.
    @Test func aParticipantsDevicesAreReceivedInARoom() async throws {
      let machine = try Machine()
      let (spoken, heard) = (machine.folder.file("a.take"), machine.folder.file("b.take"))
      let server = try await LiveTests.serve("--rooms", "--out", machine.folder.file("s.take"))
      let address = "ws" + server.url.dropFirst(4) + "/rooms"
      let visit = [
        "record", "room", address, "--room", "talk", "--bind", "127.0.0.1",
      ]
      let person = try TerminalRun(
        visit + [
          "--send", "microphone,camera", "--camera", machine.folder.file("video"),
          "--camera-size", "320x240", "--out", spoken,
        ], columns: 160, environment: machine.environment)
      // Wait until the person has started. While other tests run, this may take longer than the
      // listener stays in the room.
      try await person.wait(for: "microphone [#")
      let listener = try await Tool.run(visit + ["--seconds", "5", "--out", heard])
      person.send(SIGINT)
      #expect(try await person.end() == 0, "\(person.screen)")
      #expect(listener.status == 0, "\(listener.errors)")
      #expect(person.screen.contains("microphone [#"), "\(person.screen)")
      server.run.send(SIGINT)
      _ = try await server.run.outcome()
      let voice = "SELECT count(*) FROM audio_level WHERE dbov > -40"
      #expect(try Takes.number(heard, voice) > 10)
      let seen = "SELECT count(*) FROM frame WHERE direction = 'in' AND width = 320"
      #expect(try Takes.number(heard, seen) > 5)
      for path in [spoken, heard] { try await Takes.expectIdentical(path) }
    }

    @Test func devicesThatAreNotThereAreReportedBeforeAnythingIsRecorded() async throws {
      let machine = try Machine()
      for (send, words) in [
        ("microphone", "PulseAudio"), ("camera", "/dev/video"), ("screen", "DISPLAY"),
        ("microphone,talk.wav", "both carry audio"),
      ] {
        let path = machine.folder.file("none.take")
        let outcome = try await Tool.run(
          ["record", "call", "http://127.0.0.1:9/offer", "--send", send, "--out", path],
          environment: [
            "PATH": machine.environment["PATH"] ?? "", "PULSE_SERVER": "", "DISPLAY": "",
            "XDG_RUNTIME_DIR": machine.folder.path, "PULSE_RUNTIME_PATH": "",
          ])
        #expect(outcome.status != 0 && outcome.errorLines.count == 1, "\(outcome.errors)")
        #expect(outcome.errors.contains(words), "\(outcome.errors)")
        #expect(!FileManager.default.fileExists(atPath: path))
      }
    }
  }
}
