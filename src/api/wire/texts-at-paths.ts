import { EngineError, type Json, textOfValue } from '../../engine/index.ts';

/** Greatest number of places in a value that the paths of one item may visit, all paths together. */
const MAX_LOOKED_AT = 20_000;
/**
 * Greatest number of places in the values that all paths together find, each with all below it: as many as the longest
 * value can have, so that paths which find one inside another cost no more than the whole value does.
 */
const MAX_WALKED = 131_072;

/**
 * Returns the texts of a JSON value that some paths find, one on each line, without duplicates; '' if there are none. A
 * path is `$` for the whole value, or names separated by dots. After a name may stand `[n]` for an entry of a list
 * (`[-1]` is the last) or `[*]` for all entries; `*` in place of a name matches every name and entry. A path that finds
 * nothing adds no text.
 * @throws EngineError `invalid` if the paths visit more than 20,000 places of the value, or find values with more than
 *   131,072 places together
 */
export function textsAtPaths(value: Json, paths: readonly string[]): string {
  const budget = { left: MAX_LOOKED_AT };
  // Paths that are written differently may lead to one and the same value.
  const found = new Set<Json>();
  for (const path of new Set(paths)) {
    if (path === '$') found.add(value);
    else for (const one of valuesAt(value, { steps: stepsOf(path), at: 0, budget })) found.add(one);
  }
  const walk = { left: MAX_WALKED };
  for (const one of found) takePlaces(one, walk);
  return [...new Set([...found].map(textOfValue))].filter((text) => text !== '').join('\n');
}

/**
 * Subtracts the places of a value, itself and all values in it, from the number that may still be walked.
 * @throws EngineError `invalid` if there are more
 */
function takePlaces(value: Json, walk: { left: number }): void {
  if (--walk.left < 0)
    throw new EngineError('invalid', `index: its paths find values with more than ${MAX_WALKED} places together`);
  if (typeof value !== 'object' || value === null) return;
  for (const child of Object.values(value)) takePlaces(child, walk);
}

function stepsOf(path: string): string[] {
  return path.replace(/^\$\.?/, '').match(/\[[^\]]*\]|[^.[\]]+/g) ?? [];
}

/**
 * Yields the values that a path finds in `value`.
 * @param at index of the next step of the path; the steps before it have led to `value`
 * @param budget.left number of places that may still be visited
 * @throws EngineError `invalid` if the path leads to more places
 */
function* valuesAt(
  value: Json,
  { steps, at, budget }: { readonly steps: readonly string[]; readonly at: number; readonly budget: { left: number } },
): Generator<Json> {
  const step = steps[at];
  if (step === undefined) {
    yield value;
    return;
  }
  for (const child of childrenAt(value, step)) {
    if (--budget.left < 0)
      throw new EngineError('invalid', `index: its paths lead to more than ${MAX_LOOKED_AT} places in the value`);
    yield* valuesAt(child, { steps, at: at + 1, budget });
  }
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
