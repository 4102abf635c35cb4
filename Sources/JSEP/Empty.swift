// The first file of JSEP replaces this one.
