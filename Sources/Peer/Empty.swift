// The first file of Peer replaces this one.
