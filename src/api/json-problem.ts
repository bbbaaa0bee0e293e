import type { Json } from '../engine/index.ts';

/** End of the message about a string that is not well-formed Unicode: it follows the name of the field. */
export const LONE_SURROGATE = 'holds a surrogate without its pair, which is not well-formed Unicode';

/**
 * Says what is wrong with a JSON value; undefined if nothing is. It walks level by level without recursion: the text of
 * a body can nest deeper than the call stack allows, and `JSON.stringify` is safe only once the depth is known.
 * @param limits the most that is allowed: `depth` counts the outermost object or list as 1; `bytes` is the length in
 *   UTF-8 of the shortest JSON text
 */
export function jsonProblem(
  value: Json,
  limits: { readonly depth: number; readonly bytes: number },
): string | undefined {
  let level: Json[] = [value];
  for (let depth = 1; level.length > 0; depth++) {
    const next: Json[] = [];
    for (const node of level) {
      if (typeof node === 'string') {
        if (!node.isWellFormed()) return LONE_SURROGATE;
      } else if (typeof node === 'object' && node !== null) {
        if (depth > limits.depth) return `nested over ${limits.depth} deep`;
        if (Array.isArray(node)) for (const entry of node as Json[]) next.push(entry);
        else {
          for (const [key, entry] of Object.entries(node)) {
            if (!key.isWellFormed()) return `a key ${LONE_SURROGATE}`;
            next.push(entry);
          }
        }
      }
    }
    level = next;
  }
  const bytes = Buffer.byteLength(JSON.stringify(value));
  return bytes > limits.bytes ? `${bytes} bytes of JSON, at most ${limits.bytes}` : undefined;
}
