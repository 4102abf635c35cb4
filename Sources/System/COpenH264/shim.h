#include <wels/codec_api.h>

// Makes the next picture a key frame in all layers. The function's C declaration lacks the layer
// index, which the C++ declaration has and the library reads.
static inline int copenh264_force_key(ISVCEncoder *encoder) {
  typedef int (*Call)(ISVCEncoder *, bool, int);
  return ((Call)(*encoder)->ForceIntraFrame)(encoder, true, -1);
}

// Returns a frame's layers, an array that Swift would import as a tuple of 128 elements.
static inline const SLayerBSInfo *copenh264_layers(const SFrameBSInfo *frame) {
  return frame->sLayerInfo;
}
