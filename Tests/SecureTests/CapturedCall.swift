import Secure
import Testing

/// A real call's packet, with its content decrypted by an independent implementation.
struct CapturedPacket {
  let isRTCP: Bool
  let isFromClient: Bool
  let protected: [UInt8]
  let plain: [UInt8]
}

/// A real call's packets, with the keys from its key log.
struct CapturedCall: CustomTestStringConvertible {
  let testDescription: String
  let profile: SRTPProfile
  let clientKey: [UInt8]
  let serverKey: [UInt8]
  let packets: [CapturedPacket]
}

extension CapturedCall {
  /// Chromium 156 and aiortc over DTLS 1.2.
  static let chromium = CapturedCall(
    testDescription: "Chromium and aiortc",
    profile: .aes128CMSHA1_80,
    clientKey: hex("2255fdfecae4d7e24e4850f329894bcaf1c964af3d371e9b2456303387c6"),
    serverKey: hex("3dfef79547edcaf476abd68c02fe67c3d24d1a46e2026de0577ec0c85903"),
    packets: [
      CapturedPacket(
        isRTCP: false, isFromClient: false,
        protected: hex(
          """
          90ef6541a88987fbe4376e70bede0001403010ff7264601da5d2f9fce9cc139e9a33f326bcd130876225
          b72fb3bf50d81f49a362a408ef7aa4c4eedb3990
          """),
        plain: hex(
          """
          90ef6541a88987fbe4376e70bede0001403010ff780be4c136ecc58d8c49469904c5aaed92e7634a3a18
          98ee62cb60ff6c1b2900
          """)),
      CapturedPacket(
        isRTCP: false, isFromClient: false,
        protected: hex(
          """
          906f6542a8898bbbe4376e70bede0001403010ff2ce94cac0b1c97d364d4472322799524dfd9935d06f7
          9fd8c6711f08a275bbbf1cad841c85a63cf15f63a06a
          """),
        plain: hex(
          """
          906f6542a8898bbbe4376e70bede0001403010ff7807c97227e144ea55f1f0c0d5de1e6060fc2ce05049
          12f0b8b07e31f783cdcd8300
          """)),
      CapturedPacket(
        isRTCP: false, isFromClient: true,
        protected: hex(
          """
          90ef57589501969d927fd9c5bede00014030106ca178a3b741c7bdb9b4d4aec057468c335bf6a494963a
          2c84e6764aab24c07fe11beaa676b473e05b2a4edc28f4bad83c676c172fd387cc28e58eb64c68b668ba
          6c946ce0b2d15a1fd050a0caa1c99d92a8be7ee441b0b3d869812054465d0f2091bb72b5226d97062a27
          988cf7e55defc6c87228
          """),
        plain: hex(
          """
          90ef57589501969d927fd9c5bede00014030106cfc7df6435dc232d968a2585cec06bf943acc0e4b8e78
          de5823b82c7a893a33f3b309056ccec7289e206e657a4de09c8e639e8e691895f2d767611cfeb3818b8d
          12064ed09a10df2ac110238e3d724d7c39952d3e10a648f54b623c9048ee21ebb72176c905a5faff0ff3
          """)),
      CapturedPacket(
        isRTCP: true, isFromClient: true,
        protected: hex(
          """
          81c90007927fd9c54d0c44f71176b029d390a48cd1283c3484dad5e87303a9f180000001f0320dd3ffac
          5d35ad05
          """),
        plain: hex(
          """
          81c90007927fd9c5e4376e700000000000006565000000520000000000000000
          """)),
      CapturedPacket(
        isRTCP: true, isFromClient: true,
        protected: hex(
          """
          80c80006927fd9c59267c104244bb9e0b01df14e02677cf0d842708fa1185a1e8f7879df477acc65d4c3
          d0327a785896fa20820420d1e85663c51e3f7490ec6f05535ee48f72d241e276fa9f80000002f101f721
          67967f24b51a
          """),
        plain: hex(
          """
          80c80006927fd9c5eeabe0cc6fc2656a95021d9d00000026000015da81ca000b927fd9c5012462666233
          393164312d353534662d346139612d396362342d3965353739393737356663360000
          """)),
      CapturedPacket(
        isRTCP: true, isFromClient: false,
        protected: hex(
          """
          80c80006de8c4f8722853e123132832ad95b7057c145a63410643806ead21e33253d5230790eb41663b5
          20dc6586c0685b273d2076356c92800000013eb93d8f03f34a243e11
          """),
        plain: hex(
          """
          80c80006de8c4f87eeabe0cc188ffb8bdfe35e2b000000130000373a81ca0006de8c4f8701106935484c
          4e794237663838386f6935360000
          """)),
    ])

