import CDTLS
import COpus
import CVPX
import Testing

struct CodecShimTests {
  @Test func opusSettingsAreSetReadAndReset() throws {
    let encoder = try #require(opus_encoder_create(48_000, 1, OPUS_APPLICATION_VOIP, nil))
    defer { opus_encoder_destroy(encoder) }
    #expect(copus_encoder_set(encoder, OPUS_SET_BITRATE_REQUEST, 24_000) == OPUS_OK)
    var bitrate: Int32 = 0
    #expect(copus_encoder_get(encoder, OPUS_GET_BITRATE_REQUEST, &bitrate) == OPUS_OK)
    #expect(bitrate == 24_000)
    #expect(copus_encoder_reset(encoder) == OPUS_OK)
    #expect(copus_encoder_set(encoder, -7, 1) == OPUS_UNIMPLEMENTED)

    let decoder = try #require(opus_decoder_create(48_000, 1, nil))
    defer { opus_decoder_destroy(decoder) }
    #expect(copus_decoder_set(decoder, OPUS_SET_GAIN_REQUEST, 256) == OPUS_OK)
    var gain: Int32 = 0
    #expect(copus_decoder_get(decoder, OPUS_GET_GAIN_REQUEST, &gain) == OPUS_OK)
    #expect(gain == 256)
    #expect(copus_decoder_reset(decoder) == OPUS_OK)
  }

  @Test func bothEndsOfAnOpusLinkHaveTheSameRange() throws {
    let encoder = try #require(opus_encoder_create(48_000, 1, OPUS_APPLICATION_VOIP, nil))
    let decoder = try #require(opus_decoder_create(48_000, 1, nil))
    defer {
      opus_encoder_destroy(encoder)
      opus_decoder_destroy(decoder)
    }
    let samples = (0..<960).map { Int16(truncatingIfNeeded: $0 * 37 % 4000) }
    var packet = [UInt8](repeating: 0, count: 1500)
    let length = opus_encode(encoder, samples, 960, &packet, 1500)
    try #require(length > 0)
    var decoded = [Int16](repeating: 0, count: 960)
    #expect(opus_decode(decoder, packet, length, &decoded, 960, 0) == 960)
    var sent: UInt32 = 0
    var received: UInt32 = 1
    #expect(copus_encoder_final_range(encoder, &sent) == OPUS_OK)
    #expect(copus_decoder_final_range(decoder, &received) == OPUS_OK)
    #expect(sent == received)
  }

  @Test func vp8CodecsAcceptTheABIVersion() {
    var configuration = vpx_codec_enc_cfg_t()
    #expect(vpx_codec_enc_config_default(vpx_codec_vp8_cx(), &configuration, 0) == VPX_CODEC_OK)
    var encoder = vpx_codec_ctx_t()
    #expect(
      cvpx_encoder_init(&encoder, vpx_codec_vp8_cx(), &configuration, 0) == VPX_CODEC_OK)
    #expect(vpx_codec_destroy(&encoder) == VPX_CODEC_OK)
    var decoder = vpx_codec_ctx_t()
    #expect(cvpx_decoder_init(&decoder, vpx_codec_vp8_dx(), nil, 0) == VPX_CODEC_OK)
    #expect(vpx_codec_destroy(&decoder) == VPX_CODEC_OK)
  }

  @Test func processorFeaturesAreReported() {
    let features = String(cString: cdtls_cpu_features()).split(separator: " ")
    #expect(features.count > 1)
    #expect(Set(features).count == features.count)
    #if arch(x86_64)
      #expect(features.prefix(2) == ["x86_64", "sse2"])
    #endif
  }
}
