import ArgumentParser

/// Everything that makes a take.
struct Record: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Record a live session into a take.",
    discussion: """
      Examples:
        retake record demo --seconds 10
        retake record serve --listen 127.0.0.1:8080 --out calls/
        retake record call http://127.0.0.1:8081/offer --seconds 30
        retake record whip https://live.example/whip --token SECRET
        retake record whep https://live.example/whep --token SECRET
        retake record janus ws://127.0.0.1:8188 --room 1234 --publish pattern
        retake record sora wss://sora.example/signaling --channel test --publish pattern
        retake record room ws://127.0.0.1:8080/rooms --room talk --publish pattern
        retake record pcap -i any --keys keys.log --out call.take
      """,
    subcommands: [
      RecordDemo.self, RecordServe.self, RecordCall.self, RecordWHIP.self, RecordWHEP.self,
      RecordJanus.self, RecordSora.self, RecordRoom.self, RecordPcap.self,
    ])
}
