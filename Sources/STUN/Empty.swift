// The first file of STUN replaces this one.
