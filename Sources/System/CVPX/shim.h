/// libvpx initialisation with the ABI version that this build was compiled against.
#ifndef CVPX_SHIM_H
#define CVPX_SHIM_H

#include <vpx/vp8cx.h>
#include <vpx/vp8dx.h>
#include <vpx/vpx_decoder.h>
#include <vpx/vpx_encoder.h>

/// `vpx_codec_enc_init`, which is a macro.
static inline vpx_codec_err_t cvpx_encoder_init(vpx_codec_ctx_t *context,
                                                        vpx_codec_iface_t *interface,
                                                        const vpx_codec_enc_cfg_t *configuration,
                                                        vpx_codec_flags_t flags) {
  return vpx_codec_enc_init_ver(context, interface, configuration, flags,
                                VPX_ENCODER_ABI_VERSION);
}

/// `vpx_codec_dec_init`, which is a macro.
static inline vpx_codec_err_t cvpx_decoder_init(vpx_codec_ctx_t *context,
                                                        vpx_codec_iface_t *interface,
                                                        const vpx_codec_dec_cfg_t *configuration,
                                                        vpx_codec_flags_t flags) {
  return vpx_codec_dec_init_ver(context, interface, configuration, flags,
                                VPX_DECODER_ABI_VERSION);
}

#endif
