import type { Json } from '../types.ts';

/**
 * Makes the text of a JSON value that is searched: a line for each text, number or boolean, with its key before it; the
 * plain entries of a list share a line. It is never longer than the value's JSON, and '' if the value holds none.
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
