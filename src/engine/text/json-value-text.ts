import type { Json } from '../types.ts';

/**
 * Converts a JSON value to a searchable text: a line for each text, number or boolean, with its key before it; the
 * plain entries of a list are put on one line. Null, an empty text, and a list or an object without entries give
 * nothing. The text is never longer than the value's JSON.
 */
export function textOfValue(value: Json): string {
  const lines: string[] = [];
  const say = (key: string, text: string) => {
    if (text !== '') lines.push(key === '' ? text : `${key}: ${text}`);
  };
  const walk = (key: string, node: Json) => {
    if (node === null) return;
    if (typeof node !== 'object') return say(key, String(node));
    if (!Array.isArray(node)) {
      for (const [name, entry] of Object.entries(node)) walk(name, entry);
      return;
    }
    const entries = node as readonly Json[];
    const plain = entries.filter((entry) => entry !== null && typeof entry !== 'object');
    say(key, plain.join(', '));
    for (const entry of entries) if (typeof entry === 'object') walk('', entry);
  };
  walk('', value);
  return lines.join('\n');
}

/** Replaces each string of a JSON value that equals `old` with `by`. Returns undefined if no string equals `old`. */
export function replaceText(value: Json, { old, by }: { readonly old: string; readonly by: string }): Json | undefined {
  let isFound = false;
  const walk = (node: Json): Json => {
    if (node === old) {
      isFound = true;
      return by;
    }
    if (node === null || typeof node !== 'object') return node;
    if (Array.isArray(node)) return (node as readonly Json[]).map(walk);
    return Object.fromEntries(Object.entries(node).map(([key, entry]) => [key, walk(entry)]));
  };
  const replaced = walk(value);
  return isFound ? replaced : undefined;
}

/**
 * Tells whether a text is the result of `textOfValue` for a value, or consists only of lines that also occur in the
 * value's strings.
 */
export function isMadeOf(text: string, value: Json): boolean {
  if (textOfValue(value) === text) return true;
  const lines = new Set<string>();
  const walk = (node: Json): void => {
    if (typeof node === 'string') for (const line of node.split('\n')) lines.add(line);
    else if (node !== null && typeof node === 'object') Object.values(node).forEach(walk);
  };
  walk(value);
  return text.split('\n').every((line) => line === '' || lines.has(line));
}
