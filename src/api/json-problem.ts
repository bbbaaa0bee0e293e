import type { Json } from '../engine/index.ts';

/**
 * What is wrong with a piece of JSON, undefined if nothing. Walks with a stack of its own: the text of a body can nest
 * deeper than calls can, and `JSON.stringify` is safe only once the depth is known.
 * @param limits `depth` counts the outermost object as 1; `bytes` is the UTF-8 of its shortest text
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
        if (!node.isWellFormed()) return 'holds a surrogate without its pair, which is not well-formed Unicode';
      } else if (typeof node === 'object' && node !== null) {
        if (depth > limits.depth) return `nested over ${limits.depth} deep`;
        if (Array.isArray(node)) for (const entry of node as Json[]) next.push(entry);
        else {
          for (const [key, entry] of Object.entries(node)) {
            if (!key.isWellFormed())
              return 'a key holds a surrogate without its pair, which is not well-formed Unicode';
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
