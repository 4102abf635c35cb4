/** What scripts drive the page by. */
interface Window { retake: Record<string, any> }
