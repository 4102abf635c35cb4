import Wire

/// A Binding message from a real session, unchanged, with the password from its description.
///
/// The sessions were throw-away calls over loopback between the stacks named in `stacks`.
struct RecordedMessage: Sendable, CustomStringConvertible {
  enum Expectation: Sendable {
    case request(username: String, priority: UInt32, nominates: Bool, isControlling: Bool)
    case response(mapped: String)
  }

  let stacks: String
  let password: String
  let expectation: Expectation
  let bytes: [UInt8]

  init(_ stacks: String, _ password: String, _ expectation: Expectation, _ hex: String) {
    self.stacks = stacks
    self.password = password
    self.expectation = expectation
    bytes = hexBytes(hex)
  }

  var description: String { "\(stacks), \(bytes.count) bytes" }

  static let all: [RecordedMessage] = [
    RecordedMessage(
      "chromium and aiortc", "PCupXEajzdevPm3LmuEcZw8J",
      .request(username: "LF2V:MrJz", priority: 1862270975, nominates: false, isControlling: false),
      """
      000100442112a44281a67d35745db402df40bd20000600094c4632563a4d724a7a000000002400046effffff
      802900082e1ac3e324e4a4be00080014825d2e8e89d09b30fb1bf9c0bd8e36280c9816cc8028000454194053
      """),
    RecordedMessage(
      "chromium and aiortc", "PCupXEajzdevPm3LmuEcZw8J",
      .response(mapped: "127.0.0.1:37584"),
      """
      0101002c2112a44281a67d35745db402df40bd20002000080001b3c25e12a44300080014b42b2eeb7b40ce73
      56a7bcee50b0d93c54ec07f980280004729f28be
      """),
    RecordedMessage(
      "chromium and aiortc", "TZxrLAxJZWiaLXv2QIHdZj",
      .request(username: "MrJz:LF2V", priority: 1853824767, nominates: true, isControlling: true),
      """
      000100502112a442585a535a4d647039756e7237000600094d724a7a3a4c463256000000c057000400010032
      802a000829e760dac2ff025200250000002400046e7f1eff0008001498e40d5d67c81cc8aa956923a4a519a9
      88dd2f9780280004171bd352
      """),
    RecordedMessage(
      "chromium and aiortc", "TZxrLAxJZWiaLXv2QIHdZj",
      .response(mapped: "127.0.0.1:44341"),
      """
      0101002c2112a442585a535a4d647039756e72370020000800018c275e12a44300080014b67dae80153b6c76
      27461a91bed8552202bd89ca8028000469d06dd5
      """),
    RecordedMessage(
      "chromium and aiortc", "TZxrLAxJZWiaLXv2QIHdZj",
      .request(username: "MrJz:LF2V", priority: 1853824767, nominates: true, isControlling: true),
      """
      000100502112a4426938484c506c77575a504535000600094d724a7a3a4c463256000000c057000400010032
      802a000829e760dac2ff025200250000002400046e7f1eff00080014e6d83c48d9aa213e730e69bb59574e77
      19bcfc0680280004bd43d5d1
      """),
    RecordedMessage(
      "chromium and aiortc", "TZxrLAxJZWiaLXv2QIHdZj",
      .response(mapped: "127.0.0.1:44341"),
      """
      0101002c2112a4426938484c506c77575a5045350020000800018c275e12a4430008001427453680b1da5cfc
      66fe815e196f6fee292fb98e80280004700ce5b4
      """),
    RecordedMessage(
      "chromium and aiortc", "TZxrLAxJZWiaLXv2QIHdZj",
      .request(username: "MrJz:LF2V", priority: 1853824767, nominates: true, isControlling: true),
      """
      000100502112a4426f744874744e615149324f42000600094d724a7a3a4c463256000000c057000400010032
      802a000829e760dac2ff025200250000002400046e7f1eff00080014fcc783a052587fb5c47a90bc8ba88238
      810aeb0b802800046bda1fc5
      """),
    RecordedMessage(
      "chromium and aiortc", "TZxrLAxJZWiaLXv2QIHdZj",
      .response(mapped: "127.0.0.1:44341"),
      """
      0101002c2112a4426f744874744e615149324f420020000800018c275e12a443000800146d4f718317dc34c7
      405d7af24ba072054db08a4f80280004f2e62f5f
      """),
    RecordedMessage(
      "chromium and aiortc", "TZxrLAxJZWiaLXv2QIHdZj",
      .request(username: "MrJz:LF2V", priority: 1853824767, nominates: true, isControlling: true),
      """
      000100502112a4424f726751624e6b3147646d31000600094d724a7a3a4c463256000000c057000400010032
      802a000829e760dac2ff025200250000002400046e7f1eff00080014c9ab9d998d07d810202179b5e9d5742c
      52119b468028000402df43ee
      """),
    RecordedMessage(
      "chromium and aiortc", "TZxrLAxJZWiaLXv2QIHdZj",
      .response(mapped: "127.0.0.1:44341"),
      """
      0101002c2112a4424f726751624e6b3147646d310020000800018c275e12a443000800147a4de60cd85192df
      662d2fcf16100f2868bb410180280004c1e1145d
      """),
    RecordedMessage(
      "aiortc and chromium", "l36t9o3iqAqCdfpBJdjRz0",
      .request(username: "6XTO:12XI", priority: 1853824767, nominates: false, isControlling: false),
      """
      0001004c2112a4422b5a594b577654476a376274000600093658544f3a31325849000000c057000400010032
      80290008ca7aa0c46c074119002400046e7f1eff00080014c33f8bde18c9028dbc6b4149b751cf4fec93a8a1
      80280004430c44f2
      """),
    RecordedMessage(
      "aiortc and chromium", "l36t9o3iqAqCdfpBJdjRz0",
      .response(mapped: "127.0.0.1:33659"),
      """
      0101002c2112a4422b5a594b577654476a376274002000080001a2695e12a4430008001477fe1f7b97539317
      13d6e44a61c31c90fed8314880280004d4b014a2
      """),
    RecordedMessage(
      "aiortc and chromium", "ffy0ZXWQIBEwRAwNwIDfnd87",
      .request(username: "12XI:6XTO", priority: 1862270975, nominates: true, isControlling: true),
      """
      000100482112a44242700186fdea6f622af21c9c00060009313258493a3658544f000000002400046effffff
      802a0008b970a84cd06e3fda0025000000080014063321b6efc23acfeab87fdb18584fa707fc6de180280004
      1d5d4266
      """),
    RecordedMessage(
      "aiortc and chromium", "ffy0ZXWQIBEwRAwNwIDfnd87",
      .response(mapped: "127.0.0.1:41496"),
      """
      0101002c2112a44242700186fdea6f622af21c9c002000080001830a5e12a44300080014a3bf56af8c346ba6
      5158b3e2b07b9fd7db792b0e80280004146655d3
      """),
    RecordedMessage(
      "aiortc and chromium", "l36t9o3iqAqCdfpBJdjRz0",
      .request(username: "6XTO:12XI", priority: 1853824767, nominates: false, isControlling: false),
      """
      0001004c2112a44267426f4c694a306a6958736c000600093658544f3a31325849000000c057000400010032
      80290008ca7aa0c46c074119002400046e7f1eff00080014bf56ab616af326fc3804fb2b208e83adc279e88d
      802800043ddaaf97
      """),
    RecordedMessage(
      "aiortc and chromium", "l36t9o3iqAqCdfpBJdjRz0",
      .response(mapped: "127.0.0.1:33659"),
      """
      0101002c2112a44267426f4c694a306a6958736c002000080001a2695e12a443000800147f662f47641fb57a
      a97a51701530a7dda9df5d728028000497bfda27
      """),
    RecordedMessage(
      "aiortc and chromium", "l36t9o3iqAqCdfpBJdjRz0",
      .request(username: "6XTO:12XI", priority: 1853824767, nominates: false, isControlling: false),
      """
      0001004c2112a44278627451396961546b754a33000600093658544f3a31325849000000c057000400010032
      80290008ca7aa0c46c074119002400046e7f1eff00080014c26d8ec68d43b14131d97ba8218594264ed2a98f
      80280004dd93fc75
      """),
    RecordedMessage(
      "aiortc and chromium", "l36t9o3iqAqCdfpBJdjRz0",
      .response(mapped: "127.0.0.1:33659"),
      """
      0101002c2112a44278627451396961546b754a33002000080001a2695e12a44300080014e0831e80ae33652e
      22b4a4d8604bad9f83e071bf8028000429f366c3
      """),
    RecordedMessage(
      "chromium and firefox", "e6bd508c13136c51410dff7c08bb7ae0",
      .request(
        username: "8132b894:Tk5c", priority: 1853824767, nominates: true, isControlling: true),
      """
      000100542112a4424c6d31706756497571492b590006000d38313332623839343a546b3563000000c0570004
      00010032802a00087b1f94deb945ff4c00250000002400046e7f1eff00080014f1fbcb3f18e803429d9b109b
      f111b86e2bf1d77980280004311a73e3
      """),
    RecordedMessage(
      "chromium and firefox", "aaakKWzQrJUfUhfeNmEtT5W8",
      .request(
        username: "Tk5c:8132b894", priority: 1853751551, nominates: false, isControlling: false),
      """
      000100482112a44285f9471064bdda5df4a079270006000d546b35633a383133326238393400000000240004
      6e7e00ff802900082fd0f836e9d9f1ea000800149cfe0d97ad54f2ca6cc3fd2d8ac734428c3e339a80280004
      ad81171f
      """),
    RecordedMessage(
      "chromium and firefox", "e6bd508c13136c51410dff7c08bb7ae0",
      .response(mapped: "127.0.0.1:44454"),
      """
      0101002c2112a4424c6d31706756497571492b590020000800018cb45e12a44300080014c1dbb552cff1084b
      a192561bc1010d366e12d1588028000437220613
      """),
    RecordedMessage(
      "chromium and firefox", "aaakKWzQrJUfUhfeNmEtT5W8",
      .response(mapped: "10.99.0.1:50558"),
      """
      0101002c2112a44285f9471064bdda5df4a07927002000080001e46c2b71a44300080014b5526967f2614146
      662aed6193be0dd2e1970b3580280004bf925a40
      """),
    RecordedMessage(
      "chromium and firefox", "e6bd508c13136c51410dff7c08bb7ae0",
      .request(
        username: "8132b894:Tk5c", priority: 1853824767, nominates: true, isControlling: true),
      """
      000100542112a4425431526b4832306d77384b7a0006000d38313332623839343a546b3563000000c0570004
      00010032802a00087b1f94deb945ff4c00250000002400046e7f1eff00080014f17b516b0ad044056ee11f28
      bde8e91d4bb66189802800049a6df2bb
      """),
    RecordedMessage(
      "chromium and firefox", "e6bd508c13136c51410dff7c08bb7ae0",
      .response(mapped: "127.0.0.1:44454"),
      """
      0101002c2112a4425431526b4832306d77384b7a0020000800018cb45e12a44300080014eac11505d7152f79
      88b5afa6e2fb79f26ff3081680280004b115f3a5
      """),
    RecordedMessage(
      "chromium and firefox", "e6bd508c13136c51410dff7c08bb7ae0",
      .request(
        username: "8132b894:Tk5c", priority: 1853824767, nominates: true, isControlling: true),
      """
      000100542112a4426970464b70726c38557953760006000d38313332623839343a546b3563000000c0570004
      00010032802a00087b1f94deb945ff4c00250000002400046e7f1eff000800140b556672728dfbfdd0050065
      454f46f2e63a4adf802800047c2d2041
      """),
    RecordedMessage(
      "chromium and firefox", "e6bd508c13136c51410dff7c08bb7ae0",
      .response(mapped: "127.0.0.1:44454"),
      """
      0101002c2112a4426970464b70726c38557953760020000800018cb45e12a4430008001492f3ce8ebae26408
      aa5806cd1e5f9e258d2bf320802800041609155d
      """),
    RecordedMessage(
      "chromium and firefox", "e6bd508c13136c51410dff7c08bb7ae0",
      .request(
        username: "8132b894:Tk5c", priority: 1853824767, nominates: true, isControlling: true),
      """
      000100542112a442305a6c7134716565566e6d480006000d38313332623839343a546b3563000000c0570004
      00010032802a00087b1f94deb945ff4c00250000002400046e7f1eff0008001484be13a0cc47cdc924077065
      ed49212e3fa530d580280004c73ed570
      """),
    RecordedMessage(
      "chromium and firefox", "e6bd508c13136c51410dff7c08bb7ae0",
      .response(mapped: "127.0.0.1:44454"),
      """
      0101002c2112a442305a6c7134716565566e6d480020000800018cb45e12a4430008001430dbfc699982e53c
      b76ddb75ee32ad347cd54e1380280004da9f7627
      """),
    RecordedMessage(
      "firefox and firefox", "ed6f4232c0e36e0aa1ce65d19f9015ac",
      .request(
        username: "13f0e9eb:da4a5636", priority: 1853817087, nominates: false,
        isControlling: false),
      """
      0001004c2112a442b0e5fa1d24d3608ea9d5c5b50006001131336630653965623a6461346135363336000000
      002400046e7f00ff80290008386230a89418e35200080014c38973e28090a1e7256d732f43d606817a5eda13
      80280004816c082b
      """),
    RecordedMessage(
      "firefox and firefox", "1c319137c15758e257eddaed08b14cfc",
      .request(
        username: "da4a5636:13f0e9eb", priority: 1853817087, nominates: true, isControlling: true),
      """
      000100502112a4422d5cf7756cdaacc09529bee20006001164613461353633363a3133663065396562000000
      00250000002400046e7f00ff802a0008fcb2aea80c521df500080014ca129b6eabfa1020bfa6e6e0663b3f14
      1ae5867480280004c5a5fa64
      """),
    RecordedMessage(
      "firefox and firefox", "ed6f4232c0e36e0aa1ce65d19f9015ac",
      .response(mapped: "[::1]:36153"),
      """
      010100382112a442b0e5fa1d24d3608ea9d5c5b5002000140002ac2b2112a442b0e5fa1d24d3608ea9d5c5b4
      000800142f6142721dcfe61661e5b542052a83f760551698802800041a93bc3b
      """),
    RecordedMessage(
      "firefox and firefox", "1c319137c15758e257eddaed08b14cfc",
      .response(mapped: "[::1]:58915"),
      """
      010100382112a4422d5cf7756cdaacc09529bee2002000140002c7312112a4422d5cf7756cdaacc09529bee3
      00080014cffd82b6f05fe687afbf3bcb6eed03e82a626dd28028000479642dc5
      """),
    RecordedMessage(
      "chromium and chromium", "O1i1G+O0mJnwPVqmT4nnnsl0",
      .request(username: "owpf:T1pi", priority: 1853824767, nominates: false, isControlling: false),
      """
      0001004c2112a442482f5a6558524c33322f4875000600096f7770663a54317069000000c057000400010032
      80290008564e5c312eaf0086002400046e7f1eff0008001415f636cf32708e0a34233f54ce01d01ca46c981e
      8028000428f13e44
      """),
    RecordedMessage(
      "chromium and chromium", "O1i1G+O0mJnwPVqmT4nnnsl0",
      .response(mapped: "127.0.0.1:34080"),
      """
      0101002c2112a442482f5a6558524c33322f4875002000080001a4325e12a443000800142756cf89dbe82e70
      6713d154609c2cc34ed30f8c802800042c72f605
      """),
    RecordedMessage(
      "chromium and chromium", "uur8zDYEJVZGHtT/4DSoyrpf",
      .request(username: "T1pi:owpf", priority: 1853824767, nominates: true, isControlling: true),
      """
      000100502112a4424f775a6b76635731786e5a6800060009543170693a6f777066000000c057000400010032
      802a00086521823bb066a28800250000002400046e7f1eff000800144498a8bcd51bbf5c0755372bb67abdd8
      4bd929a380280004504cf1c9
      """),
    RecordedMessage(
      "chromium and chromium", "uur8zDYEJVZGHtT/4DSoyrpf",
      .response(mapped: "127.0.0.1:53488"),
      """
      0101002c2112a4424f775a6b76635731786e5a68002000080001f1e25e12a443000800149c703d76087ff974
      25ef3cc623f5f6969b7a34ae80280004ba6ae5b8
      """),
    RecordedMessage(
      "chromium and chromium", "O1i1G+O0mJnwPVqmT4nnnsl0",
      .request(username: "owpf:T1pi", priority: 1853824767, nominates: false, isControlling: false),
      """
      0001004c2112a4422f572b694a62724c6d46632b000600096f7770663a54317069000000c057000400010032
      80290008564e5c312eaf0086002400046e7f1eff000800145aa17e0854879cb9d170fcb1666f75a6ca1a55b5
      8028000439603117
      """),
    RecordedMessage(
      "chromium and chromium", "O1i1G+O0mJnwPVqmT4nnnsl0",
      .response(mapped: "127.0.0.1:34080"),
      """
      0101002c2112a4422f572b694a62724c6d46632b002000080001a4325e12a443000800145632d2a0f6b47d02
      06161feef763afb6fc3e7bf18028000482700cb7
      """),
  ]
}

/// Parses bytes from hexadecimal digits with blanks between them.
func hexBytes(_ text: String) -> [UInt8] {
  [UInt8](hexadecimal: text.filter { !$0.isWhitespace }) ?? []
}
