// The first file of RTP replaces this one.
