// The first file of Replay replaces this one.
