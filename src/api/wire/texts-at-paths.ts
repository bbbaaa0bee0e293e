import { type Json, textOfValue } from '../../engine/index.ts';

/**
 * Returns the texts of a JSON value at some paths, a line for each; '' if there are none. A path is `$` for the whole
 * value, or names with dots between them, each followed by `[n]` for an entry of a list (`[-1]` is the last) or by
 * `[*]` for all of its entries; `*` stands for every name. A path that leads nowhere has no text.
 */
export function textsAtPaths(value: Json, paths: readonly string[]): string {
  const texts = paths.flatMap((path) => (path === '$' ? [value] : valuesAt(value, stepsOf(path)))).map(textOfValue);
  return [...new Set(texts)].filter((text) => text !== '').join('\n');
}

function stepsOf(path: string): string[] {
  return path.replace(/^\$\.?/, '').match(/\[[^\]]*\]|[^.[\]]+/g) ?? [];
}

function valuesAt(value: Json, steps: readonly string[]): Json[] {
  const [step, ...rest] = steps;
  if (step === undefined) return [value];
  return childrenAt(value, step).flatMap((child) => valuesAt(child, rest));
}

function childrenAt(value: Json, step: string): readonly Json[] {
  if (typeof value !== 'object' || value === null) return [];
  const index = /^\[(.*)\]$/.exec(step)?.[1];
  if (Array.isArray(value)) {
    const entries = value as readonly Json[];
    if (index === '*' || step === '*') return entries;
    const entry = index === undefined ? undefined : entries.at(Number(index));
    return entry === undefined ? [] : [entry];
  }
  const fields = value as Readonly<Record<string, Json>>;
  if (step === '*') return Object.values(fields);
  return index === undefined && Object.hasOwn(fields, step) ? [fields[step]!] : [];
}