  /// Two Firefox 153 peers over DTLS 1.3.
  static let firefox = CapturedCall(
    testDescription: "Firefox and Firefox",
    profile: .aeadAES128GCM,
    clientKey: hex("dccc61933ad51485ebbfaa2ab077fbbf06aad482e08221b4d4e03243"),
    serverKey: hex("3f0abcb39a9096e54c5cf82b2ddb7fbf68f2cec9e68bc2e0e526550e"),
    packets: [
      CapturedPacket(
        isRTCP: false, isFromClient: false,
        protected: hex(
          """
          906d0887e630a954279345b7bede000271000f30301097004cc1d06d5bfd4d83fb330ee5a948ff491988
          e5fcbfd1c0654a67b214a22aed6078fc40426065d41651ba334d731935f0938a378d4e230626bfce7ab6
          0755c6e545c2fde97d4cc1ae48dcf5f886ba83328ca8e132006038121303afbd995696120668958641c2
          c47bd58ce213a27a356bdac8a111ddc8a1fc36cea1a034b9210e22e10855f8d8262fe6aad5519523c397
          19eba7903f89967f0fa90a2e8429a3063da60b3ec8fbd2743c798501f8de56dbc44d7f02de5759d7d866
          64f6
          """),
        plain: hex(
          """
          906d0887e630a954279345b7bede000271000f3030109700fc9e82ac106f2c59dd2e0d4aa52aac95078f
          1a21d4030d87fbfc37c37c37c383131adbbd5a6fe820ce3f0dfeab5786b65f7f45a3ae8d7726265b2c7d
          865ee2dc035cd5df3eb1a86e9dacf82c6c77020c76eb2d613551accd051157749eacdcdec0eee5bd7fd4
          ca58f9c2aa6f3edc51325f631d1424464c81fd1f514325c6060494eda81c7b65ccbb44f3dcf15db2d486
          5d3efb4dfd88009608302c021985f3fa0005f1200aadd33bbff555f1
          """)),
      CapturedPacket(
        isRTCP: false, isFromClient: false,
        protected: hex(
          """
          90fa507c4fe7b446f3d9a914bede000442a72d1e520000b471003130310000000742da712ba478c39be0
          68691a7de72591d4eb01616810c9e749a056ebe345670172507ce43dd6d17457aeb2576c4c8789331ff8
          ed60339953dff0c771cc081dc1cca33d25ac7af3c3da1bfc3f01387182ffbf138688a57cfd3154d736b3
          bb90d9e2638c7715c5306c7a715dfd474e11f092cd0e40daa5d40a6321ea91ef93d8c15069e06b1c45f1
          1fe4cf2b11989b39b4d61ceb6ee854f892b75b2b7e8c000b25a103b406bf81e117df1bc5d56add596e2e
          dc0a65a345f63709d8144af02f6e65302a1079aed74c407f3039718267c50b11a3e4db196af42aee4d
          """),
        plain: hex(
          """
          90fa507c4fe7b446f3d9a914bede000442a72d1e520000b471003130310000007890808152310c00e491
          4fd8e6ffa747a7d88517f1a2b038b9a359540fbff5bfdc5ffac07f7fb04d09e88002906401587a48a338
          abdb5aa1b194a9e0001b85de484d41c000000c4148290500218e7ecef0b885e6c3a9e85f3b7785c42f36
          1d4f42f9dbbc2e2179b0d89d04085177fb941b09fefffefa8ff0f1fe360affffc2adc310cd3ffc37310c
          bee6f44e83d1c0dd3819f2083e9ccf981cb4ebe06a325f10fac9d118c732cb4140ef2783b405d57b9fad
          0f8646899a6134cde9048085281fad12873d2d0ee901baa300
          """)),
      CapturedPacket(
        isRTCP: true, isFromClient: false,
        protected: hex(
          """
          80c80006f3d9a914252bfe816ecc37df72b7a12e34946d61ca5082463259e2bf540dd5a7c6fe9da5ee3b
          0ae9f86155fc67e71fc2048717aac50aff6faced4287817645389d1e23ae9bf5d740139859fa0f08511c
          d602dd0988ba1e883b058c0d80000001
          """),
        plain: hex(
          """
          80c80006f3d9a914eeabe2ea295af2944fe836000000003900001b6f81ca000cf3d9a91401267b396630
          31343931612d303832332d343930662d393130622d6632613633393238633064657d00000000
          """)),
      CapturedPacket(
        isRTCP: true, isFromClient: true,
        protected: hex(
          """
          81c900073217180220b00b20094c4fd4ad0236ba7550f7147afd5204cb42548aae5862f789c4428eb5eb
          0675d0ead1ed80000001
          """),
        plain: hex(
          """
          81c9000732171802cd269919000000000000621f000000000000000000000000
          """)),
      CapturedPacket(
        isRTCP: true, isFromClient: true,
        protected: hex(
          """
          afcd000a32171802acf7c9c8fbca0c85e295229b2c40a64462ecd3084f86494066a4599528a169e2976f
          8c3067c5caf26631319d9130db7294159afc80000002
          """),
        plain: hex(
          """
          afcd000a32171802cd269919000100140010630020148e07090d0b0b0900090008000c00090008001400
          0002
          """)),
    ])
}
