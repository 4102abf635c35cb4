// The first file of Digests replaces this one.
