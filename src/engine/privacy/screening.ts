import { EngineError } from '../errors.ts';
import type { PrivacyPolicy, ScreenReport, SensitiveKind, SensitiveSpan } from '../types.ts';
import type { TextAnalyzer } from '../ports.ts';
import { takeTurn } from '../turns.ts';
import { findSensitiveInSteps, withoutOverlaps } from './find-sensitive.ts';
import { groupOf, groupsOf } from './policy.ts';

/**
 * Greatest length of a context, of which the end is searched together with the value that follows it, in UTF-16 code
 * units. A pattern reads at most some fifty of them; the limit saves time, since each text of a long list is searched
 * with its context.
 */
const CONTEXT = 128;
/** Length of the parts in which a long text is searched, in UTF-16 code units. */
const PIECE = 64 * 1024;
/**
 * Number of UTF-16 code units by which two consecutive parts overlap, so that a value that is cut at the end of one
 * part is complete in the next.
 */
const OVERLAP = 20 * 1024;
/**
 * Number of sensitive values that are counted and redacted between two turns of the thread; each takes under a
 * microsecond.
 */
const SPANS_OF_STEP = 2_048;
/**
 * Greatest number of sensitive values of one field. Each is handled several times, and a thread does so for the jobs of
 * all tenants.
 */
const MAX_SPANS = 500_000;
const TOO_MANY = `holds over ${MAX_SPANS} sensitive values, more than are screened; divide it`;
/**
 * The fields with natural language, which are also sent to the external analyzer. The other fields hold names and data.
 */
const PROSE: ReadonlySet<string> = new Set(['content', 'title', 'gist', 'document']);

/**
 * The screening of one memory or document for sensitive values: its fields are passed in one after the other, then its
 * report is read.
 */
export interface Screening {
  /**
   * Finds sensitive values in a field and redacts, marks or refuses them as the policy says.
   * @param field name of the field, for an error
   * @param context text that says what the value is, such as the key of a metadata value; only its last 128 characters
   *   are used; '' by default
   * @returns the text to store
   * @throws EngineError `unprocessable` if the policy refuses a kind that was found; the message names kind and field
   *   only; else as `find`
   */
  screen(field: string, text: string, context?: string): Promise<string>;
  /**
   * Finds the sensitive values of a field, by rising `start` and without overlaps, and changes nothing. Fields of
   * natural language are also sent to the external analyzer, if there is one and the policy screens personal values.
   * @throws EngineError `unavailable` while the external analyzer cannot be reached and `OM_PII_FAIL` is `refuse`;
   *   `unprocessable` for over 500,000 values
   */
  find(field: string, text: string): Promise<SensitiveSpan[]>;
  /**
   * Counts spans that `find` returned for a field, and returns the field's text with those values redacted whose group
   * has the mode `redact`.
   * @throws EngineError `unprocessable` if the policy refuses the kind of one of the spans
   */
  apply(field: string, text: string, spans: readonly SensitiveSpan[]): Promise<string>;
  /**
   * Returns what this screening has done so far: the number of redacted values by kind, and the kinds that were marked.
   */
  report(): ScreenReport;
  /** Returns the kinds for which this screening has refused a field; empty if it has refused none. */
  refused(): ReadonlySet<SensitiveKind>;
}

/**
 * Starts a screening by a privacy policy.
 * @param analyzer finds further personal values in natural language; null if there is none
 */
export function startScreening(policy: PrivacyPolicy, analyzer: TextAnalyzer | null): Screening {
  const redacted: Partial<Record<SensitiveKind, number>> = {};
  const marked = new Set<SensitiveKind>();
  const refused = new Set<SensitiveKind>();
  const groups = groupsOf(policy);

  const findHere = async (text: string): Promise<SensitiveSpan[]> => {
    const steps = findSensitiveInSteps(text, groups);
    for (;;) {
      await takeTurn();
      const step = steps.next();
      if (step.done) return step.value;
    }
  };
  const find = async (field: string, text: string): Promise<SensitiveSpan[]> => {
    const found: SensitiveSpan[] = [];
    for (let from = 0; from === 0 || from + OVERLAP < text.length; from += PIECE - OVERLAP) {
      const spans = await findHere(text.slice(from, from + PIECE));
      await takeTurn();
      // Only the last spans of the parts before can overlap those of this one.
      let before = found.length;
      while (before > 0 && found[before - 1]!.end > from) before -= 1;
      const here = spans.map((span) => ({ ...span, start: span.start + from, end: span.end + from }));
      const end = from + OVERLAP;
      const twice = here.filter(({ start }) => start < end);
      for (const span of withoutOverlaps([...found.splice(before), ...twice])) found.push(span);
      for (const span of here.slice(twice.length)) found.push(span);
      if (found.length > MAX_SPANS) throw new EngineError('unprocessable', `${field}: ${TOO_MANY}`);
    }
    const asks = analyzer !== null && policy.personal !== 'off' && PROSE.has(field) && text.trim() !== '';
    return asks ? joinInSteps(found, await analyzer.find(text)) : found;
  };
  const apply = async (field: string, text: string, spans: readonly SensitiveSpan[]): Promise<string> => {
    const here = new Map<SensitiveKind, number>();
    for await (const step of inSteps(spans)) for (const { kind } of step) here.set(kind, (here.get(kind) ?? 0) + 1);
    const refusedHere = [...here.keys()].filter((kind) => policy[groupOf(kind)] === 'refuse');
    for (const kind of refusedHere) refused.add(kind);
    if (refusedHere.length > 0) throw refusalOf(field, refusedHere);
    for (const [kind, count] of here) {
      const mode = policy[groupOf(kind)];
      if (mode === 'redact') redacted[kind] = (redacted[kind] ?? 0) + count;
      if (mode === 'mark') marked.add(kind);
    }
    return redactInSteps(text, spans, (kind) => policy[groupOf(kind)] === 'redact');
  };
  return {
    find,
    apply,
    async screen(field, text, given = '') {
      const context = given.slice(-CONTEXT);
      const spans = await find(field, context + text);
      return apply(field, text, context === '' ? spans : await movedInSteps(spans, context.length));
    },
    refused: () => refused,
    report: () => ({ redacted: { ...redacted }, marked: [...marked].sort() }),
  };
}

