/**
 * Parses a language model's answer as JSON, with or without a Markdown code fence around it, which many models add even
 * if told not to. The value's shape is not checked. The time is linear in the length of the reply, even if a text has
 * made the model write blanks without end: a regular expression for the closing fence would take quadratic time over
 * blanks.
 * @returns null for anything but JSON, even for JSON with a sentence around it
 */
export function parseReply(reply: string): unknown {
  const opened = reply.trim().replace(/^```(?:json)?/, '');
  try {
    return JSON.parse(opened.endsWith('```') ? opened.slice(0, -3) : opened);
  } catch {
    return null;
  }
}
