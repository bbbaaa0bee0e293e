import type { SensitiveGroup, SensitiveSpan } from '../types.ts';
import type { SensitivePattern } from './pattern.ts';
import { PERSONAL_PATTERNS } from './personal-patterns.ts';
import { SECRET_PATTERNS } from './secret-patterns.ts';

/**
 * The patterns of each group of sensitive values, by priority: if the matches of two patterns overlap, the match of the
 * earlier pattern counts, and the other one only as far as it goes beyond.
 */
const SENSITIVE_PATTERNS: Readonly<Record<SensitiveGroup, readonly SensitivePattern[]>> = {
  secrets: SECRET_PATTERNS,
  personal: PERSONAL_PATTERNS,
};

/**
 * Greatest number of matches of a pattern that one step of `findSensitiveInSteps` checks. One check takes a few
 * microseconds.
 */
const CANDIDATES_OF_STEP = 256;

/**
 * Finds the sensitive values of some groups in a text. The generator pauses after each pattern and after each 256
 * matches, so that a caller can do other work on the thread between two steps: a step over 64 KiB takes less than
 * a millisecond, and the last one, which orders the values, some milliseconds if they fill the text.
 * @param groups groups that are searched for; if values of two groups overlap, the value of the earlier group counts,
 *   and the other one only as far as it goes beyond
 * @returns the spans by rising `start`, without overlaps
 */
export function* findSensitiveInSteps(
  text: string,
  groups: readonly SensitiveGroup[],
): Generator<undefined, SensitiveSpan[]> {
  const found: SensitiveSpan[] = [];
  for (const group of groups) {
    for (const entry of SENSITIVE_PATTERNS[group]) {
      let candidates = 0;
      if (entry.hint.test(text))
        for (const span of candidatesOf(text, entry)) {
          if (span !== null) found.push(span);
          if (++candidates % CANDIDATES_OF_STEP === 0) yield;
        }
      yield;
    }
  }
  return withoutOverlaps(found);
}

/** Runs all steps of `findSensitiveInSteps` without a pause and returns the spans. */
export function findSensitive(text: string, groups: readonly SensitiveGroup[]): SensitiveSpan[] {
  const steps = findSensitiveInSteps(text, groups);
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
  }
}

/**
 * Finds the matches of a pattern in a text: yields the span of each sensitive value, and null for a match that
 * `lengthOf` rejects.
 */
function* candidatesOf(text: string, { kind, pattern, lengthOf }: SensitivePattern): Generator<SensitiveSpan | null> {
  let from = 0;
  for (;;) {
    // Between two steps the same pattern may have searched another text.
    pattern.lastIndex = from;
    const match = pattern.exec(text);
    if (match === null) return;
    const before = match.groups?.before?.length ?? 0;
    const start = match.index + before;
    const length = lengthOf === undefined ? match[0].length - before : lengthOf(match[0].slice(before));
    // A refused candidate may hold a value further on: what looked like a grouped IBAN may be followed by one.
    from = length > 0 ? start + length : match.index + Math.max(1, before);
    yield length > 0 ? { kind, start, end: start + length } : null;
  }
}

/**
 * Orders spans by `start`, and removes overlaps, so that the spans cover what they covered before: where two of them
 * overlap, the one that comes earlier in `found` keeps its place, and the rest of the other becomes a span of its own.
 * Overlapping spans of one kind are joined.
 */
export function withoutOverlaps(found: readonly SensitiveSpan[]): SensitiveSpan[] {
  const edges = [...new Set(found.flatMap(({ start, end }) => [start, end]))].sort((a, b) => a - b);
  const indexOf = new Map(edges.map((edge, index) => [edge, index]));
  const ownerOf: SensitiveSpan[] = [];
  // The first free stretch from each edge on; taken stretches lead to the next, so that each is passed a few times.
  const nextFree = edges.map((_, index) => index);
  const freeFrom = (index: number): number => {
    let free = index;
    while (nextFree[free] !== free) free = nextFree[free] = nextFree[nextFree[free]!]!;
    return free;
  };
  for (const span of found) {
    const end = indexOf.get(span.end)!;
    for (let at = freeFrom(indexOf.get(span.start)!); at < end; at = freeFrom(at)) {
      ownerOf[at] = span;
      nextFree[at] = at + 1;
    }
  }
  const kept: SensitiveSpan[] = [];
  let last: SensitiveSpan | undefined;
  for (const [at, start] of edges.entries()) {
    const owner = ownerOf[at];
    const isJoined =
      owner !== undefined && last?.kind === owner.kind && last.end > owner.start && owner.end > last.start;
    if (isJoined) kept.push({ ...kept.pop()!, end: edges[at + 1]! });
    else if (owner !== undefined) kept.push({ kind: owner.kind, start, end: edges[at + 1]! });
    last = owner;
  }
  return kept;
}