function refusalOf(field: string, kinds: readonly SensitiveKind[]): EngineError {
  const message = `${field}: holds ${[...kinds].sort().join(', ')}, which this tenant's privacy settings refuse`;
  return new EngineError('unprocessable', message);
}

/** Returns the marker that replaces a value: `[REDACTED:kind]`. */
export function markerOf(kind: SensitiveKind): string {
  return `[REDACTED:${kind}]`;
}

/** Yields spans in short lists, and takes turns between them, so that many spans do not hold the thread. */
async function* inSteps(spans: readonly SensitiveSpan[]): AsyncGenerator<readonly SensitiveSpan[]> {
  for (let from = 0; from < spans.length; from += SPANS_OF_STEP) {
    await takeTurn();
    yield spans.slice(from, from + SPANS_OF_STEP);
  }
}

/**
 * Replaces those spans of a text by their markers whose kind is to be redacted. The spans must be ordered and must not
 * overlap.
 */
async function redactInSteps(
  text: string,
  spans: readonly SensitiveSpan[],
  isRedacted: (kind: SensitiveKind) => boolean,
): Promise<string> {
  const parts: string[] = [];
  let from = 0;
  for await (const step of inSteps(spans)) {
    let part = '';
    for (const { kind, start, end } of step) {
      if (!isRedacted(kind)) continue;
      part += text.slice(from, start) + markerOf(kind);
      from = end;
    }
    parts.push(part);
  }
  return parts.join('') + text.slice(from);
}

/** Moves spans that were found behind a context to their places in the text alone, without those in the context. */
async function movedInSteps(spans: readonly SensitiveSpan[], length: number): Promise<SensitiveSpan[]> {
  const moved: SensitiveSpan[] = [];
  for await (const step of inSteps(spans)) {
    for (const { kind, start, end } of step)
      if (end > length) moved.push({ kind, start: Math.max(0, start - length), end: end - length });
  }
  return moved;
}

/**
 * Joins the spans that were found here with those of the external analyzer, without overlaps, as `withoutOverlaps` does
 * where both are few. The text is divided where no span passes, so that a step handles few of them.
 */
async function joinInSteps(
  found: readonly SensitiveSpan[],
  others: readonly SensitiveSpan[],
): Promise<SensitiveSpan[]> {
  const joined: SensitiveSpan[] = [];
  const rankOf = new Map(others.map((span, rank) => [span, rank]));
  const own = [...others].sort((a, b) => a.start - b.start);
  let [atFound, atOwn] = [0, 0];
  while (atFound < found.length || atOwn < own.length) {
    await takeTurn();
    const group: SensitiveSpan[][] = [[], []];
    for (let [end, count] = [-1, 0]; atFound < found.length || atOwn < own.length; count += 1) {
      const isFound = atOwn >= own.length || (found[atFound]?.start ?? Infinity) <= own[atOwn]!.start;
      const next = isFound ? found[atFound]! : own[atOwn]!;
      // Spans that touch stay together: some of one kind may be joined.
      if (count >= SPANS_OF_STEP && next.start > end) break;
      end = Math.max(end, next.end);
      group[isFound ? 0 : 1]!.push(next);
      if (isFound) atFound += 1;
      else atOwn += 1;
    }
    // Of two spans of the analyzer that overlap, the one that it names first counts.
    group[1]!.sort((a, b) => rankOf.get(a)! - rankOf.get(b)!);
    for (const span of withoutOverlaps(group.flat())) joined.push(span);
  }
  return joined;
}
