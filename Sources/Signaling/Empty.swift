// The first file of Signaling replaces this one.
