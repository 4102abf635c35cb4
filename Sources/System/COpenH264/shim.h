#include <wels/codec_api.h>

// Makes the next picture a key frame of all layers. The function's C declaration lacks the number
// of the layer, which the C++ one has and the library reads.
static inline int copenh264_force_key(ISVCEncoder *encoder) {
  typedef int (*Call)(ISVCEncoder *, bool, int);
  return ((Call)(*encoder)->ForceIntraFrame)(encoder, true, -1);
}

// The layers of a frame, which Swift would see as a tuple of 128.
static inline const SLayerBSInfo *copenh264_layers(const SFrameBSInfo *frame) {
  return frame->sLayerInfo;
}
