import type { SensitiveGroup, SensitiveSpan } from '../types.ts';
import type { SensitivePattern } from './pattern.ts';
import { PERSONAL_PATTERNS } from './personal-patterns.ts';
import { SECRET_PATTERNS } from './secret-patterns.ts';

/** The table of patterns of each group. Where two match in the same place, the earlier one names the kind. */
const SENSITIVE_PATTERNS: Readonly<Record<SensitiveGroup, readonly SensitivePattern[]>> = {
  secrets: SECRET_PATTERNS,
  personal: PERSONAL_PATTERNS,
};

/**
 * Finds the sensitive values of some groups in a text, one pattern of the table at each step, so that a caller may give
 * others a turn between two steps: a step over 256 KiB takes about a millisecond.
 * @param groups groups that are looked for; secrets have priority over personal values in the same place
 * @returns the spans by rising `start`, without overlaps
 */
export function* findSensitiveInSteps(
  text: string,
  groups: readonly SensitiveGroup[],
): Generator<undefined, SensitiveSpan[]> {
  const found: SensitiveSpan[] = [];
  for (const group of groups) {
    for (const entry of SENSITIVE_PATTERNS[group]) {
      if (entry.hint.test(text)) found.push(...matchesOf(text, entry));
      yield;
    }
  }
  return withoutOverlaps(found);
}

/** Does all steps of `findSensitiveInSteps` at once. */
export function findSensitive(text: string, groups: readonly SensitiveGroup[]): SensitiveSpan[] {
  const steps = findSensitiveInSteps(text, groups);
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
  }
}

function* matchesOf(text: string, { kind, pattern, lengthOf }: SensitivePattern): Generator<SensitiveSpan> {
  pattern.lastIndex = 0;
  for (let match = pattern.exec(text); match !== null; match = pattern.exec(text)) {
    const before = match.groups?.before?.length ?? 0;
    const start = match.index + before;
    const length = lengthOf === undefined ? match[0].length - before : lengthOf(match[0].slice(before));
    if (length > 0) yield { kind, start, end: start + length };
    // A refused candidate may hold a value further on: what looked like a grouped IBAN may be followed by one.
    pattern.lastIndex = length > 0 ? start + length : match.index + Math.max(1, before);
  }
}

/** Orders spans by place, and leaves out each span that overlaps one that was found by an earlier pattern. */
export function withoutOverlaps(found: readonly SensitiveSpan[]): SensitiveSpan[] {
  const byPlace = found
    .map((span, rank) => ({ span, rank }))
    .sort((a, b) => a.span.start - b.span.start || a.rank - b.rank);
  const kept: { readonly span: SensitiveSpan; readonly rank: number }[] = [];
  for (const next of byPlace) {
    const last = kept.at(-1);
    if (last === undefined || next.span.start >= last.span.end) kept.push(next);
    else if (next.rank < last.rank) kept[kept.length - 1] = next;
  }
  return kept.map(({ span }) => span);
}
