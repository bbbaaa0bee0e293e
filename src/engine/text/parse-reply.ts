/**
 * Parses the JSON of a language model's answer, with or without a fenced block around it, which many models add even if
 * told not to. The value is not checked.
 * @returns null for anything but JSON, even for JSON with a sentence around it
 */
export function parseReply(reply: string): unknown {
  try {
    return JSON.parse(reply.trim().replace(/^```(?:json)?\s*|\s*```$/g, ''));
  } catch {
    return null;
  }
}
