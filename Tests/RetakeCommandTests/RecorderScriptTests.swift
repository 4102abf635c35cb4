import PageRecording
import Testing

/// Tests the page-recording script, which is assembled from its modules.
struct RecorderScriptTests {
  @Test func theModulesCanBeJoined() {
    #expect(RecorderScript.problems == [])
  }

  @Test func nothingInTheConfigurationEndsAScript() {
    let configuration = RecorderScript.Configuration(
      address: "ws://127.0.0.1:1/socket?token=</script><!--\"\n")
    let text = RecorderScript.text(configuration)
    #expect(!text.contains("</script"))
    #expect(!text.contains("<!--"))
    #expect(text.contains(#"?token=\u003c/script>\u003c!--\"\n"#))
  }

  @Test func aModuleExportsTheRecorder() {
    let configuration = RecorderScript.Configuration(address: "ws://127.0.0.1:1/socket?token=t")
    #expect(!RecorderScript.text(configuration).contains("\nexport "))
    #expect(
      RecorderScript.text(configuration, isModule: true)
        .hasSuffix("export const recorder = globalThis.retakeRecorder;\n"))
  }
}
