/**
 * Parses a language model's answer as JSON, with or without a Markdown code fence around it, which many models add even
 * if told not to. The value's shape is not checked.
 * @returns null for anything but JSON, even for JSON with a sentence around it
 */
export function parseReply(reply: string): unknown {
  try {
    return JSON.parse(reply.trim().replace(/^```(?:json)?\s*|\s*```$/g, ''));
  } catch {
    return null;
  }
}
