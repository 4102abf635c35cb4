// The first file of SDP replaces this one.
