/** The JSON of a language model's answer; null for anything else. Many models put it into a fenced block, however they are asked. */
export function parseReply(reply: string): unknown {
  try {
    return JSON.parse(reply.trim().replace(/^```(?:json)?\s*|\s*```$/g, ''));
  } catch {
    return null;
  }
}
