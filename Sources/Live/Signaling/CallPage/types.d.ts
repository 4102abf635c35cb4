/** The interface by which scripts drive the page. */
interface Window { retake: Record<string, any> }
