// The first file of Media replaces this one.
