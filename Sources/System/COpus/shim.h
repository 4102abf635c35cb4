/// Fixed-arity forms of the variadic Opus controls.
#ifndef COPUS_SHIM_H
#define COPUS_SHIM_H

#include <opus.h>

/// Sets an integer setting such as OPUS_SET_BITRATE_REQUEST; returns OPUS_OK or an error code.
static inline int copus_encoder_set(OpusEncoder *encoder, int request, opus_int32 value) {
  return opus_encoder_ctl(encoder, request, value);
}

/// Reads an integer setting such as OPUS_GET_LOOKAHEAD_REQUEST; returns OPUS_OK or an error code.
static inline int copus_encoder_get(OpusEncoder *encoder, int request, opus_int32 *value) {
  return opus_encoder_ctl(encoder, request, value);
}

/// Resets the encoder to its initial state; keeps its settings.
static inline int copus_encoder_reset(OpusEncoder *encoder) {
  return opus_encoder_ctl(encoder, OPUS_RESET_STATE);
}

/// Reads the state of the encoder's range coder after the last packet; a decoder that received the
/// packet intact has the same state.
static inline int copus_encoder_final_range(OpusEncoder *encoder, opus_uint32 *range) {
  return opus_encoder_ctl(encoder, OPUS_GET_FINAL_RANGE(range));
}

/// Sets an integer setting such as OPUS_SET_GAIN_REQUEST; returns OPUS_OK or an error code.
static inline int copus_decoder_set(OpusDecoder *decoder, int request, opus_int32 value) {
  return opus_decoder_ctl(decoder, request, value);
}

/// Reads an integer setting such as OPUS_GET_LAST_PACKET_DURATION_REQUEST.
static inline int copus_decoder_get(OpusDecoder *decoder, int request, opus_int32 *value) {
  return opus_decoder_ctl(decoder, request, value);
}

/// Resets the decoder to its initial state; keeps its settings.
static inline int copus_decoder_reset(OpusDecoder *decoder) {
  return opus_decoder_ctl(decoder, OPUS_RESET_STATE);
}

/// Reads the state of the decoder's range coder after the last packet.
static inline int copus_decoder_final_range(OpusDecoder *decoder, opus_uint32 *range) {
  return opus_decoder_ctl(decoder, OPUS_GET_FINAL_RANGE(range));
}

#endif
