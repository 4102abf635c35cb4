#include <libyuv/compare.h>
#include <libyuv/convert.h>
#include <libyuv/convert_argb.h>
#include <libyuv/cpu_id.h>
#include <libyuv/rotate.h>
