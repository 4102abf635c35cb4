-- Format 5: video frames of cameras and screens. They come with a time of their own, and their
-- samples are stored smaller without a loss.

-- When the video frame was taken, by the clock of its source: nanoseconds. NULL: when it was handed
-- in.
ALTER TABLE capture ADD COLUMN timestamp_ns INTEGER;

-- How `bytes` are stored; `digest` is always that of the samples themselves. NULL: as they are.
-- 'jpeg-ls': four numbers of 32 bits, high byte first (width, height, and the lengths of what
-- follows), then two images of ISO/IEC 14495-1: the Y plane, and the U plane above the V plane.
ALTER TABLE content ADD COLUMN coding TEXT;
