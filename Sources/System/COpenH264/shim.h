#include <wels/codec_api.h>

// Makes the next picture a key frame in all layers. The function's C declaration lacks the layer
// index, which the C++ declaration has and the library reads.
static inline int copenh264_force_key(ISVCEncoder *encoder) {
  typedef int (*Call)(ISVCEncoder *, bool, int);
  return ((Call)(*encoder)->ForceIntraFrame)(encoder, true, -1);
}

// Encodes a picture of I420 samples in one array, which the library only reads. An odd last column
// or row is cut off, because H.264 needs complete chroma samples.
static inline int copenh264_encode(ISVCEncoder *encoder, const unsigned char *samples, int width,
                                   int height, long long milliseconds, SFrameBSInfo *frame) {
  int chromaWidth = (width + 1) / 2;
  int chromaHeight = (height + 1) / 2;
  unsigned char *luma = (unsigned char *)samples;
  unsigned char *blue = luma + width * height;
  SSourcePicture picture = {
      .iColorFormat = videoFormatI420,
      .iStride = {width, chromaWidth, chromaWidth},
      .pData = {luma, blue, blue + chromaWidth * chromaHeight},
      .iPicWidth = width & ~1,
      .iPicHeight = height & ~1,
      .uiTimeStamp = milliseconds,
  };
  return (*encoder)->EncodeFrame(encoder, &picture, frame);
}

// Returns a frame's layers, an array that Swift would import as a tuple of 128 elements.
static inline const SLayerBSInfo *copenh264_layers(const SFrameBSInfo *frame) {
  return frame->sLayerInfo;
}
