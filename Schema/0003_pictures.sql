-- Format 5: captured video frames have times of their own, and their samples are compressed
-- losslessly.

-- The capture time in nanoseconds on the clock of the source. NULL: at_ns.
ALTER TABLE capture ADD COLUMN timestamp_ns INTEGER;

-- The encoding of `bytes`; `digest` is always that of the samples. NULL: not compressed. 'jpeg-ls':
-- four 32-bit big-endian numbers (width, height, and the lengths of the two images), then two
-- images of ISO/IEC 14495-1: the Y plane, and the U plane stacked on the V plane.
ALTER TABLE content ADD COLUMN coding TEXT;
