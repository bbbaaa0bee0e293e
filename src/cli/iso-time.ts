/** Matches a day or a time of ISO 8601, with the day in group 1. `Date.parse` alone reads a year out of any text. */
const ISO_8601 = /^(\d{4}-\d{2}-\d{2})(?:T\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:\d{2})?)?$/;

/**
 * Parses a time in ISO 8601 to Unix ms; NaN for any other text, and for a day that its month does not have. A day
 * begins at midnight UTC; a time without a zone is local time.
 */
export function parseIsoTime(text: string): number {
  const day = ISO_8601.exec(text)?.[1];
  const start = Date.parse(`${day}T00:00:00Z`);
  const isInCalendar = !Number.isNaN(start) && new Date(start).toISOString().startsWith(`${day}T`);
  return isInCalendar ? Date.parse(text) : Number.NaN;
}
