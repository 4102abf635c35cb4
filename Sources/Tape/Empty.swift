// The first file of Tape replaces this one.
