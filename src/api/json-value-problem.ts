import type { Json } from '../engine/index.ts';

/** End of the error message about a string that is not well-formed Unicode; it follows the name of the field. */
export const LONE_SURROGATE = 'holds a surrogate without its pair, which is not well-formed Unicode';

/**
 * Returns what is wrong with a JSON value: text that is not well-formed Unicode, too deep nesting, or too many bytes;
 * undefined if nothing is. The result is the end of a sentence that begins with the name of the value's field. It walks
 * level by level without recursion, since a body can nest deeper than the call stack allows, and `JSON.stringify` is
 * safe only once the depth is known.
 * @param limits greatest `depth`, where the outermost object or list counts as 1; greatest `bytes` in UTF-8 of the
 *   shortest JSON text
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
